"""What stands: steps done, the next move."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.domain.recovery.position import TaskPosition, next_move, steps_of
from handrail.domain.work.task import Task
from tests.store.records import checkpoint, task, workflow

PLAN = {"approach": "-", "steps": ["write it", "use it", "test it"]}
TOOLS = {
    "task_set_plan": "task_set_plan",
    "task_update_status": "task_update_status",
    "workflow_next_tasks": "plan_workflow_next_tasks",
    "checkpoint_add": "checkpoint_add",
}


def mark(sequence: int, step: Any, type: str = "progress") -> Any:  # noqa: A002 - its own name
    return checkpoint(f"cp_{sequence}", sequence=sequence, type=type, detail={"step": step})


def test_the_next_step_is_the_first_that_is_not_marked() -> None:
    steps = steps_of(task(plan=PLAN), [mark(2, 3), mark(1, 1)])
    assert steps.done == {1, 3}
    assert steps.next == 2


def test_several_steps_may_be_marked_at_once() -> None:
    assert steps_of(task(plan=PLAN), [mark(1, [1, 2, 3])]).next is None


def test_marks_before_the_last_replanning_do_not_count() -> None:
    steps = steps_of(task(plan=PLAN), [mark(3, 1), checkpoint("cp_2", sequence=2, type="replan"), mark(1, 2)])
    assert steps.done == {1}
    assert steps.next == 2


def test_where_earlier_checkpoints_were_not_read_their_marks_are_taken_for_granted() -> None:
    assert steps_of(task(plan=PLAN), [mark(90, 2)]).next == 3


@pytest.mark.parametrize("step", [0, 4, -1, "2", True, None, {"n": 1}, [None]])
def test_a_mark_that_is_no_step_is_no_mark(step: Any) -> None:
    assert steps_of(task(plan=PLAN), [mark(1, step)]).done == set()


@pytest.mark.parametrize("plan", [None, {}, {"steps": "write it"}, {"text": "…"}])
def test_a_plan_without_steps_has_none(plan: Any) -> None:
    assert steps_of(task(plan=plan), []).texts == ()


def moved(given: Task, *checkpoints: Any, flow: str = "in_progress", needs: Any = (), parts: Any = ()) -> str:
    standing = TaskPosition(
        workflow(status=flow),
        given,
        steps_of(given, checkpoints),
        checkpoints[0] if checkpoints else None,
        needs,
        parts,
    )
    return next_move(standing, TOOLS)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (task(status="pending"), "Plan it (task_set_plan), then start it (task_update_status)."),
        (task(status="planning", plan=PLAN), "It is planned; start it (task_update_status)."),
        (task(status="failed", error="x"), "It failed: plan it anew or try again (task_update_status)."),
        (task(status="paused"), "It is paused; take it up again (task_update_status)."),
        (task(status="completed"), "This task is completed; go on with the next one (plan_workflow_next_tasks)."),
        (task(status="in_progress", plan=PLAN), "Step 1 of 3: write it"),
        (task(status="in_progress"), "Begin, and record progress (checkpoint_add)."),
    ],
)
def test_the_next_move_names_only_tools_that_are_on_by_the_name_they_have(given: Task, says: str) -> None:
    assert moved(given) == says


def test_a_blocked_task_tells_what_it_waits_for() -> None:
    need = task("task_2", name="schema", status="in_progress")
    assert moved(task(unmet=1), needs=[need]).startswith('Waits for "schema" (in_progress); take another')


def test_a_task_in_progress_goes_on_with_its_next_step() -> None:
    assert moved(task(status="in_progress", plan=PLAN), mark(1, 1)) == "Step 2 of 3: use it"


def test_when_every_step_is_done_the_task_is_completed() -> None:
    assert moved(task(status="in_progress", plan=PLAN), mark(1, [1, 2, 3])).startswith("Every step is done")


def test_an_error_that_came_last_is_solved_first() -> None:
    error = checkpoint("cp_2", sequence=2, type="error", summary="the proxy hangs")
    assert moved(task(status="in_progress", plan=PLAN), error, mark(1, 1)).endswith(': "the proxy hangs"')


def test_without_marks_the_last_checkpoint_is_the_place_and_marking_is_taught() -> None:
    said = moved(task(status="in_progress", plan=PLAN), checkpoint(summary="half way"))
    assert said == 'Go on after "half way"; mark what is done (checkpoint_add): detail {"step": n}'


def test_an_open_subtask_comes_before_the_task() -> None:
    part = task("task_7", name="part", status="in_progress")
    assert moved(task(status="in_progress"), parts=[part]) == 'Subtask "part" (task_7) is in_progress; finish it first.'


@pytest.mark.parametrize("status", ["completed", "abandoned"])
def test_in_a_workflow_that_ended_nothing_is_left(status: str) -> None:
    assert moved(task(status="in_progress"), flow=status) == f"The workflow is {status}; nothing is left to do in it."


def test_in_a_paused_workflow_nothing_starts() -> None:
    assert moved(task(), flow="paused").startswith("The workflow is paused")
