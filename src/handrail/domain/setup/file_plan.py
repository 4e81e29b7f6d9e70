"""Turns steps into changes to files, and reverses them. Pure: the caller supplies the files' contents and does the
writing.

A file is changed completely or not at all: if one step does not understand it, it is left alone and reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.setup.edits import Edit, NotUnderstood, done, fingerprint, undone
from handrail.domain.setup.file_entries import FileEntry, WriteStep, taken_out

Read = Callable[[str], str | None]
"""The text of a file; None if there is no such file. Raises NotUnderstood if it must not be touched."""


STUB = 200
"""A file of at most so many characters may be what a client leaves in it by itself."""


class FileEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A change to one file."""

    file: str
    before: str | None
    """None: the file does not exist yet."""
    after: str | None
    """None: the file is deleted."""
    purposes: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    entries: tuple[FileEntry, ...] = ()


class LeftAlone(msgspec.Struct, frozen=True):
    """A file that is not changed, and why."""

    file: str
    why: str
    purpose: str


class SetupPlan(msgspec.Struct, frozen=True):
    """Everything that would be done."""

    changes: tuple[FileEdit, ...]
    left: tuple[LeftAlone, ...]


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """What init did to one file, so that it can be undone."""

    file: str
    made: bool
    before: str
    """The fingerprint of the original; empty if that cannot be restored exactly."""
    after: str
    edits: tuple[Edit, ...]
    entries: tuple[FileEntry, ...]
    folders: tuple[str, ...] = ()
    """Folders created for it, outermost first."""


class SetupManifest(msgspec.Struct, frozen=True):
    """What init has written for a project."""

    files: tuple[WrittenFile, ...] = ()
    version: int = 1
    seal: str = ""
    """By which this machine knows that it wrote all of it; empty in what older versions wrote."""

    def sealed_text(self) -> str:
        """What the seal is made of."""
        return msgspec.json.encode(msgspec.structs.replace(self, seal="")).decode()

    def of(self, file: str) -> WrittenFile | None:
        return next((written for written in self.files if written.file == file), None)


def plan(steps: Iterable[WriteStep], read: Read) -> SetupPlan:
    """What the steps would change."""
    by_file: dict[str, list[WriteStep]] = {}
    for step in steps:
        by_file.setdefault(step.file, []).append(step)
    changes: list[FileEdit] = []
    left: list[LeftAlone] = []
    for file, own in by_file.items():
        try:
            change = _planned_change(file, own, read(file))
        except NotUnderstood as problem:
            left.append(LeftAlone(file, str(problem), own[0].purpose))
            continue
        if change is not None:
            changes.append(change)
    return SetupPlan(tuple(changes), tuple(left))


def _planned_change(file: str, steps: Sequence[WriteStep], before: str | None) -> FileEdit | None:
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
    return FileEdit(file=file, before=before, after=text, purposes=names, edits=tuple(edits), entries=tuple(entries))


def recorded(known: SetupManifest, change: FileEdit, folders: Sequence[str]) -> SetupManifest:
    """The manifest with one more change, on top of an earlier one to the same file, so that both can be undone."""
    earlier = known.of(change.file)
    before = "" if change.before is None else fingerprint(change.before)
    now = WrittenFile(
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
    return SetupManifest((*others, now))


def removal(known: SetupManifest, read: Read, kept: Mapping[str, str]) -> SetupPlan:
    """The changes that undo everything in the manifest; `kept` maps files that stay to the reason."""
    changes: list[FileEdit] = []
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
            changes.append(FileEdit(file=written.file, before=text, after=None if gone else after))
    return SetupPlan(tuple(changes), tuple(left))


def _text_before(written: WrittenFile, text: str) -> str:
    """The text as it was: exactly, if nobody else has changed it, and otherwise without what is ours."""
    exact = undone(text, written.edits) if written.before else None
    if exact is not None and fingerprint(exact) == written.before:
        return exact
    for entry in written.entries:
        text = taken_out(text, entry)
    return text


def _is_empty(text: str) -> bool:
    """Whether nobody would miss a file: it says nothing, or only what a client itself adds to any file of its own."""
    text = text.strip().removeprefix("\ufeff").strip()
    if not text or len(text) > STUB:
        return not text
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(whole, dict) and whole.keys() <= {"$schema", "$version"}


def as_text(value: Any) -> str:
    """A manifest in its stored form."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"
