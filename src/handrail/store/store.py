"""The store as its users see it: run a function over a unit, read the ledger, verify it, take the last write back.

Engine-free: what it does on SQLite it does on PostgreSQL.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from handrail.kernel.clock import Clock
from handrail.kernel.errors import NothingToUndo, StoreBusy, StoreUnusable
from handrail.kernel.ids import Ids
from handrail.kernel.ledger import EVERYTHING, Actor, Change, Event, Only
from handrail.kernel.records import PAGE
from handrail.store.queries import Query
from handrail.store.reading import Engine, EngineInfo, Reader
from handrail.store.tables import TABLES, Table
from handrail.store.unit import Unit
from handrail.store.writes import NEW_STREAM, NO_HASH, Conflict, Head, encode_body, link

ResultT = TypeVar("ResultT")

POLITE_TRIES = 1
"""Runs of a unit before it asks to be alone. Who has lost once will lose again while the others go on: on a hot
workflow waiting for one's turn is twice as fast."""
TRIES = 8
CROWDED = 16
"""Writing units that wait for their turn at once, after one was in another's way."""
RENEWALS = 30
"""Renewals of a lease in the time it lasts: more would write and change nothing."""
UNDO = "ledger.undo"
ROUTINE = "op."
"""Kinds of events that only say that a call came and went: nobody means them who takes a write back."""
LOOKED_AT = 50
"""Events, the newest of an actor, among which the last write is looked for."""
NEVER_BACK = ("pipeline.", "gate.", "task.claim", "token.", "graph.lock", "graph.unlock", "tx.")
"""Kinds of events that stay: decisions, fences and rights are not made undone behind anybody's back."""


