"""What a task changed, file by file, for the page: from its snapshots, or so far if it is open. Reads git, with limits.

What is no longer kept is mentioned in a note; the page is never refused because of it. Texts are decoded with
replacement, and go to the page as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from handrail.domain.journal.areas import read_areas
from handrail.domain.journal.entry import JournalEntry, moves_once, totals
from handrail.domain.journal.paths import path_bytes
from handrail.domain.journal.ports import Snapshot
from handrail.domain.journal.scope import judge
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import workflow_of
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import NotFound, Refusal
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.known_types import make_known
from handrail.operation import Call
from handrail.surfaces.task_changes import Difference, Journalled, difference, patch_of, tracker_of
from handrail.surfaces.web.route import task_asked

FILES = 400
AT_ONCE = 200_000
"""Bytes of patches in the first answer; a file that does not fit must be requested on its own."""
OF_ONE = 60_000
"""Bytes of one file's patch in the first answer, so that one large file does not crowd out the others."""
ALONE = 1_000_000
"""Bytes of the patch of a file requested on its own."""
READ = 4_000_000
"""How many bytes of a patch are read to find the files in it."""
WARNINGS = 3
NOT_BEGUN = "It has not begun, so it has changed nothing."
NEVER_LOOKED = "No snapshot was taken when it began, so nobody knows exactly what it changed."

_HEADER = re.compile(rb"^diff --git (.+)$", re.MULTILINE)
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """What the task started from."""

    commit: str | None
    branch: str | None


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One changed file."""

    path: str
    old_path: str | None
    status: str
    """added, modified, deleted or renamed."""
    added: int
    removed: int
    binary: bool
    in_scope: bool | None
    """None if the task declared no areas."""
    patch: str | None
    """None if it is binary, not kept, or too long to be sent with the others."""


class TaskDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What a task changed."""

    task_id: str
    is_open: bool
    """True if the task has not ended: this is then what it has changed so far."""
    base: Base | None
    files: list[ChangedFile]
    added: int
    removed: int
    note: str | None
    """What a reader should know before relying on it."""
    more: int = 0


class _Known(msgspec.Struct, frozen=True):
    task: Task
    entry: JournalEntry | None
    workflow: Workflow


def task_diff(call: Call, actor: Actor, task_id: str, file: str | None) -> TaskDiff:
    """The changes of a task; with `file`, only of that file."""
    known = call.ledger.run(actor, lambda unit: _task_and_entry(unit, task_id))
    if known.entry is None:
        return _nothing(known.task, NEVER_LOOKED if known.task.attempts else NOT_BEGUN)
    try:
        make_known(Snapshot)
        meant = Journalled(known.task, known.entry, tracker_of(call, known.workflow))
        found = difference(meant)
    except Refusal as refusal:  # its folder, or what was kept of it, is gone
        return _nothing(known.task, _sentence(refusal), is_open=known.entry.after is None)
    try:
        return _shown(meant, found, file)
    finally:
        if found.is_open:
            meant.tracker.forget(found.after)


def _task_and_entry(unit: UnitOfWork, task_id: str) -> _Known:
    task = task_asked(unit, task_id)
    return _Known(task, unit.get(JournalEntry, task.id), workflow_of(unit, task))


def _nothing(task: Task, note: str, *, is_open: bool = False) -> TaskDiff:
    return TaskDiff(task_id=task.id, is_open=is_open, base=None, files=[], added=0, removed=0, note=note)


def _sentence(refusal: Refusal) -> str:
    return f"{refusal.message[:1].upper()}{refusal.message[1:]}."


def _shown(meant: Journalled, found: Difference, file: str | None) -> TaskDiff:
    every = moves_once(found.report)
    listed = [change for change in every if file is None or change["path"] == file]
    if file is not None and not listed:
        raise NotFound("the task did not change a file of that name", hint="leave out file= to get them all")
    shown = listed[:FILES]
    notes = list(found.warnings[:WARNINGS])
    if not every:
        notes.insert(0, found.nothing)
    patches, problem = _patches(meant, found, shown, most=AT_ONCE if file is None else ALONE, alone=file is not None)
    notes += [problem] if problem else []
    areas = read_areas(meant.entry.areas)
    for change in shown:
        if change["change"] == "renamed" and (patch := patches.get(change["path"])) is not None:
            change["lines_added"], change["lines_removed"] = _lines_changed(patch)
    counted = totals(every)
    return TaskDiff(
        task_id=meant.task.id,
        is_open=found.is_open,
        base=Base(commit=found.before.commit, branch=found.before.branch),
        files=[
            ChangedFile(
                path=change["path"],
                old_path=change.get("old_path"),
                status=change["change"],
                added=change.get("lines_added") or 0,
                removed=change.get("lines_removed") or 0,
                binary=bool(change.get("binary")),
                in_scope=judge(change["path"], areas).in_scope if areas else None,
                patch=patches.get(change["path"]),
            )
            for change in shown
        ],
        added=counted.lines_added,
        removed=counted.lines_removed,
        note=" ".join(note if note.endswith(".") else f"{note}." for note in notes) or None,
        more=len(listed) - len(shown),
    )


