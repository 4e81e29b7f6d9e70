"""Finding by id: what is there is given, what is not is refused with a hint where ids come from."""

from __future__ import annotations

import pytest

from handrail.domain.work.lookup import ID, find_task, find_workflow
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import RunNotFound, TaskNotFound
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from handrail.store.unit import Unit
from tests.store.records import task as task_record
from tests.store.records import workflow as workflow_record

ACTOR = Actor("tester", "test")


def store_with(*records: Workflow | Task) -> Store:
    store = Store(MemoryEngine(), clock=FixedClock(), ids=CountingIds())

    def put(unit: Unit) -> None:
        for record in records:
            unit.record("made", record)

    store.run(ACTOR, put)
    return store


def test_what_is_there_is_given() -> None:
    store = store_with(workflow_record("wf_1"), task_record("task_1", workflow_id="wf_1"))
    assert store.run(ACTOR, lambda unit: find_workflow(unit, "wf_1")).id == "wf_1"
    assert store.run(ACTOR, lambda unit: find_task(unit, "task_1", hint="look elsewhere")).id == "task_1"


def test_an_unknown_workflow_is_refused_with_the_newest() -> None:
    with pytest.raises(RunNotFound, match="there is no workflow wf_9") as empty:
        store_with().run(ACTOR, lambda unit: find_workflow(unit, "wf_9"))
    assert empty.value.hint == "newest: there is none yet: workflow_create or start_workflow makes one"
    store = store_with(*(workflow_record(f"wf_{number}", updated_at=number) for number in range(1, 8)))
    with pytest.raises(RunNotFound) as refused:
        store.run(ACTOR, lambda unit: find_workflow(unit, "wf_9"))
    assert str(refused.value.hint).startswith("newest: wf_7 (")
    assert "wf_3 (" in str(refused.value.hint)
    assert "wf_2 (" not in str(refused.value.hint)
    assert refused.value.details["id"] == "wf_9"


def test_an_unknown_task_is_refused_and_so_is_a_workflow() -> None:
    store = store_with(workflow_record("wf_1"))
    with pytest.raises(TaskNotFound, match="there is no task task_9") as refused:
        store.run(ACTOR, lambda unit: find_task(unit, "task_9"))
    assert refused.value.hint == "workflow_next_tasks lists tasks with their ids"
    with pytest.raises(TaskNotFound, match="wf_1 is a workflow, not a task") as mistaken:
        store.run(ACTOR, lambda unit: find_task(unit, "wf_1"))
    assert mistaken.value.hint == "workflow_next_tasks lists its tasks"


@pytest.mark.parametrize("find", [find_workflow, find_task])
def test_who_asks_may_say_where_ids_are_and_a_long_one_is_not_repeated(find: object) -> None:
    assert callable(find)
    with pytest.raises((RunNotFound, TaskNotFound)) as refused:
        store_with().run(ACTOR, lambda unit: find(unit, "x" * 5000, hint="the list has them"))
    assert refused.value.hint == "the list has them"
    assert str(refused.value).count("x") <= ID
