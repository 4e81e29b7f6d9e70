"""A board in one unit of work: entries are set and removed there, on a condition if the caller likes, and run out.

An entry that has run out is there for nobody from that moment on. That it is gone is written down later, by whoever
next writes to the board or watches it: nothing needs a sweeper to be right. Every change is one event of the board's
stream, and an entry's version is the number of the event that set it. No store, no tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.board.entry import BoardEntry, board_stream
from handrail.domain.board.keys import Key, key_of, tags_of
from handrail.domain.board.snapshot import brief
from handrail.kernel.errors import BoardConflict, InvalidParams, Refusal
from handrail.kernel.ledger import Actor
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

VALUE = 64 * 1024
"""Bytes of a value as JSON: a board is for what others act on; what is longer belongs into a file it names."""
TAGS = 16
DAY_MS = 24 * 60 * 60 * 1000
"""The longest an entry can be made to last; without an end it lasts until it is removed."""
SWEPT = 100
"""Entries that one call writes off: a board that was left alone for long is cleared in several calls."""
SET, DELETED, EXPIRED = "bb.set", "bb.deleted", "bb.expired"
TIME = Actor("handrail", "auto")
"""Whose doing it is that an entry expires: not that of whoever looks next."""
SAME = "same"
"""Where an event keeps what it did not change, so that the whole entry can be told from the event alone."""


class Wanted(NamedTuple):
    """What an entry is to be. It takes the place of everything that was under its key."""

    key: str
    value: Any
    tags: Sequence[str] = ()
    ttl_ms: int | None = None
    expected: int | None = None
    """The version the caller has seen; 0 where nothing may be there. None: whatever is there."""
    board: str | None = None
    """The board of a key that names none."""


class Failed(NamedTuple):
    """Why one of several entries cannot be set."""

    at: int
    """Its place among them, from 0."""
    refusal: Refusal


class Board:
    """One board, as one unit of work sees and changes it."""

    def __init__(self, unit: UnitOfWork, name: str) -> None:
        self._unit = unit
        self.name = name

    @property
    def version(self) -> int:
        """The number of its newest event, those of this unit included."""
        return self._unit.head_seq(board_stream(self.name))

    def put(self, wanted: Wanted) -> BoardEntry:
        """Sets an entry; refused where another version is there than the caller expects."""
        key, tags = _checked(wanted)
        self.sweep()
        there = self._there(key.id)
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
        """Removes an entry; None where there was none."""
        self.sweep()
        there = self._there(key)
        _check_version(key, there, expected)
        if there is not None:
            self._unit.record(DELETED, removes=(there,))
        return there

    def sweep(self, most: int = SWEPT) -> list[BoardEntry]:
        """Writes off what has run out, the longest gone first: one event each."""
        gone = Query((("namespace", self.name), ("expires_at <", self._unit.now_ms() + 1)), ("expires_at",), most)
        swept = []
        for entry in self._unit.select(BoardEntry, gone):
            if self._unit.get(BoardEntry, entry.id) == entry:  # not what this unit itself has put or removed since
                self._unit.record(EXPIRED, removes=(entry,), actor=TIME)
                swept.append(entry)
        return swept

    def _there(self, key: str) -> BoardEntry | None:
        """What stands under a key. What has run out makes room at once, however much else waits to be swept."""
        found = self._unit.get(BoardEntry, key)
        if found is not None and _has_run_out(found, self._unit.now_ms()):
            self._unit.record(EXPIRED, removes=(found,), actor=TIME)
            return None
        return found


def set_many(unit: UnitOfWork, wanted: Sequence[Wanted]) -> tuple[list[BoardEntry], list[Failed]]:
    """Sets entries of any boards one after the other, and tells which could not be. With a failure among them the
    caller must refuse the whole: only a refusal keeps a unit from being written."""
    entries: list[BoardEntry] = []
    failures: list[Failed] = []
    for place, one in enumerate(wanted):
        try:
            entries.append(Board(unit, key_of(one.key, one.board).board).put(one))
        except Refusal as refusal:
            failures.append(Failed(place, refusal))
    return entries, failures


def standing(unit: UnitOfWork, key: str) -> BoardEntry | None:
    """What stands under a key in full, unless it has run out."""
    found = unit.get(BoardEntry, key)
    return None if found is None or _has_run_out(found, unit.now_ms()) else found


def _has_run_out(entry: BoardEntry, now_ms: int) -> bool:
    return entry.expires_at is not None and entry.expires_at <= now_ms


def _checked(wanted: Wanted) -> tuple[Key, list[str]]:
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
    """The fields that say the same in both; in JSON 1, 1.0 and true differ."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    return {
        name: value for name, value in before.items() if msgspec.json.encode(value) == msgspec.json.encode(after[name])
    }
