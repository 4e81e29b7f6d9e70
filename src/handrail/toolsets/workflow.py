"""Toolset `workflow`: plan.md's workflow lifecycle. Create a workflow, give it its plan, look at it.

plan.md's "workflow" is a run of work, not a guide; where both documents' tools are on, the later ones carry their
family's name (`plan_workflow_get`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.work.planning import PlannedTask, check_plan
from handrail.domain.work.task import TASK_MACHINE, Task
from handrail.domain.work.workflow import WORKFLOW_MACHINE, Workflow
from handrail.kernel.errors import IllegalTransition, InvalidPlan, RunNotFound
from handrail.kernel.query import Query, where
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call, Effect, Example, Operation, Toolset

WORKFLOW = Toolset(
    name="workflow",
    family="plan",
    purpose="Durable workflows: what is to be done, its plan and its tasks.",
)

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=200_000)]
WorkflowStatus = Literal["planning", "ready", "in_progress", "paused", "completed", "failed", "abandoned"]


class CreateWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be done, and where it comes from."""

    name: Name
    source_type: Literal["prompt", "github_issue", "linear", "jira", "custom"]
    source_content: Annotated[Text, Meta(description="The prompt or issue itself")]
    source_ref: Annotated[str, Meta(max_length=2000, description="URL or identifier")] | UnsetType = UNSET
    repository_path: str | UnsetType = UNSET
    max_parallel_tasks: Annotated[int, Meta(ge=1, le=100)] = 1
    auto_create_workspaces: bool = False


class CreatedWorkflow(msgspec.Struct, frozen=True):
    """The new workflow."""

    id: str
    name: str
    status: str
    max_parallel_tasks: int


class GetWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which workflow, and how much of it."""

    id: str
    include_tasks: bool = False
    include_task_summaries: bool = True


class ListWorkflows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which workflows."""

    repository_path: str | UnsetType = UNSET
    status: list[WorkflowStatus] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=200)] = 20
    offset: Annotated[int, Meta(ge=0)] = 0


class WorkflowSummary(msgspec.Struct, frozen=True):
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

    workflows: tuple[WorkflowSummary, ...]
    total: int


class PlanTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One task of a plan."""

    name: Name
    description: Text
    sequence: Annotated[int, Meta(ge=0)]
    parallel_group: str | UnsetType = UNSET
    depends_on: Annotated[list[str], Meta(max_length=500)] = []
    estimated_complexity: Literal["low", "medium", "high"] | UnsetType = UNSET
    files_likely_affected: list[str] = []
    priority: int = 0


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the work will be done."""

    summary: Text
    approach: Text
    tasks: Annotated[list[PlanTask], Meta(min_length=1, max_length=10_000)]
    risks: list[str] = []
    assumptions: list[str] = []


class SetPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A workflow and its plan."""

    id: str
    plan: Plan


class PlannedWorkflow(msgspec.Struct, frozen=True):
    """What the plan made."""

    workflow_id: str
    tasks_created: int
    parallelizable_groups: int
    status: str


def workflow_create(call: Call, request: CreateWorkflow) -> CreatedWorkflow:
    now = call.work.now_ms()
    workflow = Workflow(
        id=call.work.new_id("wf"),
        name=request.name,
        status=WORKFLOW_MACHINE.initial,
        source_type=request.source_type,
        source_ref=None if request.source_ref is UNSET else request.source_ref,
        source_content=request.source_content,
        repository_path=None if request.repository_path is UNSET else request.repository_path,
        plan=None,
        max_parallel_tasks=request.max_parallel_tasks,
        auto_create_workspaces=request.auto_create_workspaces,
        created_at=now,
        updated_at=now,
    )
    call.work.record("workflow.created", workflow)
    return CreatedWorkflow(workflow.id, workflow.name, workflow.status, workflow.max_parallel_tasks)


def workflow_get(call: Call, request: GetWorkflow) -> dict[str, Any]:
    workflow = find_workflow(call.work, request.id)
    shown: dict[str, Any] = msgspec.to_builtins(workflow)
    if request.include_tasks:
        tasks = call.work.select(Task, Query((("workflow_id", workflow.id),), ("sequence", "created_at")))
        shown["tasks"] = [
            msgspec.to_builtins(task) if not request.include_task_summaries else _brief(task) for task in tasks
        ]
    return shown


def workflow_list(call: Call, request: ListWorkflows) -> WorkflowPage:
    conditions: list[tuple[str, Any]] = []
    if request.repository_path is not UNSET:
        conditions.append(("repository_path", request.repository_path))
    if request.status is not UNSET:
        conditions.append(("status", tuple(request.status)))
    chosen = Query(tuple(conditions), ("-updated_at", "-id"), request.limit, request.offset)
    return WorkflowPage(
        workflows=tuple(_summary(call.work, workflow) for workflow in call.work.select(Workflow, chosen)),
        total=call.work.count(Workflow, Query(tuple(conditions))),
    )


def workflow_set_plan(call: Call, request: SetPlan) -> PlannedWorkflow:
    workflow = find_workflow(call.work, request.id)
    WORKFLOW_MACHINE.check(f"workflow {workflow.id}", workflow.status, "ready")
    check_plan([PlannedTask(task.name, tuple(task.depends_on)) for task in request.plan.tasks])
    now = call.work.now_ms()
    tasks = [_new_task(call.work, workflow, planned, now) for planned in request.plan.tasks]
    plan = msgspec.to_builtins(request.plan)
    planned_workflow = msgspec.structs.replace(workflow, status="ready", plan=plan, updated_at=now)
    call.work.record("workflow.planned", planned_workflow, *tasks)
    groups = {task.parallel_group for task in request.plan.tasks if task.parallel_group is not UNSET}
    return PlannedWorkflow(workflow.id, len(tasks), len(groups), "ready")


def find_workflow(unit: UnitOfWork, workflow_id: str) -> Workflow:
    """The workflow, or a refusal that names the newest ones."""
    workflow = unit.get(Workflow, workflow_id)
    if workflow is None:
        newest = unit.select(Workflow, Query((), ("-updated_at",), 5))
        known = (
            ", ".join(f"{other.id} ({other.name})" for other in newest)
            or "there is none yet: workflow_create makes one"
        )
        raise RunNotFound(f"there is no workflow {workflow_id}", hint=f"newest: {known}", id=workflow_id)
    return workflow


def _new_task(unit: UnitOfWork, workflow: Workflow, planned: PlanTask, now: int) -> Task:
    return Task(
        id=unit.new_id("task"),
        workflow_id=workflow.id,
        parent_task_id=None,
        name=planned.name,
        description=planned.description,
        status=TASK_MACHINE.initial,
        sequence=planned.sequence,
        priority=planned.priority,
        parallel_group=None if planned.parallel_group is UNSET else planned.parallel_group,
        depends_on=list(planned.depends_on),
        unmet=len(set(planned.depends_on)),
        estimated_complexity=None if planned.estimated_complexity is UNSET else planned.estimated_complexity,
        files_likely_affected=list(planned.files_likely_affected),
        plan=None,
        context={},
        outcome=None,
        outcome_detail=None,
        error=None,
        checkpoints=0,
        created_at=now,
        updated_at=now,
    )


def _shown_status(task: Task) -> str:
    return "blocked" if task.status == "pending" and task.unmet else task.status


def _whole(task: Task) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(task)
    return {**shown, "status": _shown_status(task)}


def _brief(task: Task) -> dict[str, Any]:
    status = _shown_status(task)
    return {"id": task.id, "name": task.name, "status": status, "sequence": task.sequence, "outcome": task.outcome}


def _summary(unit: UnitOfWork, workflow: Workflow) -> WorkflowSummary:
    return WorkflowSummary(
        id=workflow.id,
        name=workflow.name,
        status=workflow.status,
        source_type=workflow.source_type,
        repository_path=workflow.repository_path,
        total_tasks=unit.count(Task, where(workflow_id=workflow.id)),
        completed_tasks=unit.count(Task, where(workflow_id=workflow.id, status=("completed", "skipped"))),
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
        summary="Shows a workflow, with its tasks where asked",
        request=GetWorkflow,
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
        request=ListWorkflows,
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
        stored=True,
        summary="Sets a workflow's plan and makes its tasks",
        request=SetPlan,
        response=PlannedWorkflow,
        handler=workflow_set_plan,
        refusals=(RunNotFound, InvalidPlan, IllegalTransition),
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
        ),
    ),
)
