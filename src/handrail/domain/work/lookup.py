"""A workflow or a task by its id, or a refusal that says where ids come from. What a call means that names no id is
`toolsets/here.py`'s; what a person types may be a name (`surfaces/cli/chosen.py`)."""

from __future__ import annotations

from collections.abc import Iterable

from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import RunNotFound, TaskNotFound
from handrail.kernel.records import Query, UnitOfWork

ID = 100
"""Characters of an unknown id that a refusal repeats."""
NEWEST = 5
"""Workflows that a refusal names."""


def find_workflow(unit: UnitOfWork, workflow_id: str, hint: str | None = None) -> Workflow:
    """The workflow. `hint` says where to find ids; without it, an agent is told the newest ones."""
    workflow = unit.get(Workflow, workflow_id)
    if workflow is None:
        where = hint if hint is not None else _newest(unit)
        raise RunNotFound(f"there is no workflow {workflow_id[:ID]}", hint=where, id=workflow_id)
    return workflow


def find_task(unit: UnitOfWork, task_id: str, hint: str | None = None) -> Task:
    """The task. `hint` says where to find ids; without it, an agent is told which tool lists them."""
    task = unit.get(Task, task_id)
    if task is not None:
        return task
    if unit.get(Workflow, task_id) is not None:
        where = hint if hint is not None else "workflow_next_tasks lists its tasks"
        raise TaskNotFound(f"{task_id} is a workflow, not a task", hint=where, id=task_id)
    where = hint if hint is not None else "workflow_next_tasks lists tasks with their ids"
    raise TaskNotFound(f"there is no task {task_id[:ID]}", hint=where, id=task_id)


def listed(things: Iterable[Workflow | Task]) -> str:
    """Workflows or tasks in a hint: each with its id, to be copied, and its name."""
    return ", ".join(f"{thing.id} ({thing.name})" for thing in things)


def _newest(unit: UnitOfWork) -> str:
    newest = unit.select(Workflow, Query((), ("-updated_at", "-id"), NEWEST))
    return f"newest: {listed(newest) or 'there is none yet: workflow_create or start_workflow makes one'}"
