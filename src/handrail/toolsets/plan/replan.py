"""Toolset `workflow`, second half: changing an existing plan. Tasks are added or removed, or everything that has not
begun is replaced; what is done or under way stays as it is."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from handrail.domain.work.apply_plan import lay_plan, replace_plan, take_out
from handrail.domain.work.lookup import find_workflow
from handrail.domain.work.plan import MOST_TASKS, PlanTask, Text
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.transitions import check_open, workflow_of
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import (
    ClaimHeld,
    IllegalTransition,
    InvalidPlan,
    LockHeld,
    RunNotFound,
    TaskNotFound,
    TasksOpen,
    WorkflowClosed,
)
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import plan_to_change, task_to_write
from handrail.toolsets.plan.workflow import ABANDONED, HELD, LOCKED, PLANNED, STARTED
from handrail.toolsets.vocabulary import WORKFLOW

Reason = Annotated[str, Meta(min_length=1, max_length=4000)]
Tasks = Annotated[list[PlanTask], Meta(min_length=1, max_length=MOST_TASKS)]


class AddTasks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks for a workflow; they may depend on those that are there."""

    id: str
    tasks: Tasks
    reason: Reason | None = None


class AddedTasks(msgspec.Struct, frozen=True):
    """The new tasks."""

    workflow_id: str
    tasks_created: int
    tasks: tuple[dict[str, str], ...]
    """The first fifty, by id and name."""


class RemoveTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which task, and why it is not needed."""

    task_id: str
    reason: Reason = "not needed"


class RemovedTask(msgspec.Struct, frozen=True):
    """What waited for it now waits for what it waited for."""

    success: bool
    rewired: tuple[str, ...]
    kept_as_skipped: bool
    """True when work was recorded on it."""


class Replan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plan for everything that has not begun. Names decide what is kept, changed, added and left out."""

    id: str
    reason: Reason
    tasks: Tasks
    summary: Text | None = None
    approach: Text | None = None


class ReplannedWorkflow(msgspec.Struct, frozen=True):
    """What the new plan did, by task name."""

    workflow_id: str
    kept: list[str]
    updated: list[str]
    added: list[str]
    removed: list[str]
    skipped: list[str]
    """Left out, but with work recorded on them."""


def workflow_add_tasks(call: Call, request: AddTasks) -> AddedTasks:
    workflow = find_workflow(call.work, request.id)
    check_open(workflow, starting=False)
    plan_to_change(call, workflow)
    edit = PlanEdit(call.work, workflow)
    tasks = lay_plan(call.work, edit, request.tasks)
    edit.record("workflow.extended", data=_why(request.reason), **_made_ready(workflow))
    shown = tuple({"id": task.id, "name": task.name} for task in tasks[:50])
    return AddedTasks(workflow.id, len(tasks), shown)


def workflow_remove_task(call: Call, request: RemoveTask) -> RemovedTask:
    task = task_to_write(call, request.task_id)
    workflow = workflow_of(call.work, task)
    check_open(workflow, starting=False)
    plan_to_change(call, workflow)
    edit = PlanEdit(call.work, workflow)
    rewired = take_out(edit, task, request.reason)
    kept = edit.holds(task.id)
    edit.record("task.removed", data={"task": task.name, "reason": request.reason})
    return RemovedTask(True, tuple(rewired), kept)


def workflow_replan(call: Call, request: Replan) -> ReplannedWorkflow:
    workflow = find_workflow(call.work, request.id)
    check_open(workflow, starting=False)
    plan_to_change(call, workflow)
    edit = PlanEdit(call.work, workflow)
    result = replace_plan(call.work, edit, request.tasks, request.reason)
    plan = dict(workflow.plan or {"summary": "", "approach": ""})
    plan |= {name: text for name in ("summary", "approach") if (text := getattr(request, name)) is not None}
    edit.record(
        "workflow.replanned", data={"reason": request.reason, **result._asdict()}, plan=plan, **_made_ready(workflow)
    )
    return ReplannedWorkflow(workflow.id, *result)


def _made_ready(workflow: Workflow) -> dict[str, str]:
    """A workflow that has tasks has a plan."""
    return {"status": "ready"} if workflow.status == "planning" else {}


def _why(reason: str | None) -> dict[str, str]:
    return {"reason": reason} if reason else {}


