"""A board in one unit of work: entries are set and removed, optionally on condition of their version, and expire.

An expired entry is gone for everybody from that moment on. That it is gone gets recorded later, by the next call that
writes to the board or watches it, so correctness needs no sweeper. Every change is one event in the board's stream, and
an entry's version is the number of the event that set it. No store, no tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.board.entry import BoardEntry, Key, board_stream, brief, key_of, tags_of
from handrail.kernel.errors import BoardConflict, InvalidParams, Refusal
from handrail.kernel.ledger import HANDRAIL
from handrail.kernel.records import Query, UnitOfWork

VALUE = 64 * 1024
"""The most bytes of a value as JSON. A board is for what others act on; anything longer belongs in a file that the
entry names."""
TAGS = 16
SWEPT = 100
"""How many expired entries one call removes: a board that was long left alone is cleared over several calls."""
SET, DELETED, EXPIRED = "bb.set", "bb.deleted", "bb.expired"
TIME = HANDRAIL
"""The actor of an expiry, rather than whoever happens to look next."""
SAME = "same"
"""The member of an event's data that keeps what it did not change, so that the event alone gives the whole entry."""


class EntryUpdate(NamedTuple):
    """What an entry should become. It replaces everything that was under its key."""

    key: str
    value: Any
    tags: Sequence[str] = ()
    ttl_ms: int | None = None
    expected: int | None = None
    """The version the caller has seen; 0 means that there must be no entry, None that any will do."""
    board: str | None = None
    """The board to use for a key that names none."""


class EntryRefused(NamedTuple):
    """Why one of several entries cannot be set."""

    at: int
    """Its index among them."""
    refusal: Refusal


class Board:
    """One board, as one unit of work sees and changes it."""

    def __init__(self, unit: UnitOfWork, name: str) -> None:
        self._unit = unit
        self.name = name

    @property
    def version(self) -> int:
        """The number of its newest event, including those of this unit."""
        return self._unit.head_seq(board_stream(self.name))

    def put(self, wanted: EntryUpdate) -> BoardEntry:
        """Sets an entry; refused if the current version is not the one the caller expects."""
        key, tags = _checked_key_and_tags(wanted)
        self.sweep()
        there = self._unexpired_entry(key.id)
        _check_version(key.id, there, wanted.expected)
        now = self._unit.now_ms()
        entry = BoardEntry(
            id=key.id,
            namespace=self.name,
            value={"value": wanted.value},
            tags=tags,
            version=self.version + 1,
            set_by=self._unit.actor.name,
            created_at=there.created_at if there is not None else now,
            updated_at=now,
            expires_at=None if wanted.ttl_ms is None else now + wanted.ttl_ms,
        )
        self._unit.record(SET, entry, data={SAME: _unchanged(there, entry)} if there is not None else None)
        return entry

    def remove(self, key: str, expected: int | None = None) -> BoardEntry | None:
        """Removes an entry; None if there was none."""
        self.sweep()
        there = self._unexpired_entry(key)
        _check_version(key, there, expected)
        if there is not None:
            self._unit.record(DELETED, removes=(there,))
        return there

    def sweep(self, most: int = SWEPT) -> list[BoardEntry]:
        """Removes expired entries, those expired longest first, with one event each."""
        gone = Query((("namespace", self.name), ("expires_at <", self._unit.now_ms() + 1)), ("expires_at",), most)
        swept = []
        for entry in self._unit.select(BoardEntry, gone):
            if self._unit.get(BoardEntry, entry.id) == entry:  # unless this unit has itself set or removed it
                self._unit.record(EXPIRED, removes=(entry,), actor=TIME)
                swept.append(entry)
        return swept

    def _unexpired_entry(self, key: str) -> BoardEntry | None:
        """The entry under a key. An expired one makes room at once, however many others wait to be swept."""
        found = self._unit.get(BoardEntry, key)
        if found is not None and _has_run_out(found, self._unit.now_ms()):
            self._unit.record(EXPIRED, removes=(found,), actor=TIME)
            return None
        return found


def set_many(unit: UnitOfWork, wanted: Sequence[EntryUpdate]) -> tuple[list[BoardEntry], list[EntryRefused]]:
    """Sets entries on any boards one after the other, and returns which failed. If any did, the caller must refuse the
    whole: only a refusal keeps a unit from being written."""
    entries: list[BoardEntry] = []
    failures: list[EntryRefused] = []
    for place, one in enumerate(wanted):
        try:
            entries.append(Board(unit, key_of(one.key, one.board).board).put(one))
        except Refusal as refusal:
            failures.append(EntryRefused(place, refusal))
    return entries, failures


def standing(unit: UnitOfWork, key: str) -> BoardEntry | None:
    """The entry under a full key, unless it has expired."""
    found = unit.get(BoardEntry, key)
    return None if found is None or _has_run_out(found, unit.now_ms()) else found


def _has_run_out(entry: BoardEntry, now_ms: int) -> bool:
    return entry.expires_at is not None and entry.expires_at <= now_ms


def _checked_key_and_tags(wanted: EntryUpdate) -> tuple[Key, list[str]]:
    key, tags = key_of(wanted.key, wanted.board), tags_of(wanted.tags)
    if len(tags) > TAGS:
        raise InvalidParams(f"there are {len(tags)} tags, and {TAGS} is the most", hint="put the rest into the value")
    try:
        size = len(msgspec.json.encode(wanted.value))
    except (RecursionError, ValueError) as problem:
        raise InvalidParams(f"the value cannot be kept as JSON: {problem}", hint="write it as a text") from None
    if size > VALUE:
        raise InvalidParams(
            f"the value has {size} bytes as JSON, and {VALUE} is the most", hint="put it into a file and name that"
        )
    return key, tags


def _check_version(key: str, there: BoardEntry | None, expected: int | None) -> None:
    version = there.version if there is not None else 0
    if expected is None or expected == version:
        return
    if there is None:
        raise BoardConflict(
            f"{key} is not there, and version {expected} was expected",
            hint="it was removed or has run out; expected_version 0 sets it anew",
            key=key,
            entry=None,
        )
    raise BoardConflict(
        f"{key} is at version {version}, and {f'version {expected}' if expected else 'nothing'} was expected there",
        hint=f"look at what {there.set_by} set; expected_version {version} then stands for it",
        key=key,
        entry=msgspec.to_builtins(brief(there)),
    )


def _unchanged(old: BoardEntry, new: BoardEntry) -> dict[str, Any]:
    """The fields with the same value in both; as JSON text, 1, 1.0 and true differ."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    return {
        name: value for name, value in before.items() if msgspec.json.encode(value) == msgspec.json.encode(after[name])
    }