# -- patches ----------------------------------------------------------------------------------------------------------


def _patches(
    meant: Journalled, found: Difference, shown: Sequence[Mapping[str, Any]], *, most: int, alone: bool
) -> tuple[dict[str, str], str | None]:
    """The patch of each file that fits, by path; and, if there are none, why."""
    texts = [change for change in shown if not change.get("binary")]
    if not texts:
        return {}, None
    paths = [path for change in texts for path in (change["path"], change.get("old_path")) if path is not None]
    try:
        whole, is_cut = _read_patch(patch_of(meant.tracker, found, paths), ALONE if alone else READ)
    except Refusal as refusal:
        return {}, _sentence(refusal)
    pieces = _by_file(whole, texts)
    if not pieces:
        return {}, "What its lines were is not kept any more."
    kept: dict[str, str] = {}
    room = most
    for place, (path, piece) in enumerate(pieces.items()):
        is_last = is_cut and place == len(pieces) - 1
        if len(piece) > room or (not alone and (is_last or len(piece) > OF_ONE)):
            continue
        kept[path] = piece.decode("utf-8", "replace")
        room -= len(piece)
    return kept, "Only its beginning is shown: it is very long." if alone and is_cut else None


def _lines_changed(patch: str) -> tuple[int, int]:
    """The numbers of lines that a patch adds and removes."""
    _, _, hunks = patch.partition("\n@@")
    lines = hunks.split("\n")
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _read_patch(chunks: Iterator[bytes], most: int) -> tuple[bytes, bool]:
    """A patch up to a limit, ending in a whole line, and whether it was cut."""
    whole = bytearray()
    for chunk in chunks:
        whole += chunk
        if len(whole) > most:
            return bytes(whole[: whole.rfind(b"\n", 0, most) + 1]), True
    return bytes(whole), False


def _by_file(whole: bytes, changes: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """The patch of each file, by path. File lines in a patch start with a sign, so none can look like a header."""
    known: dict[bytes, str] = {}
    for change in changes:
        path = path_bytes(change["path"])
        old = path_bytes(change["old_path"]) if change.get("old_path") else path
        known[b"a/" + old + b" b/" + path] = change["path"]
    found: dict[str, bytes] = {}
    headers = list(_HEADER.finditer(whole))
    ends = chain((header.start() for header in headers[1:]), (len(whole),))
    for header, end in zip(headers, ends, strict=True):
        named = _plain_names(header.group(1))
        path_text = known.get(named) or _by_new_name(named, known)
        if path_text is not None:
            found[path_text] = found.get(path_text, b"") + whole[header.start() : end]
    return found


def _by_new_name(named: bytes, known: Mapping[bytes, str]) -> str | None:
    """The file that git treats as a move and the report does not, found by its new name."""
    fits = [names for names in known if named.endswith(names[names.index(b" b/") :])]
    return known[max(fits, key=len)] if fits else None


def _plain_names(header: bytes) -> bytes:
    """Both names of a header, without the quotes that git puts around unusual ones."""
    if b'"' not in header:
        return header
    first, rest = _first_name(header)
    return first + b" " + (_unquoted(rest) if rest.startswith(b'"') else rest)


def _first_name(header: bytes) -> tuple[bytes, bytes]:
    if not header.startswith(b'"'):
        first, _, rest = header.partition(b' "')
        return first, b'"' + rest
    end = 1
    while end < len(header) and header[end : end + 1] != b'"':
        end += 2 if header[end : end + 1] == b"\\" else 1
    return _unquoted(header[: end + 1]), header[end + 2 :]


def _unquoted(name: bytes) -> bytes:
    return _ESCAPED.sub(_letter, name[1:-1])


def _letter(match: re.Match[bytes]) -> bytes:
    escaped = match.group(1)
    return bytes([int(escaped, 8) & 0xFF]) if len(escaped) == 3 else _LETTERS.get(escaped, escaped)
