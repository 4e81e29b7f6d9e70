"""The life of a task: started, paused, completed, failed, skipped, taken up again. The only way a task changes state.

Every toolset moves tasks through here, so that dependents are released, workflows start and claims end in the same way
whichever tool was used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from handrail.domain.work.lease import ended
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import AT_WORK, TASK_MACHINE, UNFINISHED, Dependency, Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.errors import MissingError, MissingOutcome, TaskBlocked, TasksOpen, WorkflowClosed
from handrail.kernel.records import Query, Record, UnitOfWork

SHOWN = 10
"""Tasks named in a refusal."""
ENDS_CLAIM = (*TASK_MACHINE.terminal, "failed", "pending")
"""States in which nobody works on a task."""
BEGUN = "begun_elsewhere"
"""The key in a task's context that keeps its state if it was under way where it was imported from (`exchange`). It is
true until the task first moves here."""
MayFinish = Callable[[UnitOfWork, Task, str], None]
"""Raises if the task must not be given this final state from here: a run reserves that for its reviews
(`pipeline/ownership.py`)."""


def workflow_of(unit: UnitOfWork, task: Task) -> Workflow:
    workflow = unit.get(Workflow, task.workflow_id)
    assert workflow is not None, "a task belongs to a workflow"
    return workflow


def move_task(
    unit: UnitOfWork,
    task: Task,
    status: str,
    *,
    outcome: str | None = None,
    error: str | None = None,
    beside: Sequence[Record] = (),
    may_finish: MayFinish | None = None,
    **fields: Any,
) -> Task:
    """Moves the task to a new state, records that and returns it. `fields` are other values that change with it,
    `beside` other records of the same event. A move that finishes the task needs `may_finish`."""
    workflow = workflow_of(unit, task)
    TASK_MACHINE.check(f'task "{task.name}"', task.status, status)
    check_open(workflow, starting=status in AT_WORK)
    if status in AT_WORK and task.unmet:
        raise blocked(unit, task)
    if status == "completed" and not outcome:
        raise MissingOutcome(
            f'task "{task.name}" needs an outcome', hint="pass outcome: in a sentence or two, what came of it"
        )
    if status == "failed" and not error:
        raise MissingError(f'task "{task.name}" needs an error', hint="pass error: what went wrong and what was tried")
    if status in TASK_MACHINE.terminal:
        assert may_finish is not None, "whoever finishes a task brings the rule of who may"
        may_finish(unit, task, status)
        check_parts(unit, task)
    context = fields.get("context", task.context)
    if BEGUN in context:
        fields["context"] = {key: value for key, value in context.items() if key != BEGUN}
    edit = PlanEdit(unit, workflow)
    moved = edit.change(task, **{**_values(task, status, edit.now, outcome, error), **fields})
    started: dict[str, Any] = {"status": "in_progress"} if _starts(workflow, status) else {}
    over = ended(unit, task.id) if status in ENDS_CLAIM and task.assigned_agent_id is not None else ()
    edit.record(f"task.{status}", *over, *beside, **started)
    return moved


def check_open(workflow: Workflow, *, starting: bool) -> None:
    """Raises WorkflowClosed if tasks of this workflow can no longer move, or must not be started now."""
    if workflow.status in CLOSED:
        raise WorkflowClosed(
            f"workflow {workflow.id} is {workflow.status}; nothing in it can change any more",
            hint="begin a new one: workflow_create or start_workflow",
            status=workflow.status,
        )
    if starting and workflow.status == "paused":
        raise WorkflowClosed(
            f"workflow {workflow.id} is paused; no task can start in it",
            hint="workflow_update_status with in_progress resumes it",
            status=workflow.status,
        )


def blocked(unit: UnitOfWork, task: Task) -> TaskBlocked:
    """The refusal that names what a task waits for."""
    waiting = unfinished_needs(unit, task)
    shown = ", ".join(f'"{need.name}" ({need.shown_status})' for need in waiting[:SHOWN])
    more = f" and {len(waiting) - SHOWN} more" if len(waiting) > SHOWN else ""
    return TaskBlocked(
        f'task "{task.name}" waits for {shown}{more}',
        hint="workflow_next_tasks lists what can start now",
        blocked_by=[{"id": need.id, "name": need.name, "status": need.shown_status} for need in waiting[:SHOWN]],
    )


def needed_tasks(unit: UnitOfWork, task: Task) -> list[Task]:
    """The tasks a task waits or waited for, its own dependencies first."""
    links = unit.select(Dependency, Query((("task_id", task.id),), ("inherited",)))
    found = (unit.get(Task, link.needs_id) for link in links)
    return [need for need in found if need is not None]


def unfinished_needs(unit: UnitOfWork, task: Task) -> list[Task]:
    return [need for need in needed_tasks(unit, task) if not need.is_finished]


def check_parts(unit: UnitOfWork, task: Task) -> None:
    """Raises TasksOpen, naming the subtasks, if any subtask is still open."""
    if not task.open_children:
        return
    parts = unit.select(Task, Query((("parent_task_id", task.id), ("status", UNFINISHED)), ("sequence",), SHOWN))
    raise TasksOpen(
        f'task "{task.name}" has open subtasks: {", ".join(part.name for part in parts)}',
        hint="finish or skip them first",
        open_tasks=[{"id": part.id, "name": part.name, "status": part.shown_status} for part in parts],
    )


def _values(task: Task, status: str, now: int, outcome: str | None, error: str | None) -> dict[str, Any]:
    values: dict[str, Any] = {"status": status}
    if outcome is not None:
        values["outcome"] = outcome
    if status in ("failed", "pending"):
        values |= {"assigned_agent_id": None, "claimed_at": None}
    if status == "failed":
        values["error"] = error
    elif task.status == "failed":  # taken up again: the result of the last try is in its checkpoints
        values = {"error": None, "outcome": None, "outcome_detail": None, **values}
    if status == "in_progress" and task.status != "paused":
        values |= {"attempts": task.attempts + 1, "started_at": task.started_at or now}
    if status in TASK_MACHINE.terminal:
        values["finished_at"] = now
    return values


def _starts(workflow: Workflow, status: str) -> bool:
    return status in AT_WORK and workflow.status != "in_progress"
