"""What is written into one file: a step adds one thing, and an entry says how to find that thing again for removal,
even if the file has changed by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from handrail.domain.setup import jsonc_edit, toml_edit
from handrail.domain.setup.blocks import block, drop_block, put_block
from handrail.domain.setup.edits import Edit, NotUnderstood, done, line_end, value_at


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something of ours in a file."""

    kind: Literal["member", "item", "table", "key", "table_key", "block", "line", "whole"]
    path: tuple[str, ...] = ()
    value: Any = None
    previous: Any = None
    """What it replaced, to be restored."""


Put = Callable[[str], tuple[list[Edit], list[FileEntry]]]
"""Takes a file's text; returns the edits, and what in it is then ours. Raises NotUnderstood."""


class WriteStep(NamedTuple):
    """One thing to write into one file."""

    file: str
    purpose: str
    put: Put


def member(path: Sequence[str], value: Any) -> Put:
    """A member of a JSON object. Where both are objects, what else the old one says stays."""

    def put(text: str) -> tuple[list[Edit], list[FileEntry]]:
        previous = jsonc_edit.found_at(text, path)
        both = {**previous, **value} if isinstance(previous, dict) and isinstance(value, dict) else value
        edits = jsonc_edit.put(text, path, both)
        return edits, _entry_if(edits, FileEntry(kind="member", path=tuple(path), value=value, previous=previous))

    return put


def item(path: Sequence[str], value: Any, is_old: Callable[[Any], bool]) -> Put:
    """An item of a JSON list, replacing older ones of ours."""

    def put(text: str) -> tuple[list[Edit], list[FileEntry]]:
        there = jsonc_edit.found_at(text, path)
        if there is not None and not isinstance(there, list):
            raise NotUnderstood(f"{'.'.join(path)} in it is no list")
        if value in (there or []):
            return [], []
        edits: list[Edit] = []
        for old in [old for old in there or [] if is_old(old)]:
            edits += jsonc_edit.drop(done(text, edits), path, old)
        edits += jsonc_edit.append(done(text, edits), path, value)
        return edits, [FileEntry(kind="item", path=tuple(path), value=value)]

    return put


def table(path: Sequence[str], values: dict[str, Any]) -> Put:
    """A table of a TOML file. What else it says stays."""

    def put(text: str) -> tuple[list[Edit], list[FileEntry]]:
        previous = value_at(toml_edit.plain(text), path)
        own = {name: value for name, value in (previous or {}).items() if not isinstance(value, dict)}
        edits = toml_edit.put_table(text, path, {**own, **values})
        return edits, _entry_if(edits, FileEntry(kind="table", path=tuple(path), value=values, previous=previous))

    return put


def key(name: str, value: str) -> Put:
    """A top-level key of a TOML file."""

    def put(text: str) -> tuple[list[Edit], list[FileEntry]]:
        edits = toml_edit.put_key(text, name, value)
        return edits, _entry_if(edits, FileEntry(kind="key", path=(name,), value=value))

    return put


def table_key(path: Sequence[str], name: str, value: Any) -> Put:
    """A key of a TOML table that another step has made."""

    def put(text: str) -> tuple[list[Edit], list[FileEntry]]:
        edits = toml_edit.put_table_key(text, path, name, value)
        return edits, _entry_if(edits, FileEntry(kind="table_key", path=(*path, name), value=value))

    return put


def new_member(path: Sequence[str], value: Any) -> Put:
    """A member of a JSON object, unless it has one of that name: that was somebody's choice."""

    def put(text: str) -> tuple[list[Edit], list[FileEntry]]:
        return ([], []) if jsonc_edit.found_at(text, path) is not None else member(path, value)(text)

    return put


def instructions(text: str) -> tuple[list[Edit], list[FileEntry]]:
    """The block for agents."""
    edits = put_block(text)
    return edits, _entry_if(edits, FileEntry(kind="block", value=block()))


def whole(content: str, *, is_ours: Callable[[str], bool]) -> Put:
    """A file that is entirely ours. An existing one that we did not write is left alone."""

    def put(text: str) -> tuple[list[Edit], list[FileEntry]]:
        if text == content:
            return [], []
        if text and not is_ours(text):
            raise NotUnderstood("it is there already, and not made by init")
        return [Edit(0, text, content)], [FileEntry(kind="whole", value=content)]

    return put


def lines(content: str, needed: Sequence[str]) -> Put:
    """A file of lines: created with this content if there is none, otherwise given the lines it lacks."""

    def put(text: str) -> tuple[list[Edit], list[FileEntry]]:
        if not text:
            return [Edit(0, "", content)], [FileEntry(kind="whole", value=content)]
        missing = [line for line in needed if line not in text.splitlines()]
        end = line_end(text)
        gap = "" if text.endswith("\n") else end
        added = gap + "".join(line + end for line in missing)
        entries = [FileEntry(kind="line", value=line) for line in missing]
        return ([Edit(len(text), "", added)] if missing else []), entries

    return put


def taken_out(text: str, entry: FileEntry) -> str:
    """The text without something of ours, or unchanged if it is no longer there. Raises NotUnderstood."""
    return done(text, _taking_out(text, entry))


def _taking_out(text: str, entry: FileEntry) -> list[Edit]:
    if entry.kind == "member":
        there = jsonc_edit.found_at(text, entry.path)
        if there is None:
            return []
        _check_ours(there, entry)
        if entry.previous is not None:
            return jsonc_edit.put(text, entry.path, entry.previous)
        return jsonc_edit.drop(text, entry.path)
    if entry.kind == "item":
        return jsonc_edit.drop(text, entry.path, entry.value)
    if entry.kind == "table":
        there = value_at(toml_edit.plain(text), entry.path)
        if there is not None:
            _check_ours(there, entry)
        return toml_edit.drop_table(text, entry.path)
    if entry.kind == "key":
        return toml_edit.drop_key(text, entry.path[0], entry.value)
    if entry.kind == "table_key":
        return toml_edit.drop_table_key(text, entry.path[:-1], entry.path[-1], entry.value)
    if entry.kind == "block":
        return drop_block(text)
    if entry.kind == "line":
        kept = [line for line in text.splitlines(keepends=True) if line.rstrip("\r\n") != entry.value]
        return [Edit(0, text, "".join(kept))]
    if text != entry.value:
        raise NotUnderstood("it was changed since init made it")
    return [Edit(0, text, "")]


def _check_ours(there: Any, entry: FileEntry) -> None:
    """Raises NotUnderstood if somebody has replaced ours with something else."""
    if not jsonc_edit.says(there, entry.value):
        raise NotUnderstood(f"{'.'.join(entry.path)} in it was changed since init wrote it; take it out by hand")


def _entry_if(edits: list[Edit], entry: FileEntry) -> list[FileEntry]:
    return [entry] if edits else []
