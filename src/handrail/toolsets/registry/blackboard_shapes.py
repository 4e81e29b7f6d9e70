"""What the tools of toolset `blackboard` take and return. Types only; entries and changes come from `domain/board`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.board.board import TAGS
from handrail.domain.board.entry import DEFAULT, BoardChange, EntrySnapshot
from handrail.kernel.clock import DAY_MS
from handrail.kernel.limits import WAIT_MS

MOST = 2**53
Text = Annotated[str, Meta(max_length=1000)]
Version = Annotated[int, Meta(ge=0, le=MOST)]


class SetEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to stand under a key, and what is expected there now."""

    key: Annotated[Text, Meta(description="board:name; without a colon on the board default")]
    value: Annotated[Any, Meta(description="Any JSON")]
    tags: Annotated[list[Text], Meta(max_length=TAGS)] = []
    ttl_ms: Annotated[int, Meta(ge=1, le=DAY_MS)] | None = None
    expected_version: Annotated[Version, Meta(description="Refuse if another is there; 0: if any is")] | None = None


class GetEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which entry."""

    key: Text


class GotEntry(msgspec.Struct, frozen=True):
    """The key in full, and what stands there."""

    key: str
    entry: EntrySnapshot | None


class QueryEntries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which entries; all of it must fit."""

    namespace: Annotated[Text, Meta(description="Board; default all")] | None = None
    keys: Annotated[list[Text], Meta(max_length=500)] = []
    tags: Annotated[list[Text], Meta(max_length=TAGS, description="All of them")] = []
    prefix: Annotated[Text, Meta(description="How keys begin")] | None = None
    after: Annotated[Text, Meta(description="`next` of the page before")] | None = None
    limit: Annotated[int, Meta(ge=1, le=500, description="Default 25")] | UnsetType = UNSET


class EntryPage(msgspec.Struct, frozen=True):
    """Entries in the order of their keys, each whole."""

    entries: tuple[EntrySnapshot, ...]
    total: int | UnsetType = UNSET
    """How many fit, from `after` on. Absent where there are too many to look through for tags."""
    next: str | UnsetType = UNSET
    """The key to go on after, where something was left out."""
    latest_version: int | UnsetType = UNSET
    """Of the board, where one was named: watching from there misses nothing."""


class WatchBoard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From where on a board is watched."""

    namespace: Text = DEFAULT
    start_version: Version = 0
    limit: Annotated[int, Meta(ge=1, le=500, description="Default 100")] | UnsetType = UNSET
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS, description="Wait for a change, at most 25000")] = 0


class WatchedBoard(msgspec.Struct, frozen=True):
    """What happened after `start_version`, in order and without gaps."""

    events: tuple[BoardChange, ...]
    next_version: int
    latest_version: int
    truncated_before: int | UnsetType = UNSET
    """The first version that is still shown, where older ones were asked for and are not."""


class DeleteEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which entry, and what is expected there now."""

    key: Text
    expected_version: Annotated[int, Meta(ge=1, le=MOST)] | None = None


class DeletedEntry(msgspec.Struct, frozen=True):
    """Whether something was there, and what."""

    key: str
    deleted: bool
    version: int | UnsetType = UNSET
    """The number of the deletion within the board."""
    previous: EntrySnapshot | UnsetType = UNSET
