"""A unit of work: what it reads stays, what it puts shows, and what it wants written says where its streams stood."""

from __future__ import annotations

import pytest

from handrail.domain.work.lease import Lease
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Change
from handrail.store.memory import MemoryEngine
from handrail.store.queries import Query
from handrail.store.seals import sealed
from handrail.store.store import Store
from handrail.store.unit import Unit
from handrail.store.writes import NEW_STREAM, KeyWrite, RowWrite
from tests.store.records import ANNA, lease, put, repository, task, workflow


class World:
    """A memory store and units over it."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()
        self.clock = FixedClock(1000)
        self.store = Store(self.engine, clock=self.clock, ids=CountingIds())

    def unit(self) -> Unit:
        with self.engine.reading() as reader:
            return Unit(reader, actor=ANNA, now_ms=self.clock.now_ms(), ids=CountingIds())


@pytest.fixture
def world() -> World:
    return World()


def test_a_unit_that_recorded_nothing_writes_nothing(world: World) -> None:
    unit = world.unit()
    assert unit.get(Workflow, "wf_1") is None
    assert unit.writes() is None


def test_a_unit_has_time_and_ids(world: World) -> None:
    unit = world.unit()
    assert unit.now_ms() == 1000
    assert [unit.new_id("wf"), unit.new_id("wf")] == ["wf_1", "wf_2"]


def test_what_a_unit_put_is_what_it_gets(world: World) -> None:
    put(world.store, workflow())
    unit = world.unit()
    unit.record("workflow.renamed", workflow(name="new"))
    assert unit.get(Workflow, "wf_1") == workflow(name="new")
    unit.record("workflow.removed", removes=[workflow(name="new")])
    assert unit.get(Workflow, "wf_1") is None


def test_a_selection_shows_the_store_and_not_what_the_unit_put(world: World) -> None:
    put(world.store, workflow())
    unit = world.unit()
    unit.record("task.created", task())
    assert unit.select(Task, Query()) == []
    assert unit.count(Task, Query()) == 0


def test_a_new_thing_begins_its_stream(world: World) -> None:
    unit = world.unit()
    unit.record("workflow.created", workflow())
    writes = unit.writes()
    assert writes is not None
    assert [(stream.stream, stream.expected) for stream in writes.streams] == [("wf_1", NEW_STREAM)]


def test_what_was_read_is_expected_to_stand_still(world: World) -> None:
    put(world.store, workflow(), task())
    put(world.store, workflow(name="two"))
    with world.engine.reading() as reader:
        head = reader.head("wf_1")
    for selected in (False, True):
        unit = world.unit()
        assert unit.select(Task, Query()) if selected else unit.get(Task, "task_1")
        unit.record("lease.taken", lease())
        writes = unit.writes()
        assert writes is not None
        assert writes.streams[0].expected == head


def test_a_thing_is_added_to_a_stream_nothing_was_read_of(world: World) -> None:
    put(world.store, workflow())
    unit = world.unit()
    unit.record("lease.taken", lease())
    writes = unit.writes()
    assert writes is not None
    assert writes.streams[0].expected.seq == 1


def test_the_first_sight_of_a_stream_counts(world: World) -> None:
    """The unit looks twice; somebody writes in between, and its own look does not know."""
    put(world.store, workflow())
    unit = world.unit()
    unit.get(Workflow, "wf_1")
    put(world.store, workflow(name="somebody else's"))
    unit.expect("wf_1")
    unit.record("workflow.renamed", workflow(name="mine"))
    writes = unit.writes()
    assert writes is not None
    assert writes.streams[0].expected.seq == 1


def test_events_of_several_streams_are_sorted_by_stream(world: World) -> None:
    unit = world.unit()
    unit.record("b.one", workflow("wf_b"))
    unit.record("a.one", workflow("wf_a"))
    unit.record("b.two", workflow("wf_b", name="two"))
    writes = unit.writes()
    assert writes is not None
    assert [[event.kind for event in stream.events] for stream in writes.streams] == [["a.one"], ["b.one", "b.two"]]
    assert [event.seq for event in writes.streams[1].events] == [1, 2]
    assert [row.key for row in writes.rows] == ["wf_b", "wf_a"]


def test_an_event_belongs_to_one_stream(world: World) -> None:
    with pytest.raises(AssertionError, match="one stream"):
        world.unit().record("both", workflow("wf_1"), repository("repo_1"))


def test_a_change_names_only_what_differs(world: World) -> None:
    put(world.store, task(status="pending", unmet=2, context={"a": 1}))
    unit = world.unit()
    unit.record("task.changed", task(status="planning", unmet=2, context={"a": 1}))
    writes = unit.writes()
    assert writes is not None
    world.engine.commit(writes)
    event = world.store.events("wf_1")[-1]
    assert event.changes == (Change("task", "task_1", {"status": "planning"}, {"status": "pending"}),)


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), (0, False)])
def test_json_values_that_python_calls_equal_are_still_a_change(world: World, before: object, after: object) -> None:
    put(world.store, task(context={"a": before}))
    unit = world.unit()
    unit.record("task.changed", task(context={"a": after}))
    writes = unit.writes()
    assert writes is not None
    world.engine.commit(writes)
    (change,) = world.store.events("wf_1")[-1].changes
    assert change.after is not None
    assert repr(change.after) == repr({"context": {"a": after}})


def test_removing_what_is_not_there_changes_nothing(world: World) -> None:
    put(world.store, workflow())
    unit = world.unit()
    unit.record("lease.dropped", removes=[lease()])
    writes = unit.writes()
    assert writes is not None
    assert writes.rows == (RowWrite("lease", "lease_1", None),)
    world.engine.commit(writes)
    assert world.store.verify() == []
    assert world.unit().get(Lease, "lease_1") is None


def test_a_key_alone_is_enough_to_write(world: World) -> None:
    unit = world.unit()
    key = KeyWrite("tool", "key", "hash", b"answer", 2000, 1000)
    unit.keep_answer(key)
    writes = unit.writes()
    assert writes is not None
    assert (writes.streams, writes.rows, writes.key) == ((), (), sealed(key))
    world.engine.commit(writes)
    assert world.unit().key_answer("tool", "key") == ("hash", b"answer")
    world.clock.advance(1000)
    assert world.unit().key_answer("tool", "key") is None
