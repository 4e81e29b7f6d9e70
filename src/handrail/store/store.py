"""The store as its users see it: run a function over a unit, read the ledger, verify it, undo the last write.

Engine-free: it behaves the same on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from handrail.domain.registry.event_kinds import is_write
from handrail.kernel.clock import Clock
from handrail.kernel.errors import NothingToUndo, StoreAway, StoreBusy, StoreUnusable
from handrail.kernel.ids import Ids
from handrail.kernel.ledger import EVERYTHING, Actor, Change, Event, Only
from handrail.kernel.provenance import MachineKey
from handrail.kernel.records import PAGE
from handrail.store.ports import Engine, EngineInfo, Reader
from handrail.store.problems import LEDGER, Problem
from handrail.store.unit import Unit
from handrail.store.verification import problems_in, problems_in_newest
from handrail.store.writes import Conflict, Head

ResultT = TypeVar("ResultT")

POLITE_TRIES = 1
"""How often a unit runs before it asks to be alone. A unit that lost once will lose again while the others continue: on
a hot workflow, waiting for a turn is twice as fast."""
TRIES = 8
CROWDED = 16
"""How many writing units wait for their turn after one conflict."""
RENEWALS = 30
"""Renewals of a lease within its lifetime; more would write and change nothing."""
BACK_S = 0.25
"""How often somebody who waits for news looks whether a store that is away is back."""
HOLDERS, HOLDER = 10_000, 200
"""How many holders' last renewals are remembered, and how long a remembered name may be: anybody may call under any
name. When the limit is reached all are forgotten, which costs each of them one renewal."""
UNDO = "ledger.undo"
LOOKED_AT = 50
"""How many of an actor's newest events are searched for the last write."""


