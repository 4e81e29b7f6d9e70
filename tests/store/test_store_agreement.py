"""The stores agree: one machine drives all of them through the same units and holds their answers side by side.

The memory store is the model. Whatever it says of results, refusals, rows, events and hashes, the engines say too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from handrail.domain.work.repository import Repository
from handrail.domain.work.task import Task
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import NothingToUndo, Refusal, StoreBusy
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Only
from handrail.store.memory import MemoryEngine
from handrail.store.ports import Engine
from handrail.store.postgres import PostgresEngine
from handrail.store.queries import Query
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.store.tables import TABLES
from handrail.store.unit import Unit
from handrail.store.writes import KeyWrite
from tests.store.ground import VERSION
from tests.store.records import ANNA, BEN, checkpoint, lease, repository, task, workflow
from tests.store.server import empty

TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=6)
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
DOCUMENT = st.dictionaries(TEXT, JSON, max_size=3)
STREAMS = st.sampled_from(["wf_1", "wf_2", "wf_3"])
NAMES = st.sampled_from(["alpha", "Beta", "äöü", "", "\U0001f6e0"])
MAYBE = st.none() | NAMES
ACTORS = st.sampled_from([ANNA, BEN])
SOME_STREAMS = st.lists(STREAMS, max_size=2).map(tuple)
SOME_KINDS = st.lists(st.sampled_from(["thing.", "thing.c", "lease.", "repo", "ledger."]), max_size=2).map(tuple)
Step = Callable[[Unit], Any]


@st.composite
def records(draw: st.DrawFn, stream: str) -> Any:
    """A record that lives in this stream. Few ids and names, so that they meet."""
    number = draw(st.integers(1, 3))
    kind = draw(st.sampled_from(["workflow", "task", "task", "lease", "checkpoint"]))
    if kind == "workflow":
        return workflow(
            stream,
            name=draw(TEXT),
            plan=draw(st.none() | DOCUMENT),
            repository_path=draw(MAYBE),
            updated_at=draw(NUMBER),
        )
    if kind == "lease":
        return lease(f"{stream}.lease_{number}", stream=stream, holder=draw(MAYBE), fence=draw(NUMBER))
    if kind == "checkpoint":
        return checkpoint(f"{stream}.cp_{number}", workflow_id=stream, task_id=stream, sequence=draw(st.integers(1, 2)))
    return task(
        f"{stream}.task_{number}",
        workflow_id=stream,
        name=draw(NAMES),
        outcome=draw(MAYBE),
        unmet=draw(st.integers(0, 2)),
        context=draw(DOCUMENT),
        depends_on=draw(st.lists(NAMES, max_size=2)),
    )


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """What may be asked of tasks."""
    conditions: list[tuple[str, Any]] = []
    if draw(st.booleans()):
        conditions.append(("outcome", draw(MAYBE | st.lists(MAYBE, max_size=3).map(tuple))))
    if draw(st.booleans()):
        conditions.append(("unmet", draw(st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2).map(tuple))))
    if draw(st.booleans()):
        conditions.append(("stream", draw(STREAMS)))
    columns = draw(
        st.lists(st.sampled_from(["name", "outcome", "unmet", "id", "workflow_id"]), max_size=3, unique=True)
    )
    order = tuple(draw(st.sampled_from(["", "-"])) + column for column in columns)
    return Query(tuple(conditions), order, draw(st.none() | st.integers(0, 4)), draw(st.integers(0, 3)))


class Stores(RuleBasedStateMachine):
    """Several stores that are told the same."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.stores: dict[str, Store] = {}
        self.clock = FixedClock()
        self.used: set[str] = set()

    def engines(self) -> Iterator[tuple[str, Engine]]:
        folder = Path(self.stack.enter_context(TemporaryDirectory()))
        yield "memory", MemoryEngine()
        yield "sqlite", SqliteEngine(folder / "handrail.db", version=VERSION)

    @initialize()
    def open(self) -> None:
        for name, engine in self.engines():
            self.stack.callback(engine.close)
            self.stores[name] = Store(engine, clock=self.clock, ids=CountingIds())

    def teardown(self) -> None:
        self.stack.close()

    def all_say(self, ask: Callable[[Store], Any]) -> Any:
        """What they all answer; a refusal is an answer too."""

        def answer(store: Store) -> Any:
            try:
                return ask(store)
            except Refusal as refused:
                return (type(refused), refused.message)

        answers = {name: answer(store) for name, store in self.stores.items()}
        expected = answers["memory"]
        for name, given in answers.items():
            assert given == expected, f"{name} disagrees"
            assert repr(given) == repr(expected), f"{name} disagrees about a type"
        return expected

    @rule(data=st.data(), stream=STREAMS, actor=ACTORS)
    def write(self, data: st.DataObject, stream: str, actor: Any) -> None:
        """One event, with rows that are put or removed. Names that meet are a conflict that never resolves."""
        puts = data.draw(st.lists(records(stream), max_size=4, unique_by=lambda record: record.id))
        removes = [
            record
            for record in data.draw(st.lists(records(stream), max_size=2, unique_by=lambda record: record.id))
            if record.id not in {known.id for known in puts}
        ]
        if not puts and not removes:
            return
        note = data.draw(DOCUMENT)

        def work(unit: Unit) -> int:
            unit.expect(stream)
            unit.record("thing.changed", *puts, removes=removes, data=note)
            return unit.count(Task, Query())

        self.all_say(lambda store: store.run(actor, work))

    @rule(data=st.data(), actor=ACTORS)
    def write_to_several(self, data: st.DataObject, actor: Any) -> None:
        steps = [
            (stream, data.draw(records(stream))) for stream in data.draw(st.lists(STREAMS, min_size=2, max_size=5))
        ]

        def work(unit: Unit) -> list[Any]:
            for stream, record in steps:
                unit.expect(stream)
                unit.record("thing.touched", record)
            return [unit.get(type(record), record.id) for _, record in steps]

        self.all_say(lambda store: store.run(actor, work))

    @rule(number=st.integers(1, 4), path=st.sampled_from(["/a", "/b"]), actor=ACTORS)
    def register(self, number: int, path: str, actor: Any) -> None:
        """A path belongs to one repository, whatever stream that is in."""

        def work(unit: Unit) -> Any:
            made = repository(f"repo_{number}", path=path)
            unit.expect(made.id)
            unit.record("repository.registered", made)
            return unit.get(Repository, made.id)

        told = self.all_say(lambda store: store.run(actor, work))
        assert isinstance(told, Repository) or told[0] is StoreBusy

    @rule(stream=STREAMS, key=st.sampled_from(["k1", "k2"]), ttl=st.integers(1, 30), answer=st.binary(max_size=4))
    def write_once(self, stream: str, key: str, ttl: int, answer: bytes) -> None:
        def work(unit: Unit) -> Any:
            now = unit.now_ms()
            known = unit.key_answer("tool", key)
            if known is not None:
                return known
            unit.expect(stream)
            unit.record("lease.kept", lease(f"{stream}.lease_1", stream=stream, fence=now))
            unit.keep_answer(KeyWrite("tool", key, "hash", answer, now + ttl, now))
            return None

        self.all_say(lambda store: store.run(ANNA, work))

    @rule(actor=ACTORS)
    def take_back(self, actor: Any) -> None:
        told = self.all_say(lambda store: store.undo(actor)._replace(position=0))
        assert isinstance(told, tuple)
        assert len(told) != 2 or told[0] in (NothingToUndo, StoreBusy)

    @rule(ms=st.integers(1, 40))
    def let_time_pass(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule(query=queries())
    def ask(self, query: Query) -> None:
        self.all_say(lambda store: store.run(ANNA, lambda unit: (unit.select(Task, query), unit.count(Task, query))))

    @rule(stream=STREAMS, after=st.integers(0, 3), limit=st.integers(1, 3))
    def read_a_stream(self, stream: str, after: int, limit: int) -> None:
        self.all_say(lambda store: [told[:2] + told[3:] for told in store.events(stream, after=after, limit=limit)])

    @rule(streams=SOME_STREAMS, kinds=SOME_KINDS, actor=st.none() | ACTORS, place=st.integers(0, 6))
    def follow(self, streams: Any, kinds: Any, actor: Any, place: int) -> None:
        """The feed with a filter, from some place on; positions are each engine's own."""
        only = Only(streams, () if actor is None else (actor.name,), kinds)

        def look(unit: Unit) -> Any:
            whole = unit.feed(0, 10_000)
            after = whole[place - 1].position if 0 < place <= len(whole) else 0
            return [event[:2] + event[3:] for event in (*unit.feed(after, 3, only), *unit.newest(2, only))]

        self.all_say(lambda store: store.run(ANNA, look))

    @invariant()
    def everything_is_the_same(self) -> None:
        if not self.stores:
            return
        self.all_say(self.whole)

    @staticmethod
    def whole(store: Store) -> Any:
        """Rows, heads and the ledger in its order; positions are each engine's own, and only grow."""
        feed = store.feed(limit=10_000)
        positions = [event.position for event in feed]
        assert positions == sorted(set(positions))
        with store.engine.reading() as reader:
            rows = {table.name: reader.select(table, Query()) for table in TABLES}
            heads = list(reader.streams())
        return rows, heads, [event[:2] + event[3:] for event in feed]

    def finish(self) -> None:
        """What is too much for every step."""
        if self.stores:
            assert self.all_say(lambda store: store.verify()) == []


class MemoryAndSqlite(Stores):
    def teardown(self) -> None:
        try:
            self.finish()
        finally:
            super().teardown()


class AllThree(MemoryAndSqlite):
    address = ""

    def engines(self) -> Iterator[tuple[str, Engine]]:
        yield from super().engines()
        self.stack.callback(empty, self.address)
        yield "postgres", PostgresEngine(self.address, version=VERSION)


THOROUGH = os.environ.get("HANDRAIL_HYPOTHESIS") == "torture"


@pytest.mark.parametrize("missed", [workflow(), task(), lease(), checkpoint(), repository()], ids=type)
def test_the_machine_can_tell_two_stores_apart(missed: Any) -> None:
    """The negative control: one store misses a write, and the machine sees it."""
    machine = MemoryAndSqlite()
    machine.open()
    try:
        machine.stores["sqlite"].run(ANNA, lambda unit: unit.record("thing.put", missed))
        with pytest.raises(AssertionError, match="sqlite disagrees"):
            machine.everything_is_the_same()
    finally:
        machine.stack.close()


@pytest.mark.hypothesis
def test_memory_and_sqlite_agree() -> None:
    run_state_machine_as_test(
        MemoryAndSqlite, settings=settings(max_examples=400 if THOROUGH else 30, stateful_step_count=20)
    )


@pytest.mark.hypothesis
def test_all_three_agree(used_schema: str) -> None:
    PostgresEngine(used_schema, version=VERSION).close()
    empty(used_schema)
    machine = type("AllThreeHere", (AllThree,), {"address": used_schema})
    run_state_machine_as_test(machine, settings=settings(max_examples=100 if THOROUGH else 8, stateful_step_count=15))
