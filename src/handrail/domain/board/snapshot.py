"""An entry as everybody is shown it, and a change of one: registry.md's shapes, camelCase inside. Pure records."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from handrail.domain.board.entry import BoardEntry

BRIEF = 4000
"""Bytes of a value that are shown to who did not ask for it."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An entry at one moment."""

    key: str
    value: Any = UNSET
    """Left out only where it is long and nobody asked for it."""
    value_bytes: int | UnsetType = UNSET
    """How long the value is that was left out."""
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
    entry: Snapshot | UnsetType = UNSET
    previous: Snapshot | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    """`ttl` where it has run out, `undo` where somebody took a change back."""
    by: str | UnsetType = UNSET
    """Who did it; nobody does it where time runs out."""
    ts: int


def snapshot(entry: BoardEntry) -> Snapshot:
    """The entry whole."""
    return Snapshot(
        key=entry.id,
        value=entry.value["value"],
        tags=tuple(entry.tags),
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        expires_at=entry.expires_at,
        version=entry.version,
        set_by=entry.set_by,
    )


def brief(entry: BoardEntry) -> Snapshot:
    """The entry for who knows its value already, or has not asked for it: a long one is not repeated."""
    shown, size = snapshot(entry), len(msgspec.json.encode(entry.value["value"]))
    return shown if size <= BRIEF else msgspec.structs.replace(shown, value=UNSET, value_bytes=size)
