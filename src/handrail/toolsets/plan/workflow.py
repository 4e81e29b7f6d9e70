"""Toolset `workflow`: plan.md's workflow lifecycle. Create a workflow, give it its plan, look at it, end it.

plan.md's "workflow" is a run of work, not a guide; if both documents' tools are on, the later ones are prefixed with
their family's name (`plan_workflow_get`). Changing an existing plan is in `replan.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.work.apply_plan import lay_plan
from handrail.domain.work.lookup import find_workflow
from handrail.domain.work.plan import MOST_TASKS, Name, PlanTask, Strings, Text
from handrail.domain.work.plan_edit import PlanEdit, tally_of, tasks_in
from handrail.domain.work.task import UNFINISHED, Task
from handrail.domain.work.transitions import check_open
from handrail.domain.work.workflow import OPEN, WORKFLOW_MACHINE, SourceType, Workflow
from handrail.kernel.errors import IllegalTransition, InvalidPlan, LockHeld, RunNotFound, TasksOpen, WorkflowClosed
from handrail.kernel.late import late_module
from handrail.kernel.records import Query, UnitOfWork
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import SHOWN, plan_to_change
from handrail.toolsets.plan.repository import repository_at
from handrail.toolsets.shown import brief_task, shown_task, shown_workflow
from handrail.toolsets.vocabulary import WORKFLOW

if TYPE_CHECKING:
    from handrail.domain.pipeline import ownership
else:
    ownership = late_module("handrail.domain.pipeline.ownership")

AtOnce = Annotated[int, Meta(ge=1, le=100, description="1 is one after the other")]
WorkflowStatus = Literal["planning", "ready", "in_progress", "paused", "completed", "failed", "abandoned"]


class CreateWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be done, and where it comes from."""

    name: Name
    source_type: SourceType
    source_content: Annotated[Text, Meta(description="The prompt or issue itself")]
    source_ref: Annotated[str, Meta(max_length=2000, description="URL or identifier")] | UnsetType = UNSET
    repository_path: str | UnsetType = UNSET
    max_parallel_tasks: AtOnce = 1
    auto_create_workspaces: bool = False


class CreatedWorkflow(msgspec.Struct, frozen=True):
    """The new workflow."""

    id: str
    name: str
    status: str
    max_parallel_tasks: int


class GetPlanWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which workflow, and how much of it."""

    id: str
    include_tasks: bool = False
    include_task_summaries: Annotated[bool, Meta(description="Tasks in short; false shows all of each")] = True
    task_limit: Annotated[int, Meta(ge=1, le=1000)] = 40
    task_offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    full: Annotated[bool, Meta(description="Long texts whole")] = False


class ListPlanWorkflows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which workflows."""

    repository_path: str | UnsetType = UNSET
    status: list[WorkflowStatus] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=200)] = 20
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class ListedWorkflow(msgspec.Struct, frozen=True):
    """One workflow in a list."""

    id: str
    name: str
    status: str
    source_type: str
    repository_path: str | None
    total_tasks: int
    completed_tasks: int
    updated_at: int


class WorkflowPage(msgspec.Struct, frozen=True):
    """A page of workflows, newest first."""

    workflows: tuple[ListedWorkflow, ...]
    total: int


class PlanText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the work will be done."""

    summary: Text
    approach: Text
    tasks: Annotated[list[PlanTask], Meta(min_length=1, max_length=MOST_TASKS)]
    risks: Strings = []
    assumptions: Strings = []


class SetPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A workflow and its plan."""

    id: str
    plan: PlanText


class PlannedWorkflow(msgspec.Struct, frozen=True):
    """What the plan made."""

    workflow_id: str
    tasks_created: int
    parallelizable_groups: int
    status: str


class UpdateStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A workflow's new status, and why."""

    id: str
    status: WorkflowStatus
    reason: Annotated[str, Meta(max_length=4000)] | None = None


