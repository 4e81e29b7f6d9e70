"""Every field of a workflow, a task and a checkpoint either comes back from JSON Lines as it was, or stands here with
the reason why it does not. Whoever adds a field to one of these records has to say which."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from handrail.domain.exchange import jsonl
from handrail.domain.exchange.normalize import fitted
from handrail.domain.exchange.plan_document import KEPT, PlanDocument, PlannedTask, PlanNote, status_there
from handrail.domain.journal.decision_log import SUPERSEDES, replaced_by
from handrail.domain.pipeline.ownership import check_task
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.plan_edit import places_taken
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import BEGUN, move_task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidPlan
from handrail.kernel.records import where
from handrail.store.store import Store
from tests.domain.exchange.documents import NOW
from tests.domain.exchange.laid import TESTER, lay, more, take
from tests.domain.exchange.test_importer import new_store

AN_ID = "another store gives its own; names are the keys"
COUNTED = "counted anew from the plan"
A_CLAIM = "nobody holds a task of a store they do not know"
LAID = "laying it in is the last change"
NOT_TAKEN: dict[type[msgspec.Struct], dict[str, str]] = {
    Workflow: {"id": AN_ID, "repository_path": "it belongs to where it is laid", "updated_at": LAID},
    Task: {
        "id": AN_ID,
        "workflow_id": AN_ID,
        "parent_task_id": AN_ID,
        "workspace_id": AN_ID,
        "unmet": COUNTED,
        "unblocks": COUNTED,
        "open_children": COUNTED,
        "assigned_agent_id": A_CLAIM,
        "claimed_at": A_CLAIM,
        "updated_at": LAID,
    },
    Checkpoint: {"id": AN_ID, "workflow_id": AN_ID, "task_id": AN_ID},
}
TASK_PLAN = {"approach": "by hand", "steps": ["one", "two"], "files_to_modify": ["a.py"], "context_needed": ["why"]}
WORKFLOW = Workflow(
    id="wf_made",
    name="Everything",
    status="paused",
    source_type="jira",
    source_ref="ABC-1",
    source_content="what it is about",
    repository_path="/srv/elsewhere",
    plan={"summary": "s", "approach": "a", "risks": ["r"], "assumptions": ["b"], "variables": {"x": "1"}},
    max_parallel_tasks=7,
    auto_create_workspaces=True,
    created_at=11,
    updated_at=12,
)
TASK = Task(
    id="task_made",
    workflow_id="wf_made",
    parent_task_id="task_whole",
    name="part",
    description="what to do",
    status="failed",
    sequence=4,
    priority=5,
    parallel_group="g",
    depends_on=["whole's sister"],
    unmet=1,
    estimated_complexity="high",
    files_likely_affected=["src/a.py"],
    plan=TASK_PLAN,
    context={"goal": "g", "deep": {"b": [1, None], "a": 1.5}, KEPT: {"system": "beads", "id": "bd-1"}},
    outcome="half of it",
    outcome_detail={"limitations": ["l"], "metadata": {}},
    error="it broke",
    checkpoints=2,
    created_at=13,
    updated_at=14,
    requires=["python"],
    acceptance=["it runs"],
    attempts=3,
    started_at=15,
    assigned_agent_id="ag_1",
    claimed_at=16,
    workspace_id="ws_1",
)


def bare_task(name: str, sequence: int, status: str = "pending", **fields: Any) -> Task:
    """A task of which nothing more is told."""
    bare = Task(
        id=f"task_{name}",
        workflow_id="wf_made",
        parent_task_id=None,
        name=name,
        description="",
        status=status,
        sequence=sequence,
        priority=0,
        parallel_group=None,
        depends_on=[],
        unmet=0,
        estimated_complexity=None,
        files_likely_affected=[],
        plan=None,
        context={},
        outcome=None,
        outcome_detail=None,
        error=None,
        checkpoints=0,
        created_at=13,
        updated_at=14,
    )
    return msgspec.structs.replace(bare, **fields)


TASKS = [
    TASK,
    bare_task("whole", 1),
    bare_task("whole's sister", 2, "completed", outcome=" kept as it is ", finished_at=20, attempts=2),
    bare_task("planned", 3, "planning", plan={}, outcome_detail={}),
    bare_task("given back", 5, started_at=17, attempts=1),
    bare_task("its own words", 6, context={KEPT: {"system": "me", "mood": "good"}}),
    bare_task("no object", 7, context={KEPT: "a word"}),
]


def note(number: int, **fields: Any) -> Checkpoint:
    made = Checkpoint(
        id=f"cp_{number}",
        workflow_id="wf_made",
        task_id="task_made",
        sequence=number,
        type="decision",
        summary=" so it is\n",
        detail={"z": 1, "reason": {"b": True, "a": "x"}},
        files_changed=["b.py"],
        created_at=18,
    )
    return msgspec.structs.replace(made, **fields)


NOTES = [note(1), note(2, type="error", detail={}, files_changed=[], summary="\t")]


def rows_of(store: Store, kind: type[Any], workflow_id: str) -> list[Any]:
    asked = where(id=workflow_id) if kind is Workflow else where(workflow_id=workflow_id)
    found = store.run(TESTER, lambda unit: unit.select(kind, asked))
    return sorted(found, key=lambda row: (getattr(row, "sequence", 0), getattr(row, "name", "")))


def carried(first: Store, workflow_id: str) -> tuple[Store, str]:
    """Everything in another store, by way of lines."""
    lines = jsonl.write(take(first, workflow_id))
    second = new_store()
    key = lay(second, jsonl.read(lines, "unused")).workflow.id
    assert jsonl.write(take(second, key)) == lines
    return second, key


def travelling(row: msgspec.Struct) -> dict[str, Any]:
    """What of a row has to come back. What nobody here works on is paused, and kept as it was beside."""
    if isinstance(row, Task):
        kept = {key: value for key, value in row.context.items() if key != BEGUN}
        row = msgspec.structs.replace(row, status=status_there(row.status, row.context), context=kept)
    if isinstance(row, Checkpoint) and str(row.detail.get(SUPERSEDES)).startswith(
        "cp_"
    ):  # of which each store has its own
        row = msgspec.structs.replace(row, detail={**row.detail, SUPERSEDES: "cp_"})
    return {name: getattr(row, name) for name in row.__struct_fields__ if name not in NOT_TAKEN[type(row)]}


@pytest.fixture
def made() -> Store:
    store = new_store()
    store.run(TESTER, lambda unit: unit.record("test.made", WORKFLOW, *TASKS, *NOTES))
    return store


@pytest.mark.parametrize("kind", NOT_TAKEN)
def test_every_field_comes_back(made: Store, kind: type[Any]) -> None:
    second, key = carried(made, "wf_made")
    before, after = rows_of(made, kind, "wf_made"), rows_of(second, kind, key)
    assert [travelling(row) for row in after] == [travelling(row) for row in before]
    assert second.verify() == []


@pytest.mark.parametrize("kind", NOT_TAKEN)
def test_every_field_that_comes_back_says_something_here(made: Store, kind: type[Any]) -> None:
    """Otherwise a field that is lost would look as if it had come back: both are empty."""
    least = PlanDocument(name="p", tasks=[PlannedTask(name="t", notes=[PlanNote(summary="s")])])
    store = new_store()
    (empty,) = rows_of(store, kind, lay(store, least).workflow.id)
    rows = rows_of(made, kind, "wf_made")
    for name in travelling(empty):
        said = [getattr(row, name) for row in rows if getattr(row, name) != getattr(empty, name)]
        assert said, f"{kind.__name__}.{name}: give it a value here, so that it is seen to travel"


@pytest.mark.parametrize("kind", NOT_TAKEN)
def test_what_is_left_out_is_a_field_and_has_a_reason(kind: type[Any]) -> None:
    assert NOT_TAKEN[kind].keys() <= set(kind.__struct_fields__)
    assert all(NOT_TAKEN[kind].values())


def test_what_a_part_belongs_to_and_what_holds_it_up_is_the_same(made: Store) -> None:
    second, key = carried(made, "wf_made")
    after = {task.name: task for task in rows_of(second, Task, key)}
    assert after["part"].parent_task_id == after["whole"].id
    assert (after["part"].unmet, after["whole's sister"].unblocks, after["whole"].open_children) == (0, 1, 1)


# -- what a file may say of it ----------------------------------------------------------------------------------------


def test_lines_from_before_these_fields_are_read() -> None:
    old = '{"handrail":1,"name":"p","status":"in_progress"}\n{"task":"a","status":"in_progress","started_at":5}\n'
    store = new_store()
    key = lay(store, jsonl.read(old, "unused")).workflow.id
    (task,) = rows_of(store, Task, key)
    (workflow,) = rows_of(store, Workflow, key)
    assert (task.attempts, task.plan, task.context, task.outcome_detail) == (1, None, {BEGUN: "in_progress"}, None)
    assert (workflow.plan, workflow.auto_create_workspaces) == (None, False)


@pytest.mark.parametrize(
    ("whole", "part", "said"),
    [
        ({"risks": 5}, None, "the plan of the whole"),
        ({"risks": None}, None, r"\$.risks"),
        ({"summary": []}, None, r"\$.summary"),
        ({}, {"steps": "one"}, 'task "t": its plan'),
        ({}, {"files_to_create": [1]}, r"files_to_create\[0\]"),
    ],
)
def test_a_plan_that_nobody_could_read_is_refused(whole: dict[str, Any], part: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidPlan, match=said):
        fitted(PlanDocument(name="p", plan=whole, tasks=[PlannedTask(name="t", plan=part)]), NOW)


def test_numbers_of_attempts_are_kept_within_reason() -> None:
    tasks = [PlannedTask(name="a", attempts=-4), PlannedTask(name="b", attempts=2**62), PlannedTask(name="c")]
    assert [task.attempts for task in fitted(PlanDocument(name="p", tasks=tasks), NOW).tasks] == [None, 1_000_000, None]


def test_an_origin_told_in_the_context_is_one() -> None:
    task = PlannedTask(name="a", context={KEPT: {"system": "beads", "id": "bd-1"}, "goal": "g"})
    (fit,) = fitted(PlanDocument(name="p", tasks=[task]), NOW).tasks
    assert fit.origin is not None
    assert (fit.origin.id, fit.context) == ("bd-1", {"goal": "g"})


def test_what_a_decision_replaces_is_replaced_in_the_other_store_too(made: Store) -> None:
    decided = [note(3, summary="first"), note(4, summary="second", detail={SUPERSEDES: ["cp_3", "by its words"]})]
    made.run(TESTER, lambda unit: unit.record("test.more", *decided))
    second, key = carried(made, "wf_made")
    notes = {row.summary: row for row in rows_of(second, Checkpoint, key)}
    assert notes["second"].detail[SUPERSEDES] == [notes["first"].id, "by its words"]
    assert replaced_by(notes.values()) == {notes["first"].id: notes["second"]}


@pytest.mark.parametrize("most", [1, 2, 10])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_decision_is_replaced_whichever_unit_of_work_it_was_laid_in(most: int, is_first: bool) -> None:
    replaced = PlannedTask(
        name="a", notes=[PlanNote(summary="x"), PlanNote(type="decision", summary="so", key="note:1")]
    )
    later = PlannedTask(name="b", notes=[PlanNote(type="decision", summary="no", detail={SUPERSEDES: "note:1"})])
    tasks = [replaced, later] if is_first else [later, replaced]
    store = new_store()
    key = lay(store, PlanDocument(name="p", tasks=tasks), most).workflow.id
    notes = {row.summary: row for row in rows_of(store, Checkpoint, key)}
    assert notes["no"].detail == {SUPERSEDES: notes["so"].id}


def test_a_decision_on_a_task_that_has_other_notes_here_is_replaced_by_its_words() -> None:
    replaced = PlannedTask(name="a", notes=[PlanNote(type="decision", summary="so", key="note:1")])
    later = PlannedTask(name="b", notes=[PlanNote(type="decision", summary="no", detail={SUPERSEDES: "note:1"})])
    store = new_store()
    key = lay(
        store, PlanDocument(name="p", tasks=[PlannedTask(name="a", notes=[PlanNote(summary="other")])])
    ).workflow.id
    more(store, key, PlanDocument(name="p", tasks=[replaced, later]))
    assert {row.summary: row.detail for row in rows_of(store, Checkpoint, key)} == {
        "other": {},
        "no": {SUPERSEDES: "so"},
    }


def test_a_key_given_twice_makes_two_notes() -> None:
    notes = [PlanNote(summary="one", key="k"), PlanNote(summary="two", key="k")]
    store = new_store()
    key = lay(store, PlanDocument(name="p", tasks=[PlannedTask(name="a", notes=notes)])).workflow.id
    assert len({row.id for row in rows_of(store, Checkpoint, key)}) == 2


def test_notes_come_out_in_their_order() -> None:
    store = new_store()
    shuffled = [note(2, id="cp_1", task_id="task_a"), note(1, id="cp_2", task_id="task_a", summary="first")]
    store.run(TESTER, lambda unit: unit.record("test.made", WORKFLOW, bare_task("a", 1), *shuffled))
    assert [one.summary for one in take(store, "wf_made").tasks[0].notes] == ["first", " so it is\n"]


@pytest.mark.parametrize(("status", "told", "kept"), [("in_progress", None, 1), ("failed", 4, 4), ("completed", 2, 2)])
def test_how_often_it_began_is_kept(status: str, told: int | None, kept: int) -> None:
    store = new_store()
    key = lay(store, PlanDocument(name="p", tasks=[PlannedTask(name="a", status=status, attempts=told)])).workflow.id
    assert [row.attempts for row in rows_of(store, Task, key)] == [kept]


def test_what_is_under_way_elsewhere_takes_nobodys_place_and_travels_as_it_was() -> None:
    tasks = [PlannedTask(name="a", status="in_progress"), PlannedTask(name="b", status="planning")]
    store = new_store()
    key = lay(store, PlanDocument(name="p", tasks=tasks)).workflow.id
    assert store.run(TESTER, lambda unit: places_taken(unit, key)) == 0
    assert [row.status for row in rows_of(store, Task, key)] == ["paused", "paused"]
    assert [task.status for task in take(store, key).tasks] == ["in_progress", "planning"]
    row = rows_of(store, Task, key)[0]
    began = store.run(TESTER, lambda unit: move_task(unit, row, "in_progress"))
    store.run(TESTER, lambda unit: move_task(unit, began, "completed", outcome="done", may_finish=check_task))
    assert (take(store, key).tasks[0].status, take(store, key).tasks[0].context) == ("completed", {})


@pytest.mark.parametrize("told", [{}, {"context": {"goal": "g", BEGUN: "in_progress"}}])
def test_what_was_taken_up_here_is_exported_as_it_is_here(told: dict[str, Any]) -> None:
    store = new_store()
    key = lay(store, PlanDocument(name="p", tasks=[PlannedTask(name="a", status="in_progress")])).workflow.id
    (row,) = rows_of(store, Task, key)
    began = store.run(TESTER, lambda unit: move_task(unit, row, "in_progress", **told))
    store.run(TESTER, lambda unit: move_task(unit, began, "paused"))
    (task,) = take(store, key).tasks
    assert (task.status, task.context) == ("paused", {"goal": "g"} if told else {})
