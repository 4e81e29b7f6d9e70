"""Toolset `context`: plan.md's context loading. What an agent that forgot everything calls in order to continue.

Read-only. Ids may be left out if only one can be meant. `domain/recovery` packs the bundle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict, cast

import msgspec
from msgspec import Meta

from handrail.domain.journal.entry import JournalEntry
from handrail.domain.recovery.options import LEAST_TOKENS, MOST_TOKENS, Include, RecoveryOptions
from handrail.kernel.errors import NothingOpen, Refusal, RunNotFound, SeveralOpen, TaskNotFound
from handrail.kernel.late import late_module
from handrail.kernel.records import UnitOfWork
from handrail.kernel.tokens import estimate_tokens
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import task_here, what_comes_next, workflow_here
from handrail.toolsets.plan.workflow import PLANNED
from handrail.toolsets.vocabulary import CONTEXT

if TYPE_CHECKING:
    from handrail.domain.journal import journal
    from handrail.domain.recovery import bundle
    from handrail.domain.recovery import material as recovery_material
    from handrail.domain.recovery import summary as recovery_summary
else:
    journal = late_module("handrail.domain.journal.journal")
    bundle = late_module("handrail.domain.recovery.bundle")
    recovery_material = late_module("handrail.domain.recovery.material")
    recovery_summary = late_module("handrail.domain.recovery.summary")

DEFAULT_TOKENS = 8000


class LoadContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which task, and how much."""

    task_id: str | None = None
    include: Include | None = None
    max_tokens: Annotated[int, Meta(ge=LEAST_TOKENS, le=MOST_TOKENS)] = DEFAULT_TOKENS


class LoadedContext(TypedDict):
    """All that is needed to go on, as far as the budget allows. Where no task is in progress, `next` says what is."""

    workflow: dict[str, Any] | None
    current_task: dict[str, Any] | None
    next: str
    prior_tasks: list[dict[str, Any]]
    open_issues: NotRequired[list[dict[str, Any]]]
    tried: NotRequired[list[dict[str, Any]]]
    decisions: NotRequired[list[dict[str, Any]]]
    dependency_outcomes: NotRequired[list[dict[str, Any]]]
    changed_files: NotRequired[list[str]]
    sibling_tasks: NotRequired[list[dict[str, Any]]]
    omitted: NotRequired[list[dict[str, Any]]]
    ready: NotRequired[list[dict[str, Any]]]
    token_estimate: int


class GetSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which workflow, and how it is written."""

    id: str | None = None
    format: Literal["json", "markdown"] = "json"


class WorkflowDigest(msgspec.Struct, frozen=True):
    """A workflow in short."""

    summary: str | dict[str, Any]
    token_estimate: int


def look_now(call: Call, request: LoadContext) -> list[str]:
    """The files that the task has changed so far, if its journal knows how they were before."""

    def looked_for(unit: UnitOfWork) -> JournalEntry | None:
        return journal.open_entry(unit, task_here(msgspec.structs.replace(call, unit=unit), request.task_id))

    try:
        entry = call.ledger.run(journal.LOOKING, looked_for)
        return journal.changed_so_far(call.world.tracker(), entry) if entry is not None else []
    except Refusal:  # the handler reports it, or continues without
        return []


def task_load_context(call: Call, request: LoadContext) -> LoadedContext:
    try:
        task = task_here(call, request.task_id)
    except NothingOpen as nothing:
        return _nothing_to_load(nothing)
    include = request.include or Include()
    asked = RecoveryOptions(include=include, max_tokens=request.max_tokens, task_id=request.task_id)
    material = recovery_material.gather(call.work, task, include, call.prepared or [])
    return cast("LoadedContext", bundle.context_bundle(material, asked, _tools(call)))


def _nothing_to_load(nothing: NothingOpen) -> LoadedContext:
    next_ = what_comes_next(nothing)
    told = LoadedContext(workflow=None, current_task=None, next=next_, prior_tasks=[], token_estimate=0)
    if ready := nothing.details.get("open"):
        told["ready"] = ready
    told["token_estimate"] = estimate_tokens(msgspec.json.encode(told).decode())
    return told


def workflow_get_summary(call: Call, request: GetSummary) -> WorkflowDigest:
    try:
        workflow = workflow_here(call, request.id)
    except NothingOpen as nothing:
        return WorkflowDigest(said := what_comes_next(nothing), estimate_tokens(said))
    summary, tokens = recovery_summary.summarize(call.work, workflow, markdown=request.format == "markdown")
    return WorkflowDigest(summary, tokens)


def _tools(call: Call) -> dict[str, str]:
    """The names of the plan and journal tools on this server."""
    return {
        entry.operation.name: entry.name
        for entry in call.toolsets.published()
        if entry.operation.toolset.family in (CONTEXT.family, "journal")
    }


_STARTED = (
    *PLANNED,
    ("task_set_plan", {"id": "task_1", "plan": {"approach": "A decorator", "steps": ["write it", "use it"]}}),
    ("task_update_status", {"id": "task_1", "status": "in_progress"}),
    ("checkpoint_add", {"task_id": "task_1", "type": "decision", "summary": "Retry five times, then give up"}),
    ("checkpoint_add", {"task_id": "task_1", "type": "progress", "summary": "Written", "detail": {"step": 1}}),
)
_SECOND = (
    *_STARTED,
    ("task_update_status", {"id": "task_1", "status": "completed", "outcome": "Retries five times"}),
    ("task_update_status", {"id": "task_2", "status": "in_progress"}),
)
_ANOTHER = (
    PLANNED[0],
    ("workflow_add_tasks", {"id": "wf_2", "tasks": [{"name": "other", "description": "-", "sequence": 1}]}),
    ("task_update_status", {"id": "task_3", "status": "in_progress"}),
)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="task_load_context",
        toolset=CONTEXT,
        effect=Effect.READ,
        stored=True,
        summary="Loads everything you need to continue a task; without task_id, the one in progress",
        request=LoadContext,
        response=LoadedContext,
        handler=task_load_context,
        prepare=look_now,
        refusals=(TaskNotFound, SeveralOpen),
        examples=(
            Example(
                title="a wiped agent finds its task, what was decided and what is next",
                given=_STARTED,
                request={},
                response={
                    "workflow": {"id": "wf_1", "source_summary": "Make imports survive...", "status": "in_progress"},
                    "current_task": {
                        "id": "task_1",
                        "name": "wrap",
                        "plan": {"steps": ["write it", "use it"]},
                        "checkpoints": [
                            {"sequence": 1, "type": "decision", "summary": "Retry five times, then give up"},
                            {"sequence": 2, "type": "progress", "summary": "Written"},
                        ],
                        "status": "in_progress",
                    },
                    "next": "Step 2 of 2: use it",
                    "prior_tasks": [],
                },
            ),
            Example(
                title="what a task stood on comes with its outcome",
                given=_SECOND,
                request={"task_id": "task_2", "max_tokens": 600},
                response={
                    "current_task": {"name": "test"},
                    "dependency_outcomes": [
                        {"task_id": "task_1", "task_name": "wrap", "outcome": "Retries five times"}
                    ],
                    "decisions": [{"task": "wrap", "summary": "Retry five times, then give up"}],
                    "prior_tasks": [],
                },
            ),
            Example(title="an unknown task is refused", request={"task_id": "task_9"}, refused=TaskNotFound),
            Example(
                title="no task is in progress",
                given=PLANNED,
                request={},
                response={
                    "current_task": None,
                    "next": "No task is in progress here: ready to start: ...task_1...",
                    "ready": [{"id": "task_1", "name": "wrap"}],
                },
            ),
            Example(
                title="nothing was begun here yet",
                request={},
                response={
                    "workflow": None,
                    "next": "No workflow is open here: start_workflow or workflow_create starts one.",
                },
            ),
            Example(
                title="several tasks are in progress", given=(*_STARTED, *_ANOTHER), request={}, refused=SeveralOpen
            ),
        ),
    ),
    Operation(
        name="workflow_get_summary",
        toolset=CONTEXT,
        effect=Effect.READ,
        stored=True,
        summary="Sums up a workflow: goal, progress, decisions, problems, what is next",
        request=GetSummary,
        response=WorkflowDigest,
        handler=workflow_get_summary,
        refusals=(RunNotFound, SeveralOpen),
        examples=(
            Example(
                title="a workflow in short",
                given=_STARTED,
                request={"id": "wf_1"},
                response={
                    "summary": {
                        "goal": "Make imports survive a lost connection.",
                        "progress": {"in_progress": 1, "blocked": 1},
                        "running": [{"id": "task_1", "name": "wrap", "last": "Written"}],
                        "decisions": [{"task": "wrap", "summary": "Retry five times, then give up"}],
                    }
                },
            ),
            Example(
                title="for a file that agents read",
                given=_SECOND,
                request={"format": "markdown"},
                response={"summary": "## Retry imports (wf_1, in_progress)...**Running**...test...five times..."},
            ),
            Example(title="an unknown workflow is refused", request={"id": "wf_9"}, refused=RunNotFound),
            Example(title="nothing is open", request={}, response={"summary": "No workflow is open here: ..."}),
            Example(title="several are open", given=(*PLANNED, PLANNED[0]), request={}, refused=SeveralOpen),
        ),
    ),
)