class SetParallelism(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many tasks of a workflow may run at once."""

    id: str
    max_parallel_tasks: AtOnce
    auto_create_workspaces: bool | None = None


class Done(msgspec.Struct, frozen=True):
    """It is so now."""

    success: bool


def workflow_create(call: Call, request: CreateWorkflow) -> CreatedWorkflow:
    now = call.work.now_ms()
    workflow = Workflow(
        id=call.work.new_id("wf"),
        name=request.name,
        status=WORKFLOW_MACHINE.initial,
        source_type=request.source_type,
        source_ref=None if request.source_ref is UNSET else request.source_ref,
        source_content=request.source_content,
        repository_path=repository_at(call, request.repository_path),
        plan=None,
        max_parallel_tasks=request.max_parallel_tasks,
        auto_create_workspaces=request.auto_create_workspaces,
        created_at=now,
        updated_at=now,
    )
    call.work.record("workflow.created", workflow)
    return CreatedWorkflow(workflow.id, workflow.name, workflow.status, workflow.max_parallel_tasks)


def workflow_get(call: Call, request: GetPlanWorkflow) -> dict[str, Any]:
    workflow = find_workflow(call.work, request.id)
    shown = shown_workflow(workflow, full=request.full)
    tally = tally_of(call.work, workflow.id)
    shown |= {"total_tasks": tally.total, "completed_tasks": tally.finished}
    if request.include_tasks:
        page = Query((("workflow_id", workflow.id),), ("sequence",), request.task_limit, request.task_offset)
        tasks = call.work.select(Task, page)
        brief = request.include_task_summaries
        shown["tasks"] = [brief_task(task) if brief else shown_task(task, full=request.full) for task in tasks]
    return shown


def workflow_list(call: Call, request: ListPlanWorkflows) -> WorkflowPage:
    conditions: list[tuple[str, Any]] = []
    if request.repository_path is not UNSET:
        conditions.append(("repository_path", repository_at(call, request.repository_path)))
    if request.status is not UNSET:
        conditions.append(("status", tuple(request.status)))
    chosen = Query(tuple(conditions), ("-updated_at", "-id"), request.limit, request.offset)
    return WorkflowPage(
        workflows=tuple(_summary(call.work, workflow) for workflow in call.work.select(Workflow, chosen)),
        total=call.work.count(Workflow, Query(tuple(conditions))),
    )


def workflow_set_plan(call: Call, request: SetPlan) -> PlannedWorkflow:
    workflow = find_workflow(call.work, request.id)
    if workflow.status != WORKFLOW_MACHINE.initial:
        raise IllegalTransition(
            f"workflow {workflow.id} is {workflow.status}; a plan is set once, while it is planning",
            hint="workflow_add_tasks adds tasks, workflow_replan replaces those that have not started",
            status=workflow.status,
        )
    plan_to_change(call, workflow)
    edit = PlanEdit(call.work, workflow)
    tasks = lay_plan(call.work, edit, request.plan.tasks)
    edit.record("workflow.planned", status="ready", plan=plan_text(request.plan))
    groups = {task.parallel_group for task in tasks if task.parallel_group is not None}
    return PlannedWorkflow(workflow.id, len(tasks), len(groups), "ready")


def workflow_update_status(call: Call, request: UpdateStatus) -> Done:
    workflow = find_workflow(call.work, request.id)
    move_workflow(call.work, workflow, request.status, request.reason, humans_decide=call.humans_decide)
    return Done(True)


def move_workflow(
    unit: UnitOfWork, workflow: Workflow, status: str, reason: str | None, *, humans_decide: bool = False
) -> None:
    """Moves a workflow to another status. One with open tasks cannot be completed, and a pipeline run ends itself."""
    ownership.check_workflow(unit, workflow, status, humans_decide=humans_decide)
    if status == "completed" and workflow.status in OPEN and tally_of(unit, workflow.id).unfinished:
        raise _tasks_open(unit, workflow)
    WORKFLOW_MACHINE.check(f"workflow {workflow.id}", workflow.status, status)
    edit = PlanEdit(unit, workflow)
    edit.record(f"workflow.{status}", data={"reason": reason} if reason else None, status=status)


def workflow_set_parallelism(call: Call, request: SetParallelism) -> Done:
    workflow = find_workflow(call.work, request.id)
    check_open(workflow, starting=False)
    chosen: dict[str, Any] = {"max_parallel_tasks": request.max_parallel_tasks}
    if request.auto_create_workspaces is not None:
        chosen["auto_create_workspaces"] = request.auto_create_workspaces
    PlanEdit(call.work, workflow).record("workflow.parallelism", **chosen)
    return Done(True)


def plan_text(plan: PlanText) -> dict[str, Any]:
    """The plan without its tasks, which are records of their own."""
    shown: dict[str, Any] = msgspec.to_builtins(plan)
    del shown["tasks"]
    return shown


def _tasks_open(unit: UnitOfWork, workflow: Workflow) -> TasksOpen:
    tasks = tasks_in(unit, workflow.id, UNFINISHED, SHOWN)
    count = tally_of(unit, workflow.id).unfinished
    named = ", ".join(f"{task.id} ({task.name})" for task in tasks)
    return TasksOpen(
        f"workflow {workflow.id} has {count} open tasks: {named}{' …' if count > len(tasks) else ''}",
        hint="finish or skip them first, or set the workflow to abandoned",
        open_tasks=[brief_task(task) for task in tasks],
    )


def _summary(unit: UnitOfWork, workflow: Workflow) -> ListedWorkflow:
    tally = tally_of(unit, workflow.id)
    return ListedWorkflow(
        id=workflow.id,
        name=workflow.name,
        status=workflow.status,
        source_type=workflow.source_type,
        repository_path=workflow.repository_path,
        total_tasks=tally.total,
        completed_tasks=tally.finished,
        updated_at=workflow.updated_at,
    )


_CREATE = {
    "name": "Retry imports",
    "source_type": "prompt",
    "source_content": "Make imports survive a lost connection.",
}
_PLAN = {
    "summary": "Retry with backoff",
    "approach": "Wrap the fetch, then test with a server that hangs up",
    "tasks": [
        {"name": "wrap", "description": "Wrap the fetch in a retry", "sequence": 1},
        {"name": "test", "description": "Test against a server that hangs up", "sequence": 2, "depends_on": ["wrap"]},
    ],
}
CREATED = (("workflow_create", _CREATE),)
PLANNED = (*CREATED, ("workflow_set_plan", {"id": "wf_1", "plan": _PLAN}))
HELD = (
    *PLANNED,
    ("agent_register", {"name": "Anna", "runtime": "claude_code"}),
    ("task_claim", {"task_id": "task_1", "agent_id": "ag_1", "start": True}),
)
"""A plan whose first task an agent holds."""
LOCKED = ("graph_lock", {"graph_id": "wf_1", "holder": "Ben"})
"""Somebody has locked its plan."""
STARTED = (*PLANNED, ("task_update_status", {"id": "task_1", "status": "in_progress"}))
ABANDONED = (*PLANNED, ("workflow_update_status", {"id": "wf_1", "status": "abandoned"}))
_CYCLE = {
    **_PLAN,
    "tasks": [
        {"name": "one", "description": "-", "sequence": 1, "depends_on": ["two"]},
        {"name": "two", "description": "-", "sequence": 2, "depends_on": ["one"]},
    ],
}

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="workflow_create",
        toolset=WORKFLOW,
        effect=Effect.WRITE,
        stored=True,
        summary="Creates a workflow from a prompt or an issue",
        request=CreateWorkflow,
        response=CreatedWorkflow,
        handler=workflow_create,
        examples=(
            Example(
                title="a new workflow is planning",
                request=_CREATE,
                response={"name": "Retry imports", "status": "planning", "max_parallel_tasks": 1},
            ),
        ),
    ),
    Operation(
        name="workflow_get",
        toolset=WORKFLOW,
        effect=Effect.READ,
        stored=True,
        summary="Shows a workflow, with its tasks if asked",
        request=GetPlanWorkflow,
        response=dict[str, Any],
        handler=workflow_get,
        refusals=(RunNotFound,),
        examples=(
            Example(
                title="a planned workflow has its tasks",
                given=PLANNED,
                request={"id": "wf_1", "include_tasks": True},
                response={
                    "status": "ready",
                    "tasks": [{"name": "wrap", "status": "pending"}, {"name": "test", "status": "blocked"}],
                },
            ),
            Example(title="an unknown workflow is refused", request={"id": "wf_9"}, refused=RunNotFound),
        ),
    ),
    Operation(
        name="workflow_list",
        toolset=WORKFLOW,
        effect=Effect.READ,
        stored=True,
        summary="Lists workflows, newest first",
        request=ListPlanWorkflows,
        response=WorkflowPage,
        handler=workflow_list,
        examples=(
            Example(
                title="the list counts tasks",
                given=PLANNED,
                request={"status": ["ready"]},
                response={"workflows": [{"id": "wf_1", "total_tasks": 2, "completed_tasks": 0}], "total": 1},
            ),
        ),
    ),
    Operation(
        name="workflow_set_plan",
        toolset=WORKFLOW,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Sets a workflow's plan and creates its tasks",
        request=SetPlan,
        response=PlannedWorkflow,
        handler=workflow_set_plan,
        refusals=(RunNotFound, InvalidPlan, IllegalTransition, LockHeld),
        examples=(
            Example(
                title="a plan makes tasks",
                given=CREATED,
                request={"id": "wf_1", "plan": _PLAN},
                response={"workflow_id": "wf_1", "tasks_created": 2, "parallelizable_groups": 0, "status": "ready"},
            ),
            Example(title="an unknown workflow is refused", request={"id": "wf_9", "plan": _PLAN}, refused=RunNotFound),
            Example(
                title="tasks that wait for each other are refused",
                given=CREATED,
                request={"id": "wf_1", "plan": _CYCLE},
                refused=InvalidPlan,
            ),
            Example(
                title="a second plan is refused",
                given=PLANNED,
                request={"id": "wf_1", "plan": _PLAN},
                refused=IllegalTransition,
            ),
            Example(
                title="a plan that another has locked is refused",
                given=(*CREATED, LOCKED),
                request={"id": "wf_1", "plan": _PLAN},
                refused=LockHeld,
            ),
        ),
    ),
    Operation(
        name="workflow_update_status",
        toolset=WORKFLOW,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Pauses, resumes, completes or abandons a workflow",
        request=UpdateStatus,
        response=Done,
        handler=workflow_update_status,
        refusals=(RunNotFound, IllegalTransition, TasksOpen),
        examples=(
            Example(
                title="a running workflow is paused",
                given=STARTED,
                request={"id": "wf_1", "status": "paused", "reason": "waiting for a decision"},
                response={"success": True},
            ),
            Example(
                title="a workflow with open tasks is not completed",
                given=STARTED,
                request={"id": "wf_1", "status": "completed"},
                refused=TasksOpen,
            ),
            Example(
                title="what has ended stays ended",
                given=ABANDONED,
                request={"id": "wf_1", "status": "in_progress"},
                refused=IllegalTransition,
            ),
            Example(
                title="an unknown workflow is refused",
                request={"id": "wf_9", "status": "paused"},
                refused=RunNotFound,
            ),
        ),
    ),
    Operation(
        name="workflow_set_parallelism",
        toolset=WORKFLOW,
        effect=Effect.WRITE,
        stored=True,
        summary="Sets how many tasks of a workflow may run at once",
        request=SetParallelism,
        response=Done,
        handler=workflow_set_parallelism,
        refusals=(RunNotFound, WorkflowClosed),
        examples=(
            Example(
                title="three at once",
                given=PLANNED,
                request={"id": "wf_1", "max_parallel_tasks": 3},
                response={"success": True},
            ),
            Example(
                title="an unknown workflow is refused",
                request={"id": "wf_9", "max_parallel_tasks": 3},
                refused=RunNotFound,
            ),
            Example(
                title="a workflow that has ended is refused",
                given=ABANDONED,
                request={"id": "wf_1", "max_parallel_tasks": 3},
                refused=WorkflowClosed,
            ),
        ),
    ),
)
