"""Toolset `task`: plan.md's tasks. Look at one, plan it, move it through its states, replan it.

The domain (`moving.py`) makes the move and releases what waited for it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from handrail.domain.claims.claim import without_expired_claim
from handrail.domain.work.checkpoint import Checkpoint, next_checkpoint
from handrail.domain.work.lease import ended
from handrail.domain.work.lookup import find_task
from handrail.domain.work.plan import Strings, Text
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import check_open, move_task, workflow_of
from handrail.kernel.errors import (
    ClaimHeld,
    IllegalTransition,
    InvalidParams,
    MissingError,
    MissingOutcome,
    TaskBlocked,
    TaskNotFound,
    TasksOpen,
    WorkflowClosed,
)
from handrail.kernel.records import Query
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import may_finish, task_to_write
from handrail.toolsets.plan.workflow import ABANDONED, HELD, PLANNED, STARTED, Done
from handrail.toolsets.shown import shown_checkpoint, shown_task
from handrail.toolsets.vocabulary import TASK

TaskStatus = Literal["pending", "blocked", "planning", "in_progress", "paused", "completed", "failed", "skipped"]
SHOWN_CHECKPOINTS = 8
REPLANNED_FROM = ("failed", "in_progress")


class GetTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which task, and how much of it."""

    id: str
    include_checkpoints: bool = False
    checkpoint_limit: Annotated[int, Meta(ge=1, le=1000, description="How many, newest")] = SHOWN_CHECKPOINTS
    full: Annotated[bool, Meta(description="Long texts whole")] = False


class TaskPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a task will be done."""

    approach: Text
    steps: Strings
    files_to_modify: Strings = []
    files_to_create: Strings = []
    context_needed: Annotated[Strings, Meta(description="What must be known to do it")] = []


class SetTaskPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task and its plan."""

    id: str
    plan: TaskPlan
    context: Annotated[dict[str, Any], Meta(description="Merged into what the task has")] = {}


class UpdateTaskStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task's new status, with what came of it."""

    id: str
    status: TaskStatus
    outcome: Annotated[Text, Meta(description="Needed for completed")] | None = None
    outcome_detail: dict[str, Any] | None = None
    error: Annotated[Text, Meta(description="Needed for failed")] | None = None


class ReplanTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a task is planned anew, and how it will be done now."""

    id: str
    reason: Annotated[str, Meta(min_length=1, max_length=4000)]
    new_plan: TaskPlan


class ReplannedTask(msgspec.Struct, frozen=True):
    """The task is pending again; the checkpoint keeps the reason and the plan that was left."""

    success: bool
    checkpoint_id: str


def task_get(call: Call, request: GetTask) -> dict[str, Any]:
    task = without_expired_claim(call.work, find_task(call.work, request.id))
    shown = shown_task(task, full=request.full)
    if request.include_checkpoints:
        newest = Query((("task_id", task.id),), ("-sequence", "-id"), request.checkpoint_limit)
        found = call.work.select(Checkpoint, newest)
        shown["checkpoints"] = [shown_checkpoint(checkpoint, full=request.full) for checkpoint in reversed(found)]
    return shown


def task_set_plan(call: Call, request: SetTaskPlan) -> Done:
    task = task_to_write(call, request.id)
    values = {"plan": msgspec.to_builtins(request.plan), "context": {**task.context, **request.context}}
    if task.status != "planning":
        move_task(call.work, task, "planning", **values)
        return Done(True)
    workflow = workflow_of(call.work, task)
    check_open(workflow, starting=False)
    edit = PlanEdit(call.work, workflow)
    edit.change(task, **values)
    edit.record("task.planned")
    return Done(True)


def task_update_status(call: Call, request: UpdateTaskStatus) -> Done:
    task = task_to_write(call, request.id)
    if request.status == "blocked":
        raise InvalidParams(
            "blocked is not a status to set: a task is blocked by what it depends on",
            hint="task_check_dependencies shows what it waits for; use paused to stop a running task",
        )
    told: dict[str, Any] = {} if request.outcome_detail is None else {"outcome_detail": request.outcome_detail}
    move_task(
        call.work,
        task,
        request.status,
        outcome=request.outcome,
        error=request.error,
        may_finish=may_finish,
        **told,
    )
    return Done(True)


def task_replan(call: Call, request: ReplanTask) -> ReplannedTask:
    task = task_to_write(call, request.id)
    if task.status not in REPLANNED_FROM:
        raise IllegalTransition(
            f'task "{task.name}" is {task.shown_status}; only a failed task or one in progress can be replanned',
            hint="task_set_plan plans a task that has not started",
            status=task.shown_status,
        )
    workflow = workflow_of(call.work, task)
    check_open(workflow, starting=False)
    edit = PlanEdit(call.work, workflow)
    checkpoint = _replan_checkpoint(call, task, request)
    edit.change(
        task,
        status="pending",
        plan=msgspec.to_builtins(request.new_plan),
        outcome=None,
        outcome_detail=None,
        error=None,
        assigned_agent_id=None,
        claimed_at=None,
        checkpoints=checkpoint.sequence,
    )
    edit.record("task.replanned", checkpoint, *ended(call.work, task.id), data={"reason": request.reason})
    return ReplannedTask(True, checkpoint.id)


def _replan_checkpoint(call: Call, task: Task, request: ReplanTask) -> Checkpoint:
    detail = {"previous_plan": task.plan, "error": task.error, "outcome": task.outcome}
    told = {name: value for name, value in detail.items() if value is not None}
    return next_checkpoint(call.work, task, "replan", request.reason, told)


_FAILED = (*STARTED, ("task_update_status", {"id": "task_1", "status": "failed", "error": "the proxy hangs"}))
_TASK_PLAN = {"approach": "A decorator", "steps": ["write it", "use it"], "files_to_modify": ["fetch.py"]}
_UNKNOWN = "an unknown task is refused"

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="task_get",
        toolset=TASK,
        effect=Effect.READ,
        stored=True,
        summary="Shows a task, with its newest checkpoints if asked",
        request=GetTask,
        response=dict[str, Any],
        handler=task_get,
        refusals=(TaskNotFound,),
        examples=(
            Example(
                title="a task that waits for another is blocked",
                given=PLANNED,
                request={"id": "task_2"},
                response={"name": "test", "status": "blocked", "depends_on": ["wrap"], "assigned_agent_id": None},
            ),
            Example(title=_UNKNOWN, request={"id": "task_9"}, refused=TaskNotFound),
        ),
    ),
    Operation(
        name="task_set_plan",
        toolset=TASK,
        effect=Effect.WRITE,
        stored=True,
        summary="Plans a task before work on it begins",
        request=SetTaskPlan,
        response=Done,
        handler=task_set_plan,
        refusals=(TaskNotFound, TaskBlocked, IllegalTransition, WorkflowClosed, ClaimHeld),
        examples=(
            Example(
                title="a pending task is planned",
                given=PLANNED,
                request={"id": "task_1", "plan": _TASK_PLAN, "context": {"limit": 5}},
                response={"success": True},
            ),
            Example(
                title="a blocked task is not planned yet",
                given=PLANNED,
                request={"id": "task_2", "plan": _TASK_PLAN},
                refused=TaskBlocked,
            ),
            Example(
                title="a task in progress is planned anew instead",
                given=STARTED,
                request={"id": "task_1", "plan": _TASK_PLAN},
                refused=IllegalTransition,
            ),
            Example(title=_UNKNOWN, request={"id": "task_9", "plan": _TASK_PLAN}, refused=TaskNotFound),
            Example(
                title="a workflow that has ended is refused",
                given=ABANDONED,
                request={"id": "task_1", "plan": _TASK_PLAN},
                refused=WorkflowClosed,
            ),
            Example(
                title="a task that another holds is refused",
                given=HELD,
                request={"id": "task_1", "plan": _TASK_PLAN},
                refused=ClaimHeld,
            ),
        ),
    ),
    Operation(
        name="task_update_status",
        toolset=TASK,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Starts, pauses, completes, fails or skips a task",
        request=UpdateTaskStatus,
        response=Done,
        handler=task_update_status,
        refusals=(
            TaskNotFound,
            TaskBlocked,
            IllegalTransition,
            MissingOutcome,
            MissingError,
            TasksOpen,
            WorkflowClosed,
            ClaimHeld,
        ),
        examples=(
            Example(
                title="a task is completed with its outcome",
                given=STARTED,
                request={"id": "task_1", "status": "completed", "outcome": "Retries five times"},
                response={"success": True},
            ),
            Example(
                title="a blocked task is not started",
                given=PLANNED,
                request={"id": "task_2", "status": "in_progress"},
                refused=TaskBlocked,
            ),
            Example(
                title="a pending task is not completed",
                given=PLANNED,
                request={"id": "task_1", "status": "completed", "outcome": "done"},
                refused=IllegalTransition,
            ),
            Example(
                title="completing needs an outcome",
                given=STARTED,
                request={"id": "task_1", "status": "completed"},
                refused=MissingOutcome,
            ),
            Example(
                title="failing needs an error",
                given=STARTED,
                request={"id": "task_1", "status": "failed"},
                refused=MissingError,
            ),
            Example(
                title="a task with open subtasks is not completed",
                given=(
                    *STARTED,
                    (
                        "workflow_add_tasks",
                        {
                            "id": "wf_1",
                            "tasks": [{"name": "part", "description": "-", "sequence": 1, "parent": "wrap"}],
                        },
                    ),
                ),
                request={"id": "task_1", "status": "completed", "outcome": "done"},
                refused=TasksOpen,
            ),
            Example(title=_UNKNOWN, request={"id": "task_9", "status": "paused"}, refused=TaskNotFound),
            Example(
                title="a workflow that has ended is refused",
                given=ABANDONED,
                request={"id": "task_1", "status": "in_progress"},
                refused=WorkflowClosed,
            ),
            Example(
                title="a task that another holds is refused",
                given=HELD,
                request={"id": "task_1", "status": "paused"},
                refused=ClaimHeld,
            ),
        ),
    ),
    Operation(
        name="task_replan",
        toolset=TASK,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Gives a failed or running task a new plan",
        request=ReplanTask,
        response=ReplannedTask,
        handler=task_replan,
        refusals=(TaskNotFound, IllegalTransition, WorkflowClosed, ClaimHeld),
        examples=(
            Example(
                title="a failed task gets another plan",
                given=_FAILED,
                request={"id": "task_1", "reason": "no proxy in CI", "new_plan": _TASK_PLAN},
                response={"success": True, "checkpoint_id": "cp_..."},
            ),
            Example(
                title="a pending task is not planned anew",
                given=PLANNED,
                request={"id": "task_1", "reason": "try", "new_plan": _TASK_PLAN},
                refused=IllegalTransition,
            ),
            Example(
                title=_UNKNOWN,
                request={"id": "task_9", "reason": "try", "new_plan": _TASK_PLAN},
                refused=TaskNotFound,
            ),
            Example(
                title="a workflow that has ended is refused",
                given=(*_FAILED, ("workflow_update_status", {"id": "wf_1", "status": "abandoned"})),
                request={"id": "task_1", "reason": "try", "new_plan": _TASK_PLAN},
                refused=WorkflowClosed,
            ),
            Example(
                title="a task that another holds is refused",
                given=HELD,
                request={"id": "task_1", "reason": "r", "new_plan": _TASK_PLAN},
                refused=ClaimHeld,
            ),
        ),
    ),
)