class Store:
    """One store, whatever engine is behind it."""

    def __init__(self, engine: Engine, *, clock: Clock, ids: Ids) -> None:
        self.engine = engine
        self._clock = clock
        self._ids = ids
        self._renewed: dict[str, int] = {}
        self._crowded = 0
        """Units to come that had better wait for their turn: somebody was in the way a moment ago."""

    def info(self) -> EngineInfo:
        return self.engine.info()

    def look(self, actor: Actor, work: Callable[[Unit], ResultT]) -> ResultT:
        """What `work` makes of a look that may take long. It records nothing."""
        with self.engine.reading(aside=True) as reader:
            unit = Unit(reader, actor=actor, now_ms=self._clock.now_ms(), ids=self._ids)
            result = work(unit)
        assert unit.writes() is None, "who only looks writes nothing"
        return result

    def run(self, actor: Actor, work: Callable[[Unit], ResultT], *, writing: bool = False) -> ResultT:
        """Runs `work` and commits what it recorded, all or nothing; again from the top when somebody else was first.

        `writing` says that it will write: where writers have been in each other's way lately, it waits for its turn
        before it reads, instead of reading in vain.
        """
        for attempt in range(TRIES):
            try:
                if attempt < POLITE_TRIES and not (writing and self._crowded > 0):
                    return self._once(actor, work)
                with self.engine.alone():
                    return self._once(actor, work)
            except Conflict:
                self._crowded = CROWDED
                continue
            finally:
                self._crowded -= writing and self._crowded > 0
        raise StoreBusy("too many others write to the same thing at once", hint="call again; nothing was written")

    def _once(self, actor: Actor, work: Callable[[Unit], ResultT]) -> ResultT:
        began = self._clock.now_ms()
        with self.engine.reading() as reader:
            unit = Unit(reader, actor=actor, now_ms=began, ids=self._ids)
            result = work(unit)
        writes = unit.writes()
        if writes is not None:
            self.engine.commit(writes)
        return result

    def renew(self, holder: str, ttl_ms: int) -> None:
        """Renews every lease that `holder` has not lost yet, unless that was done just now. No event: being there is no
        news."""
        now = self._clock.now_ms()
        if not 0 <= now - self._renewed.get(holder, -ttl_ms) < ttl_ms // RENEWALS:
            self.engine.renew(holder, now, now + ttl_ms)
            self._renewed[holder] = now

    def position(self) -> int:
        with self._look() as reader:
            return reader.position()

    @contextlib.contextmanager
    def _look(self) -> Iterator[Reader]:
        """A reading for its own sake: there is no unit that could run again."""
        try:
            with self.engine.reading() as reader:
                yield reader
        except Conflict as lost:
            raise StoreUnusable(str(lost), hint="call again") from lost

    # -- the ledger -------------------------------------------------------------------------------------------------

    def events(self, stream: str, *, after: int = 0, limit: int = PAGE) -> list[Event]:
        with self._look() as reader:
            return reader.events(stream, after, limit)

    def feed(self, *, after: int = 0, limit: int = PAGE, only: Only = EVERYTHING) -> list[Event]:
        with self._look() as reader:
            return reader.feed(after, limit, only)

    def newest(self, limit: int, *, stream: str | None = None, actor: str | None = None) -> list[Event]:
        """The newest events, oldest of them first; of one stream or one actor where asked."""
        with self._look() as reader:
            if stream is not None and actor is not None:
                return reader.newest(limit, Only((stream,), (actor,)))
            if stream is not None:
                return reader.events(stream, max(0, reader.head(stream).seq - limit), limit)
            if actor is not None:
                return reader.last_by(actor, limit)[::-1]
            return reader.newest(limit)

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """True as soon as the ledger holds an event after `position`."""
        return self.engine.wait(position, timeout_s, cancelled)

    def undo(self, actor: Actor) -> Event:
        """Takes back the actor's last write, while it is still the last of its stream. The taking back is an event
        too."""

        def work(unit: Unit) -> Event:
            with self.engine.reading() as reader:
                newest = [
                    event for event in reader.last_by(actor.name, LOOKED_AT) if not event.kind.startswith(ROUTINE)
                ]
                if not newest or newest[0].kind == UNDO:
                    raise NothingToUndo(f"{actor.name} has written nothing that could be taken back")
                event = newest[0]
                if event.kind.startswith(NEVER_BACK):
                    raise NothingToUndo(
                        f"{event.kind} is not taken back: decisions, claims and rights only move forward",
                        hint="answer the gate that waits, release the task, or make what is missing anew",
                    )
                head = reader.head(event.stream)
            if head.seq != event.seq:
                raise NothingToUndo(
                    f"{event.kind} ({event.stream} {event.seq}) is not the last write to {event.stream} any more",
                    hint=f"{head.seq - event.seq} later events stand on it; write the correction instead",
                )
            unit.expect(event.stream, head)  # this head and no later one: nobody may have come in between
            back = [Change(change.table, change.key, change.before, change.after) for change in reversed(event.changes)]
            unit.record_changes(event.stream, UNDO, back, {"undone": event.seq, "kind": event.kind})
            return event

        return self.run(actor, work)

    # -- verification -----------------------------------------------------------------------------------------------

    def verify(self, progress: Callable[[int], None] = lambda _: None) -> list[str]:
        """What ledger and tables disagree about: gaps, broken hashes, rows that no event explains. Empty when sound."""
        problems: list[str] = []
        with self._look() as reader:
            heads = dict(reader.streams())
            state = _fold(reader, heads, problems, progress)
            for table in TABLES:
                told = state[table.name]
                rows: dict[str, dict[str, Any]] = {}
                for record, head in _rows(reader, table, 0, reader.count(table, Query()), problems, told):
                    rows[record.id] = table.document_of(record)
                    if head != heads.get(record.stream, NEW_STREAM):
                        problems.append(f"{table.name} {record.id}: its row stands in another stream than it should")
                problems.extend(_differences(table, told, rows))
        return problems


_Rows = dict[str, dict[str, Any]]


