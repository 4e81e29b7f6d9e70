"""An entry of a board: a value under a key, for everybody to read. The record as it is stored; no behaviour."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

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
