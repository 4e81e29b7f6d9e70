"""An entry of a board: a value under a key, for everybody to read. The record as it is stored.

Keys of a board's entries: which board a key means, and what keys, board names and tags may look like. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from handrail.kernel.errors import InvalidParams

DEFAULT = "default"
"""The board of a key that names none."""


class BoardEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry. Its id is its key, which begins with its board's name and a colon."""

    id: str
    namespace: str
    value: dict[str, Any]
    """The value under `value`: any JSON, wrapped so that null can be told from no value at all."""
    tags: list[str]
    version: int
    """The number of the event that set it, within its board."""
    set_by: str
    created_at: int
    updated_at: int
    expires_at: int | None

    @property
    def stream(self) -> str:
        return board_stream(self.namespace)


def board_stream(namespace: str) -> str:
    return f"bb:{namespace}"


BRIEF = 4000
"""The most bytes of a value that are shown to a caller that did not ask for it."""


class EntrySnapshot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An entry at one moment."""

    key: str
    value: Any = UNSET
    """Left out only if it is long and was not asked for."""
    value_bytes: int | UnsetType = UNSET
    """The size of a value that was left out."""
    tags: tuple[str, ...]
    created_at: int
    updated_at: int
    expires_at: int | None
    version: int
    set_by: str


class BoardChange(msgspec.Struct, frozen=True, kw_only=True):
    """What one event did to one entry."""

    version: int
    """The number of the event within its board."""
    kind: Literal["set", "delete", "expire"]
    key: str
    entry: EntrySnapshot | UnsetType = UNSET
    previous: EntrySnapshot | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    """`ttl` if it expired, `undo` if somebody undid a change."""
    by: str | UnsetType = UNSET
    """Who did it; unset for an expiry."""
    ts: int


def snapshot(entry: BoardEntry) -> EntrySnapshot:
    """The whole entry."""
    return EntrySnapshot(
        key=entry.id,
        value=entry.value["value"],
        tags=tuple(entry.tags),
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        expires_at=entry.expires_at,
        version=entry.version,
        set_by=entry.set_by,
    )


def brief(entry: BoardEntry) -> EntrySnapshot:
    """The entry for a caller that already knows its value or did not ask for it: a long value is left out."""
    shown, size = snapshot(entry), len(msgspec.json.encode(entry.value["value"]))
    return shown if size <= BRIEF else msgspec.structs.replace(shown, value=UNSET, value_bytes=size)


KEY = 300
"""The most characters in a key, including its board's name."""
NAME = 100
"""The most characters in a board's name, which is part of an address."""
TAG = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Key(NamedTuple):
    """A full key: `id` starts with the board's name and a colon, however the key was written."""

    board: str
    id: str


def key_of(text: str, board: str | None = None) -> Key:
    """The full key. If the text names no board, it is on `board`, or on the default one."""
    key = beginning_of(text, board)
    if text != text.rstrip():
        raise InvalidParams(f"the key {text!a} ends with a space", hint="leave it out")
    if key.id == f"{key.board}:":
        raise InvalidParams(
            f"the key {text} ends with its board's name" if text else "the key is empty",
            hint=f"name the entry: {key.board}:something",
        )
    return key


def beginning_of(text: str, board: str | None = None) -> Key:
    """A prefix of keys, read like a key: `plan:` is all of the board `plan`."""
    name, colon, rest = text.partition(":")
    if not colon:
        name, rest = board if board is not None else DEFAULT, text
    check_board(name)
    if board is not None and name != board:
        raise InvalidParams(
            f"{text} is on the board {name}, and namespace says {board}",
            hint=f"leave namespace out, or write {board}:{text} where the colon is the entry's own",
        )
    found = f"{name}:{rest}"
    if len(found) > KEY:
        raise InvalidParams(f"the key has {len(found)} characters, and {KEY} is the most", hint="put it into the value")
    if rest != rest.lstrip() or not rest.isprintable():
        raise InvalidParams(
            f"the key {text!a} begins with a space, or holds what nobody can see",
            hint="use letters, digits, signs, and spaces between them",
        )
    return Key(name, found)


def check_board(name: str) -> None:
    """Raises InvalidParams if a board cannot have this name."""
    if len(name) > NAME or not _NAME.fullmatch(name):
        raise InvalidParams(
            f"{name!a} is not a name for a board" if name else "a board's name is missing before the colon",
            hint=f"up to {NAME} letters, digits, dots, dashes and underscores, as in plan:next",
        )


def tags_of(given: Iterable[str]) -> list[str]:
    """The tags, each once, in the order given."""
    tags = list(dict.fromkeys(given))
    for tag in tags:
        if not tag or len(tag) > TAG or tag != tag.strip() or not tag.isprintable():
            raise InvalidParams(f"{tag!a} is no tag", hint=f"a tag has 1 to {TAG} characters that can be seen")
    return tags