_DOCS = {"name": "docs", "description": "Say so in the docs", "sequence": 3, "depends_on": ["test"]}
_TEST = {"name": "test", "description": "Test with a proxy that hangs up", "sequence": 2, "depends_on": ["wrap"]}

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="workflow_add_tasks",
        toolset=WORKFLOW,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Adds tasks to a plan",
        request=AddTasks,
        response=AddedTasks,
        handler=workflow_add_tasks,
        refusals=(RunNotFound, InvalidPlan, WorkflowClosed, LockHeld),
        examples=(
            Example(
                title="a task that waits for one that is there",
                given=PLANNED,
                request={"id": "wf_1", "tasks": [_DOCS]},
                response={"tasks_created": 1, "tasks": [{"name": "docs"}]},
            ),
            Example(
                title="a name that is taken is refused",
                given=PLANNED,
                request={"id": "wf_1", "tasks": [_TEST]},
                refused=InvalidPlan,
            ),
            Example(
                title="an unknown workflow is refused", request={"id": "wf_9", "tasks": [_DOCS]}, refused=RunNotFound
            ),
            Example(
                title="a workflow that has ended is refused",
                given=ABANDONED,
                request={"id": "wf_1", "tasks": [_DOCS]},
                refused=WorkflowClosed,
            ),
            Example(
                title="a plan that another has locked is refused",
                given=(*PLANNED, LOCKED),
                request={"id": "wf_1", "tasks": [_DOCS]},
                refused=LockHeld,
            ),
        ),
    ),
    Operation(
        name="workflow_remove_task",
        toolset=WORKFLOW,
        effect=Effect.DESTRUCTIVE,
        idempotent=True,
        stored=True,
        summary="Removes a task that nobody works on from a plan",
        request=RemoveTask,
        response=RemovedTask,
        handler=workflow_remove_task,
        refusals=(TaskNotFound, IllegalTransition, TasksOpen, WorkflowClosed, ClaimHeld, LockHeld),
        examples=(
            Example(
                title="what waited for it waits no more",
                given=PLANNED,
                request={"task_id": "task_1", "reason": "the client retries already"},
                response={"success": True, "rewired": ["test"], "kept_as_skipped": False},
            ),
            Example(
                title="a task under way stays",
                given=STARTED,
                request={"task_id": "task_1"},
                refused=IllegalTransition,
            ),
            Example(title="an unknown task is refused", request={"task_id": "task_9"}, refused=TaskNotFound),
            Example(
                title="a task with open subtasks stays",
                given=(
                    *PLANNED,
                    ("workflow_add_tasks", {"id": "wf_1", "tasks": [{**_DOCS, "depends_on": [], "parent": "wrap"}]}),
                ),
                request={"task_id": "task_1"},
                refused=TasksOpen,
            ),
            Example(
                title="a workflow that has ended is refused",
                given=ABANDONED,
                request={"task_id": "task_1"},
                refused=WorkflowClosed,
            ),
            Example(
                title="a task that another holds is refused",
                given=HELD,
                request={"task_id": "task_1"},
                refused=ClaimHeld,
            ),
            Example(
                title="a plan that another has locked is refused",
                given=(*PLANNED, LOCKED),
                request={"task_id": "task_1"},
                refused=LockHeld,
            ),
        ),
    ),
    Operation(
        name="workflow_replan",
        toolset=WORKFLOW,
        effect=Effect.DESTRUCTIVE,
        stored=True,
        summary="Replaces the part of a plan that has not started",
        request=Replan,
        response=ReplannedWorkflow,
        handler=workflow_replan,
        refusals=(RunNotFound, InvalidPlan, WorkflowClosed, LockHeld),
        examples=(
            Example(
                title="running work is kept, open work is changed in place",
                given=STARTED,
                request={"id": "wf_1", "reason": "a proxy is easier", "tasks": [_TEST, _DOCS]},
                response={"updated": ["test"], "added": ["docs"], "removed": []},
            ),
            Example(
                title="a plan with a mistake is refused whole",
                given=PLANNED,
                request={"id": "wf_1", "reason": "try", "tasks": [{**_DOCS, "depends_on": ["tset"]}]},
                refused=InvalidPlan,
            ),
            Example(
                title="an unknown workflow is refused",
                request={"id": "wf_9", "reason": "try", "tasks": [_TEST]},
                refused=RunNotFound,
            ),
            Example(
                title="a workflow that has ended is refused",
                given=ABANDONED,
                request={"id": "wf_1", "reason": "try", "tasks": [_TEST]},
                refused=WorkflowClosed,
            ),
            Example(
                title="a plan that another has locked is refused",
                given=(*PLANNED, LOCKED),
                request={"id": "wf_1", "reason": "try", "tasks": [_TEST]},
                refused=LockHeld,
            ),
        ),
    ),
)
