"""What is appended and followed: entries of a board, an event and a row each. Through units, and as plain rows."""

from __future__ import annotations

from collections.abc import Callable

from handrail.domain.board.entry import BoardEntry, board_stream
from handrail.kernel.ledger import Actor, Change, Event, NewEvent, Only
from handrail.kernel.records import where
from handrail.outside.world import RandomIds, SystemClock
from handrail.store.ports import Engine
from handrail.store.store import Store
from handrail.store.tables import BY_RECORD
from handrail.store.unit import Unit
from handrail.store.writes import NEW_STREAM, StoredEvent, chained

ACTOR = Actor("bench", "cli")
NOTED = "bb.set"
KEYS = 200
"""Entries of a board: the units go round them."""
PAGE = 250
RARE, RARELY = "-rarely", 10_000
"""Python looks for garbage after every 700 objects, and a page of events has 1,500."""
FILLED, FILLED_TOGETHER = 40_000, 100
FOLLOWED = "followed"
"""The board that has half of the events of a ledger that is followed."""
_AT_MS = 1_790_000_000_000
_VALUE = {"value": {"state": "ready", "note": "Read the failing test, find the cause, correct it.", "tries": 3}}

Row = tuple[object, ...]
Raw = tuple[StoredEvent, Row]
Read = Callable[[Unit, Event | None], list[Event]]
"""The next page after an event."""


def store_over(engine: Engine) -> Store:
    clock = SystemClock()
    return Store(engine, clock=clock, ids=RandomIds(clock))


def entry(board: str, number: int) -> BoardEntry:
    return BoardEntry(
        id=f"{board}:key_{number % KEYS}",
        namespace=board,
        value=_VALUE,
        tags=["measured"],
        version=number,
        set_by=ACTOR.name,
        created_at=_AT_MS,
        updated_at=_AT_MS + number,
        expires_at=None,
    )


class Appends:
    """Units of so many events, one after the other, on one board."""

    def __init__(self, store: Store, board: str, size: int) -> None:
        self._store = store
        self._board = board
        self._size = size
        with store.engine.reading() as reader:
            self._number = reader.head(board_stream(board)).seq

    def __call__(self) -> None:
        self._store.run(ACTOR, self._work, writing=True)
        self._number += self._size

    def _work(self, unit: Unit) -> None:
        entries = [entry(self._board, self._number + place) for place in range(1, self._size + 1)]
        if len(entries) > 1:  # who changes many reads them with one question
            unit.select(BoardEntry, where(id=tuple(made.id for made in entries)))
        for made in entries:
            unit.record(NOTED, made)


class RawAppends:
    """The same events and rows, ready to be inserted."""

    def __init__(self, board: str) -> None:
        self._board = board
        self._head = NEW_STREAM
        self._number = 0

    def next(self, count: int) -> list[Raw]:
        return [self._one() for _ in range(count)]

    def _one(self) -> Raw:
        self._number += 1
        made = entry(self._board, self._number)
        after = {"version": made.version, "updated_at": made.updated_at}
        before = {name: max(0, value - KEYS) for name, value in after.items()}
        change = Change("board", made.id, after, before)
        event = NewEvent(NOTED, ACTOR.name, ACTOR.channel, made.updated_at, {}, (change,))
        written = chained(made.stream, self._head, [event])
        self._head = written.head
        return written.events[0], BY_RECORD[BoardEntry].row_of(made)


def fill(store: Store) -> None:
    """A ledger to follow, if it is not there yet: half of it on one board, half on ten others."""
    if store.position():
        return
    boards = [Appends(store, f"other_{number}", FILLED_TOGETHER) for number in range(10)]
    followed = Appends(store, FOLLOWED, FILLED_TOGETHER)
    for number in range(FILLED // FILLED_TOGETHER):
        (followed if number % 2 else boards[number // 2 % 10])()


def _looked_at(page: list[Event]) -> list[Event]:
    """A page whose changes somebody has looked at."""
    for event in page:
        len(event.changes)
    return page


READS: dict[str, Read] = {
    "feed": lambda unit, last: unit.feed(last.position if last else 0, PAGE),
    "feed-changes": lambda unit, last: _looked_at(unit.feed(last.position if last else 0, PAGE)),
    "stream": lambda unit, last: unit.events(board_stream(FOLLOWED), last.seq if last else 0, PAGE),
    "feed-stream": lambda unit, last: unit.feed(
        last.position if last else 0, PAGE, Only(streams=(board_stream(FOLLOWED),))
    ),
    "feed-family": lambda unit, last: unit.feed(last.position if last else 0, PAGE, Only(kinds=("bb.",))),
}


class Watch:
    """The next page at every call; after the last, the first again."""

    def __init__(self, store: Store, read: Read) -> None:
        self._store = store
        self._read = read
        self._last: Event | None = None

    def __call__(self) -> None:
        page = self._store.run(ACTOR, lambda unit: self._read(unit, self._last))
        self._last = page[-1] if len(page) == PAGE else None


def problems_of(engine: Engine, acknowledged: int) -> list[str]:
    """What is wrong with a ledger that was appended to."""
    store = store_over(engine)
    found = sum(event.kind == NOTED for event in store.feed(limit=2**40))
    missing = [f"{acknowledged} events were acknowledged, {found} are there"] if found != acknowledged else []
    return [*engine.check(), *store.verify(), *missing]
