"""The store as its users see it: run a function over a unit, read the ledger, verify it, take the last write back.

Engine-free: what it does on SQLite it does on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from handrail.kernel.clock import Clock
from handrail.kernel.errors import NothingToUndo, StoreBusy
from handrail.kernel.ids import Ids
from handrail.kernel.ledger import Actor, Change, Event
from handrail.store.queries import Query
from handrail.store.reading import Engine, EngineInfo, Reader
from handrail.store.tables import BY_NAME, TABLES
from handrail.store.unit import Unit
from handrail.store.writes import NO_HASH, Conflict, encode_body, link

ResultT = TypeVar("ResultT")

POLITE_TRIES = 3
"""Runs of a unit before it asks to be alone."""
TRIES = 8
PAGE = 1000
UNDO = "ledger.undo"


class Store:
    """One store, whatever engine is behind it."""

    def __init__(self, engine: Engine, *, clock: Clock, ids: Ids) -> None:
        self.engine = engine
        self._clock = clock
        self._ids = ids

    def info(self) -> EngineInfo:
        return self.engine.info()

    def run(self, actor: Actor, work: Callable[[Unit], ResultT]) -> ResultT:
        """Runs `work` and commits what it recorded, all or nothing; again from the top when somebody else was first."""
        for attempt in range(TRIES):
            try:
                if attempt < POLITE_TRIES:
                    return self._once(actor, work)
                with self.engine.alone():
                    return self._once(actor, work)
            except Conflict:
                continue
        raise StoreBusy("too many others write to the same thing at once", hint="call again; nothing was written")

    def _once(self, actor: Actor, work: Callable[[Unit], ResultT]) -> ResultT:
        with self.engine.reading() as reader:
            unit = Unit(reader, actor=actor, clock=self._clock, ids=self._ids)
            result = work(unit)
        writes = unit.writes()
        if writes is not None:
            self.engine.commit(writes)
        return result

    # -- the ledger -------------------------------------------------------------------------------------------------

    def events(self, stream: str, *, after: int = 0, limit: int = PAGE) -> list[Event]:
        with self.engine.reading() as reader:
            return reader.events(stream, after, limit)

    def feed(self, *, after: int = 0, limit: int = PAGE) -> list[Event]:
        with self.engine.reading() as reader:
            return reader.feed(after, limit)

    def newest(self, limit: int, *, stream: str | None = None, actor: str | None = None) -> list[Event]:
        """The newest events, oldest of them first; of one stream or one actor where asked."""
        with self.engine.reading() as reader:
            if stream is not None:
                found = reader.events(stream, max(0, reader.head(stream).seq - limit), limit)
                return [event for event in found if actor is None or event.actor == actor]
            if actor is not None:
                return reader.last_by(actor, limit)[::-1]
            return reader.feed(max(0, reader.position() - limit), limit)

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """True as soon as the ledger holds an event after `position`."""
        return self.engine.wait(position, timeout_s, cancelled)

    def undo(self, actor: Actor) -> Event:
        """Takes back the actor's last write, while it is still the last of its stream. The taking back is an event
        too."""

        def work(unit: Unit) -> Event:
            with self.engine.reading() as reader:
                newest = reader.last_by(actor.name, 1)
                if not newest or newest[0].kind == UNDO:
                    raise NothingToUndo(f"{actor.name} has written nothing that could be taken back")
                event = newest[0]
                head = reader.head(event.stream)
            if head.seq != event.seq:
                raise NothingToUndo(
                    f"{event.kind} ({event.stream} {event.seq}) is not the last write to {event.stream} any more",
                    hint=f"{head.seq - event.seq} later events stand on it; write the correction instead",
                )
            unit.expect(event.stream)
            back = [Change(change.table, change.key, change.before, change.after) for change in reversed(event.changes)]
            unit.record_changes(event.stream, UNDO, back, {"undone": event.seq, "kind": event.kind})
            return event

        return self.run(actor, work)

    # -- verification -----------------------------------------------------------------------------------------------

    def verify(self, progress: Callable[[int], None] = lambda _: None) -> list[str]:
        """What ledger and tables disagree about: gaps, broken hashes, rows that no event explains. Empty when sound."""
        problems: list[str] = []
        with self.engine.reading() as reader:
            state = _fold(reader, problems, progress)
            for table in TABLES:
                rows = {record.id: table.document_of(record) for record, _ in reader.select(table, Query())}
                problems.extend(_differences(table.name, state[table.name], rows))
        return problems


def _fold(reader: Reader, problems: list[str], progress: Callable[[int], None]) -> dict[str, dict[str, dict[str, Any]]]:
    """The tables as the events alone say they are. Notes every stream whose chain is broken."""
    state: dict[str, dict[str, dict[str, Any]]] = {table.name: {} for table in TABLES}
    seen = 0
    for stream, head in list(reader.streams()):
        previous, expected = NO_HASH, 1
        for event in _all_events(reader, stream):
            seen += 1
            if event.seq != expected:
                problems.append(f"{stream}: event {expected} is missing")
                expected = event.seq
            body = encode_body(event)  # type: ignore[arg-type]
            if event.hash != link(previous, stream, event.seq, event, body):
                problems.append(f"{stream}: event {event.seq} was changed after it was written")
            previous, expected = event.hash, expected + 1
            for change in event.changes:
                _apply(state[change.table], change)
            if seen % PAGE == 0:
                progress(seen)
        if (expected - 1, previous) != tuple(head):
            problems.append(f"{stream}: its head says {head.seq} events, the ledger has {expected - 1}")
    return state


def _all_events(reader: Reader, stream: str) -> Iterator[Event]:
    after = 0
    while page := reader.events(stream, after, PAGE):
        yield from page
        after = page[-1].seq


def _apply(rows: dict[str, dict[str, Any]], change: Change) -> None:
    if change.after is None:
        rows.pop(change.key, None)
    else:
        rows[change.key] = {**rows.get(change.key, {}), **change.after}


def _differences(table: str, told: dict[str, dict[str, Any]], rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    assert table in BY_NAME
    for key in sorted(told.keys() - rows.keys()):
        yield f"{table} {key}: the ledger tells of it, the table has no row"
    for key in sorted(rows.keys() - told.keys()):
        yield f"{table} {key}: the table has a row that no event explains"
    for key in sorted(told.keys() & rows.keys()):
        if told[key] != rows[key]:
            columns = ", ".join(column for column in rows[key] if told[key].get(column) != rows[key][column])
            yield f"{table} {key}: ledger and table disagree about {columns}"
