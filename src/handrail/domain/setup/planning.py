"""Turns steps into changes to files, and reverses them. Pure: the caller supplies the files' contents and does the
writing.

A file is changed completely or not at all: if one step does not understand it, it is left alone and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.setup.edits import Edit, NotUnderstood, done, fingerprint, undone
from handrail.domain.setup.writing import Entry, Step, taken_out

Read = Callable[[str], str | None]
"""The text of a file; None if there is no such file. Raises NotUnderstood if it must not be touched."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change to one file."""

    file: str
    before: str | None
    """None: the file does not exist yet."""
    after: str | None
    """None: the file is deleted."""
    purposes: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    entries: tuple[Entry, ...] = ()


class LeftAlone(msgspec.Struct, frozen=True):
    """A file that is not changed, and why."""

    file: str
    why: str
    purpose: str


class Plan(msgspec.Struct, frozen=True):
    """Everything that would be done."""

    changes: tuple[Change, ...]
    left: tuple[LeftAlone, ...]


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What init did to one file, so that it can be undone."""

    file: str
    made: bool
    before: str
    """The fingerprint of the original; empty if that cannot be restored exactly."""
    after: str
    edits: tuple[Edit, ...]
    entries: tuple[Entry, ...]
    folders: tuple[str, ...] = ()
    """Folders created for it, outermost first."""


class Manifest(msgspec.Struct, frozen=True):
    """What init has written for a project."""

    files: tuple[Written, ...] = ()
    version: int = 1

    def of(self, file: str) -> Written | None:
        return next((written for written in self.files if written.file == file), None)


def plan(steps: Iterable[Step], read: Read) -> Plan:
    """What the steps would change."""
    by_file: dict[str, list[Step]] = {}
    for step in steps:
        by_file.setdefault(step.file, []).append(step)
    changes: list[Change] = []
    left: list[LeftAlone] = []
    for file, own in by_file.items():
        try:
            change = _planned_change(file, own, read(file))
        except NotUnderstood as problem:
            left.append(LeftAlone(file, str(problem), own[0].purpose))
            continue
        if change is not None:
            changes.append(change)
    return Plan(tuple(changes), tuple(left))


def _planned_change(file: str, steps: Sequence[Step], before: str | None) -> Change | None:
    text, edits, entries, purposes = before or "", [], [], []
    for step in steps:
        made, ours = step.put(text)
        text = done(text, made)
        edits += made
        entries += ours
        if made:
            purposes.append(step.purpose)
    if not edits:
        return None
    names = tuple(dict.fromkeys(purposes))
    return Change(file=file, before=before, after=text, purposes=names, edits=tuple(edits), entries=tuple(entries))


def recorded(known: Manifest, change: Change, folders: Sequence[str]) -> Manifest:
    """The manifest with one more change, on top of an earlier one to the same file, so that both can be undone."""
    earlier = known.of(change.file)
    before = "" if change.before is None else fingerprint(change.before)
    now = Written(
        file=change.file,
        made=change.before is None,
        before=before or fingerprint(""),
        after=fingerprint(change.after or ""),
        edits=change.edits,
        entries=change.entries,
        folders=tuple(folders),
    )
    if earlier is not None and change.before is not None:
        exact = bool(earlier.before) and earlier.after == before
        replaced = {(entry.kind, entry.path) for entry in change.entries if entry.kind != "item"}
        kept = tuple(entry for entry in earlier.entries if (entry.kind, entry.path) not in replaced)
        was = {(entry.kind, entry.path): entry.previous for entry in earlier.entries}
        ours = tuple(
            msgspec.structs.replace(entry, previous=was.get((entry.kind, entry.path), entry.previous))
            for entry in change.entries
        )
        now = msgspec.structs.replace(
            now,
            made=earlier.made,
            before=earlier.before if exact else "",
            edits=(*earlier.edits, *change.edits) if exact else (),
            entries=(*kept, *ours),
            folders=(*earlier.folders, *folders),
        )
    others = tuple(written for written in known.files if written.file != change.file)
    return Manifest((*others, now))


def removal(known: Manifest, read: Read, kept: Mapping[str, str]) -> Plan:
    """The changes that undo everything in the manifest; `kept` maps files that stay to the reason."""
    changes: list[Change] = []
    left: list[LeftAlone] = []
    for written in known.files:
        if written.file in kept:
            left.append(LeftAlone(written.file, kept[written.file], "remove"))
            continue
        try:
            text = read(written.file)
            if text is None or (not written.made and fingerprint(text) == written.before):
                continue
            after = _text_before(written, text)
        except NotUnderstood as problem:
            left.append(LeftAlone(written.file, str(problem), "remove"))
            continue
        gone = written.made and _is_empty(after)
        if gone or after != text:
            changes.append(Change(file=written.file, before=text, after=None if gone else after))
    return Plan(tuple(changes), tuple(left))


def _text_before(written: Written, text: str) -> str:
    """The text as it was: exactly, if nobody else has changed it, and otherwise without what is ours."""
    exact = undone(text, written.edits) if written.before else None
    if exact is not None and fingerprint(exact) == written.before:
        return exact
    for entry in written.entries:
        text = taken_out(text, entry)
    return text


def _is_empty(text: str) -> bool:
    return "".join(text.split()).removeprefix("\ufeff") in ("", "{}")


def as_text(value: Any) -> str:
    """A manifest in its stored form."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"
