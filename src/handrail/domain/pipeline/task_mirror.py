"""Mirrors a run's task list as tasks of its plan: created when the list is written, moved as the run proceeds, closed
when it ends. The run decides; a task that someone finished early keeps its state, with a note that its run is not done
with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.state import RunState, TaskState
from handrail.domain.work.apply_plan import lay_plan, replace_plan
from handrail.domain.work.lease import ended
from handrail.domain.work.plan import PlanTask
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import FINISHED, UNFINISHED, Task
from handrail.kernel.records import Query, UnitOfWork

PASSED = "It passed its review: "
UNREVIEWED = "It was done; the flow has no review of it."
NOT_THE_RUNS = "Its run is not done with it. "
"""Put before the outcome of a task that someone finished without its run."""


def name_of(task: TaskState) -> str:
    return f"{task.number}: {task.title}"[:200].strip()


def mirror_tasks(
    unit: UnitOfWork, edit: PlanEdit, run: PipelineRun, state: RunState, action: Action | None
) -> dict[str, str]:
    """Brings the plan's tasks in line with the run's; returns the task id for each number."""
    task_ids: dict[str, str] = run.task_ids
    if state.tasks:
        names = [name_of(task) for task in state.tasks]
        known = {number: _task_if_there(unit, edit, task_id) for number, task_id in task_ids.items()}
        if [task.name for task in known.values() if task is not None] != names:
            known = _lay_tasks(unit, edit, run, state)
        for task in state.tasks:
            there = known.get(str(task.number))
            if there is not None:
                _move(unit, edit, there, _wanted(task, state, action))
        task_ids = {number: task.id for number, task in known.items() if task is not None}
    if state.ended is not None:
        _close(unit, edit, task_ids.values(), f"Its run is {state.ended}.")
    return task_ids


def _task_if_there(unit: UnitOfWork, edit: PlanEdit, task_id: str) -> Task | None:
    """The plan's task; None if someone has removed it."""
    return edit.task(task_id) if edit.holds(task_id) and unit.get(Task, task_id) is not None else None


def _lay_tasks(unit: UnitOfWork, edit: PlanEdit, run: PipelineRun, state: RunState) -> dict[str, Task | None]:
    by_number = {task.number: name_of(task) for task in state.tasks}
    drafts = [
        PlanTask(
            name_of(task),
            task.title,
            place,
            depends_on=[by_number[need] for need in task.depends_on],
            files_likely_affected=task.files,
            parallel_group="parallel" if task.mode == "parallel" else None,
        )
        for place, task in enumerate(state.tasks, 1)
    ]
    if run.task_ids:
        replace_plan(unit, edit, drafts, "the task list was written anew")
        laid = edit.named(by_number.values())
    else:
        laid = {task.name: task for task in lay_plan(unit, edit, drafts)}
    return {str(number): laid.get(name) for number, name in by_number.items()}


class _Wanted(NamedTuple):
    """What a run says about one of its tasks."""

    status: str | None
    """None if it says nothing: the task is waiting for its turn."""
    outcome: str | None = None


def _wanted(task: TaskState, state: RunState, action: Action | None) -> _Wanted:
    if task.skipped:
        return _Wanted("skipped")
    if task.implemented and task.verdict is not None:
        return _Wanted("completed", f"{PASSED}{task.verdict}")
    if task.implemented and state.ended == "completed":
        return _Wanted("completed", UNREVIEWED)
    under_way = task.implemented or (action is not None and task.number in action.tasks)
    return _Wanted("in_progress" if under_way else None)


def _move(unit: UnitOfWork, edit: PlanEdit, there: Task, wanted: _Wanted) -> None:
    """Moves a plan's task to the state that follows from the run, as a consequence rather than on anyone's request."""
    if there.is_finished:
        _annotate(edit, there, wanted)
    elif wanted.status in FINISHED:
        _finish(unit, edit, there, wanted)
    elif wanted.status is not None and wanted.status != there.status:
        changes: dict[str, Any] = {"status": wanted.status, "started_at": there.started_at or edit.now}
        if there.status == "failed":  # taken up again: the result of the last try is in its checkpoints
            changes |= {"error": None, "outcome": None, "outcome_detail": None}
        if there.status != "paused":
            changes["attempts"] = there.attempts + 1
        edit.change(there, **changes)


def _annotate(edit: PlanEdit, there: Task, wanted: _Wanted) -> None:
    """A finished task cannot be reopened, so a difference is noted in its outcome until the run is done with it too."""
    said = (there.outcome or "").removeprefix(NOT_THE_RUNS)
    if wanted.status in FINISHED:
        outcome = wanted.outcome if wanted.status == there.status and wanted.outcome is not None else said
    else:
        outcome = NOT_THE_RUNS + said
    if outcome != (there.outcome or ""):
        edit.change(there, outcome=outcome or None)


def _close(unit: UnitOfWork, edit: PlanEdit, task_ids: Iterable[str], why: str) -> None:
    """Skips every open task in the workflow of a run that is over, since nobody will work on it."""
    conditions = (("workflow_id", edit.workflow.id), ("status", UNFINISHED))
    left = dict.fromkeys([*(task.id for task in unit.select(Task, Query(conditions))), *task_ids])
    for task_id in left:
        if edit.holds(task_id) and not edit.task(task_id).is_finished:
            _finish(unit, edit, edit.task(task_id), _Wanted("skipped", why))


def _finish(unit: UnitOfWork, edit: PlanEdit, there: Task, wanted: _Wanted) -> None:
    """Ends the task and releases its claim."""
    outcome = {"outcome": wanted.outcome} if wanted.outcome is not None else {}
    edit.change(there, status=wanted.status, finished_at=edit.now, **outcome)
    if there.assigned_agent_id is not None:
        for lease in ended(unit, there.id):
            unit.record("task.claim_ended", lease)