def _fold(
    reader: Reader, heads: dict[str, Head], problems: list[str], progress: Callable[[int], None]
) -> dict[str, _Rows]:
    """The tables as the events alone say they are. Notes every stream whose chain is broken."""
    state: dict[str, _Rows] = {table.name: {} for table in TABLES}
    seen = 0
    for stream, head in heads.items():
        previous: str | None = NO_HASH
        expected, position = 1, 0
        for event in _all_events(reader, stream, problems):
            seen += 1
            if seen % PAGE == 0:
                progress(seen)
            seq = event if isinstance(event, int) else event.seq
            if seq != expected:
                problems.append(f"{stream}: event {expected} is missing")
            expected = seq + 1
            if isinstance(event, int):  # it cannot be read, so what comes after it cannot be held against it
                previous = None
                continue
            if previous is not None and event.hash != link(previous, stream, event.seq, event, encode_body(event)):
                problems.append(f"{stream}: event {event.seq} was changed after it was written")
            if event.position <= position:
                problems.append(f"{stream}: event {event.seq} stands before the one it follows")
            previous, position = event.hash, event.position
            for change in event.changes:
                _apply(state.get(change.table, {}), change)
        if (expected - 1, head.hash if previous is None else previous) != head:
            problems.append(f"{stream}: its head says {head.seq} events, the ledger has {expected - 1}")
    return state


def _all_events(reader: Reader, stream: str, problems: list[str]) -> Iterator[Event | int]:
    """The events of a stream in order; of one that cannot be read, its number."""
    after = 0
    while True:
        try:
            page = _whole_events(reader, stream, after, PAGE)
        except StoreUnusable as damaged:
            if "seq" not in damaged.details:
                raise
            problems.append(damaged.message)
            yield from _readable(reader, stream, after)
            yield damaged.details["seq"]
            after = damaged.details["seq"]
        else:
            if not page:
                return
            yield from page
            after = page[-1].seq


def _readable(reader: Reader, stream: str, after: int) -> Iterator[Event]:
    """The events before one that cannot be read, one by one."""
    with contextlib.suppress(StoreUnusable):
        while found := _whole_events(reader, stream, after, 1):
            yield found[0]
            after = found[0].seq


def _whole_events(reader: Reader, stream: str, after: int, limit: int) -> list[Event]:
    """Events of a stream, each read to its end: what is damaged must show here and not where it is first looked at."""
    found = reader.events(stream, after, limit)
    for event in found:
        len(event.changes)
    return found


def _rows(
    reader: Reader, table: Table, offset: int, count: int, problems: list[str], told: _Rows
) -> list[tuple[Any, Head]]:
    """The rows of a table that can be read. One that cannot is noted and looked no further into."""
    if not count:
        return []
    try:
        return reader.select(table, Query(limit=count, offset=offset))
    except StoreUnusable as damaged:
        if "key" not in damaged.details:
            raise
        if count == 1:
            problems.append(damaged.message)
            told.pop(damaged.details["key"], None)
            return []
    half = count // 2
    return [
        *_rows(reader, table, offset, half, problems, told),
        *_rows(reader, table, offset + half, count - half, problems, told),
    ]


def _apply(rows: _Rows, change: Change) -> None:
    if change.after is None:
        rows.pop(change.key, None)
    else:
        rows[change.key] = {**rows.get(change.key, {}), **change.after}


def _differences(table: Table, told: _Rows, rows: _Rows) -> Iterator[str]:
    for key in sorted(told.keys() - rows.keys()):
        yield f"{table.name} {key}: the ledger tells of it, the table has no row"
    for key in sorted(rows.keys() - told.keys()):
        yield f"{table.name} {key}: the table has a row that no event explains"
    for key in sorted(told.keys() & rows.keys()):
        unlike = [
            column
            for column in rows[key]
            if column in told[key] and told[key][column] != rows[key][column] and column not in table.unlogged
        ]
        if unlike:
            yield f"{table.name} {key}: ledger and table disagree about {', '.join(unlike)}"