class Store:
    """One store, whatever engine is behind it."""

    def __init__(self, engine: Engine, *, clock: Clock | None = None, ids: Ids, key: MachineKey | None = None) -> None:
        """`clock`: another clock in place of the engine's own. `key` is what this machine vouches with; without one,
        everything in the store is believed."""
        self.engine = engine
        self._key = key
        self._clock = clock
        self._ids = ids
        self._renewed: dict[str, int] = {}
        self._pause = threading.Event()
        self._crowded = 0
        """How many of the next writing units should wait for their turn, because there was a conflict a moment ago."""

    def info(self) -> EngineInfo:
        return self.engine.info()

    def mark(self) -> str:
        """By which this machine recognises the store; empty if it needs no mark."""
        if self._key is None:
            return ""
        with self._reading() as reader:
            return reader.note(self._key.mark_name) or ""

    def look(self, actor: Actor, work: Callable[[Unit], ResultT]) -> ResultT:
        """Runs `work` on a read that may take long, and returns its result. It must not record anything."""
        with self.engine.reading(aside=True) as reader:
            unit = Unit(reader, actor=actor, now_ms=self._given_ms(), ids=self._ids, key=self._key)
            result = work(unit)
        assert unit.writes() is None, "who only looks writes nothing"
        return result

    def run(self, actor: Actor, work: Callable[[Unit], ResultT], *, writing: bool = False) -> ResultT:
        """Runs `work` and commits what it recorded, all or nothing; starts over if somebody else committed first.

        `writing` announces that it will write: if writers have collided lately, it waits for its turn before it reads,
        instead of reading something that will be stale.
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
        began = self._given_ms()
        with self.engine.reading() as reader:
            unit = Unit(reader, actor=actor, now_ms=began, ids=self._ids, key=self._key)
            result = work(unit)
        writes = unit.writes()
        if writes is not None:
            self.engine.commit(writes)
        return result

    def renew(self, holder: str, ttl_ms: int) -> None:
        """Renews every lease that `holder` has not lost yet, unless it did so just now. No event: presence is not
        news."""
        given = self._given_ms()
        now = time.monotonic_ns() // 1_000_000 if given is None else given
        if not 0 <= now - self._renewed.get(holder, -ttl_ms) < ttl_ms // RENEWALS:
            self.engine.renew(holder, ttl_ms, given)
            if len(self._renewed) >= HOLDERS:
                self._renewed.clear()
            if len(holder) <= HOLDER:
                self._renewed[holder] = now

    def _given_ms(self) -> int | None:
        return None if self._clock is None else self._clock.now_ms()

    def clock_remark(self) -> str | None:
        """What is wrong with this machine's clock, as far as the store could tell when it was last used."""
        return self.engine.clock_remark()

    def position(self) -> int:
        with self._reading() as reader:
            return reader.position()

    @contextlib.contextmanager
    def _reading(self, *, aside: bool = False) -> Iterator[Reader]:
        """A read outside a unit: there is nothing that could run again after a conflict."""
        try:
            with self.engine.reading(aside=aside) as reader:
                yield reader
        except Conflict as lost:
            raise StoreAway(str(lost), hint="call again") from lost

    # -- the ledger -------------------------------------------------------------------------------------------------

    def events(self, stream: str, *, after: int = 0, limit: int = PAGE) -> list[Event]:
        with self._reading() as reader:
            return reader.events(stream, after, limit)

    def feed(self, *, after: int = 0, limit: int = PAGE, only: Only = EVERYTHING) -> list[Event]:
        with self._reading() as reader:
            return reader.feed(after, limit, only)

    def newest(self, limit: int, *, stream: str | None = None, actor: str | None = None) -> list[Event]:
        """The newest events, oldest first; optionally of one stream or one actor."""
        with self._reading() as reader:
            if stream is not None and actor is not None:
                return reader.newest(limit, Only((stream,), (actor,)))
            if stream is not None:
                return reader.events(stream, max(0, reader.head(stream).seq - limit), limit)
            if actor is not None:
                return reader.last_by(actor, limit)[::-1]
            return reader.newest(limit)

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """True as soon as the ledger holds an event after `position`. Nothing is new in a store that is away: raises
        StoreAway only if it has not come back when the time is up."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return self.engine.wait(position, max(0.0, deadline - time.monotonic()), cancelled)
            except StoreAway:
                if cancelled() or time.monotonic() >= deadline:
                    raise
                self._pause.wait(min(BACK_S, max(0.0, deadline - time.monotonic())))

    def undo(self, actor: Actor) -> Event:
        """Undoes the actor's last write that still stands, provided nothing later in its stream depends on it. Called
        again, it goes one step further back. Undoing is an event too."""

        def work(unit: Unit) -> Event:
            with self.engine.reading() as reader:
                event = _last_standing(reader, actor)
                head = reader.head(event.stream)
                later = _standing_on(reader, event, head)
            if later:
                raise NothingToUndo(
                    f"{event.kind} ({event.stream} {event.seq}) is not the last write to {event.stream} any more",
                    hint=f"{later} later events stand on it; write the correction instead",
                    position=event.position,
                )
            unit.expect(event.stream, head)  # exactly this head: nobody may have written in between
            back = [Change(change.table, change.key, change.before, change.after) for change in reversed(event.changes)]
            unit.record_changes(event.stream, UNDO, back, {"undone": event.seq, "kind": event.kind})
            return event

        return self.run(actor, work)

    # -- verification -----------------------------------------------------------------------------------------------

    def verify(self, progress: Callable[[int], None] = lambda _: None) -> list[str]:
        """Everything that is wrong: what the engine finds, gaps, broken hashes, rows that no event explains. Empty when
        sound."""
        return self._problems(lambda reader: problems_in(reader, progress))

    def check(self) -> list[str]:
        """What a quicker look finds: the engine's findings, and the newest part of the ledger."""
        return self._problems(problems_in_newest)

    def _problems(self, look: Callable[[Reader], list[str]]) -> list[str]:
        problems = self.engine.check()
        try:
            with self._reading(aside=True) as reader:
                return problems + look(reader)
        except StoreUnusable as refusal:
            if not refusal.details.get("damaged"):
                raise
            return [*problems, Problem(LEDGER, refusal.message)]


def _last_standing(reader: Reader, actor: Actor) -> Event:
    """The actor's last write that was not undone. Raises NothingToUndo if there is none, or if it cannot be undone."""
    gone: set[tuple[str, int]] = set()
    for event in reader.last_by(actor.name, LOOKED_AT):
        if event.kind == UNDO:
            gone.add((event.stream, event.data["undone"]))
        elif is_write(event) and (event.stream, event.seq) not in gone:
            return event
    if gone:
        raise NothingToUndo(
            f"what {actor.name} wrote last is all taken back",
            hint=f"the last {LOOKED_AT} events of an actor are looked through; `handrail log` shows them",
        )
    raise NothingToUndo(
        f"{actor.name} has written nothing that could be taken back",
        hint="only your own writes can be; `handrail log` shows who wrote what",
    )


def _standing_on(reader: Reader, event: Event, head: Head) -> int:
    """How many later events of its stream stand. An undone event does not count, nor does the undo."""
    count = head.seq - event.seq
    if count > LOOKED_AT:
        return count
    later = reader.events(event.stream, event.seq, count) if count else []
    gone = {one.data["undone"] for one in later if one.kind == UNDO}
    return sum(one.kind != UNDO and one.seq not in gone for one in later)
