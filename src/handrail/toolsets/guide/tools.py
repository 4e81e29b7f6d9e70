"""Toolset `guide`: the four tools of guide.md. An agent asks for the next step of a guide and has its output checked.

guide.md says "workflow" for what Handrail calls a guide; the tools keep the document's names and fields.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.guides.definition import ID_MAX, ID_MIN, Guide, guide_to_wire, step_to_wire
from handrail.domain.guides.progress import find_step, next_step
from handrail.domain.guides.schema import guide_json_schema
from handrail.domain.guides.shelf import BrokenGuide
from handrail.domain.guides.validation import check_output
from handrail.kernel.errors import InvalidWorkflow, StepNotFound, WorkflowNotFound
from handrail.kernel.wording import did_you_mean
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.vocabulary import GUIDE

# Python's `$` also matches before a final newline; the published pattern means the end, so the check uses \Z.
_ID_PATTERN = r"^[a-z0-9-]+\Z"


def _id_type(description: str) -> Meta:
    return Meta(pattern=_ID_PATTERN, min_length=ID_MIN, max_length=ID_MAX, description=description)


WorkflowId = Annotated[str, _id_type("The workflow ID")]
CompletedStep = Annotated[str, Meta(pattern=_ID_PATTERN)]


class ListWorkflows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """workflow_list takes no arguments."""


class WorkflowEntry(msgspec.Struct, frozen=True):
    """One guide in the list."""

    id: str
    name: str
    description: str
    category: str
    version: str


class UnreadableEntry(msgspec.Struct, frozen=True):
    """A guide file that is there and cannot be followed."""

    id: str
    file: str
    reason: str


class WorkflowList(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every guide that can be followed; files that cannot are named, never dropped in silence."""

    workflows: tuple[WorkflowEntry, ...]
    unreadable: tuple[UnreadableEntry, ...] = ()


class GetWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which guide to show."""

    id: Annotated[str, _id_type("The workflow ID to retrieve")]


class NextStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Where the caller stands in a guide."""

    workflow_id: WorkflowId
    completed_steps: Annotated[
        list[CompletedStep],
        Meta(description="Array of completed step IDs", extra_json_schema={"uniqueItems": True}),
    ]
    current_step: Annotated[str, _id_type("Current step ID (optional)")] | UnsetType = UNSET
    context: (
        Annotated[
            dict[str, Any],
            Meta(
                description="Optional execution context for evaluating step conditions. Can contain variables like "
                "taskScope, userExpertise, complexity, etc.",
                extra_json_schema={"additionalProperties": True},
            ),
        ]
        | UnsetType
    ) = UNSET

    def __post_init__(self) -> None:
        if len(set(self.completed_steps)) != len(self.completed_steps):
            raise ValueError("completedSteps must not name a step twice")


class StepGuidance(msgspec.Struct, frozen=True):
    """The next step, what to do with it, and whether the guide is finished."""

    step: dict[str, Any]
    guidance: dict[str, Any]
    is_complete: bool = msgspec.field(name="isComplete")


class ValidateStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A step's output, to be held against the guide."""

    workflow_id: WorkflowId
    step_id: Annotated[str, _id_type("The step ID to validate")]
    output: Annotated[str, Meta(min_length=1, description="The step output to validate")]
    context: (
        Annotated[
            dict[str, Any],
            Meta(
                description="Optional execution context that the rules' conditions see",
                extra_json_schema={"additionalProperties": True},
            ),
        ]
        | UnsetType
    ) = UNSET


class StepVerdict(msgspec.Struct, frozen=True):
    """Whether the output holds, what is wrong with it and what would fix it."""

    valid: bool
    issues: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()


def workflow_list(call: Call, request: ListWorkflows) -> WorkflowList:  # noqa: ARG001 - every handler takes its request
    return WorkflowList(
        workflows=tuple(
            WorkflowEntry(
                id=found.guide.id,
                name=found.guide.name,
                description=found.guide.description,
                category=found.guide.category,
                version=found.guide.version,
            )
            for found in call.world.guides().guides()
        ),
        unreadable=tuple(
            UnreadableEntry(id=broken.id, file=broken.where, reason=broken.reason)
            for broken in call.world.guides().problems()
        ),
    )


def workflow_get(call: Call, request: GetWorkflow) -> dict[str, Any]:
    return guide_to_wire(_guide(call, request.id))


def workflow_next(call: Call, request: NextStep) -> StepGuidance:
    guide = _guide(call, request.workflow_id)
    progress = next_step(
        guide,
        completed=request.completed_steps,
        current=None if request.current_step is UNSET else request.current_step,
        context={} if request.context is UNSET else request.context,
    )
    guidance: dict[str, Any] = {"prompt": progress.prompt}
    if not request.completed_steps and progress.step is not None:
        guidance.update(_before_the_first_step(guide))
    return StepGuidance(
        step={} if progress.step is None else step_to_wire(progress.step),
        guidance=guidance,
        is_complete=progress.is_complete,
    )


def workflow_validate(call: Call, request: ValidateStep) -> StepVerdict:
    step = find_step(_guide(call, request.workflow_id), request.step_id)
    context = {} if request.context is UNSET else request.context
    verdict = check_output(step, request.output, context, call.world.guides().matcher)
    return StepVerdict(valid=verdict.valid, issues=verdict.issues, suggestions=verdict.suggestions)


def _guide(call: Call, guide_id: str) -> Guide:
    found = call.world.guides().find(guide_id)
    if found is None:
        known = [loaded.guide.id for loaded in call.world.guides().guides()]
        raise WorkflowNotFound(
            f"there is no guide {guide_id}{did_you_mean(guide_id, known)}",
            hint="workflow_list shows every guide",
            workflowId=guide_id,
        )
    if isinstance(found, BrokenGuide):
        raise InvalidWorkflow(
            f"{found.where}: {f'{found.path}: ' if found.path else ''}{found.reason}",
            hint="fix the file; the next call reads it again",
            workflowId=guide_id,
        )
    return found.guide


def _before_the_first_step(guide: Guide) -> dict[str, list[str]]:
    """What the guide says once, to an agent that begins it."""
    once = {
        "preconditions": guide.preconditions,
        "clarificationPrompts": guide.clarification_prompts,
        "metaGuidance": guide.meta_guidance,
    }
    return {key: list(texts) for key, texts in once.items() if texts}


_ENTRY = {
    "id": "ai-task-implementation",
    "name": "AI Task Prompt Workflow",
    "description": "Guides through task understanding → planning → implementation → verification",
    "category": "development",
    "version": "1.0.0",
}

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="workflow_list",
        toolset=GUIDE,
        effect=Effect.READ,
        summary="Lists all available workflows",
        request=ListWorkflows,
        response=WorkflowList,
        handler=workflow_list,
        examples=(Example(title="the list names every guide", request={}, response={"workflows": [_ENTRY]}),),
    ),
    Operation(
        name="workflow_get",
        toolset=GUIDE,
        effect=Effect.READ,
        summary="Retrieves a specific workflow by ID",
        request=GetWorkflow,
        response=dict[str, Any],
        response_schema=guide_json_schema,
        handler=workflow_get,
        refusals=(WorkflowNotFound, InvalidWorkflow),
        examples=(
            Example(
                title="a guide comes whole",
                request={"id": "ai-task-implementation"},
                response={
                    "id": "ai-task-implementation",
                    "name": "AI Task Prompt Workflow",
                    "description": _ENTRY["description"],
                    "preconditions": ["Task description is clear and complete"],
                    "steps": [
                        {
                            "id": "understand",
                            "title": "Deep understanding of task and codebase",
                            "prompt": "Analyze the task description...",
                            "requireConfirmation": True,
                        }
                    ],
                },
            ),
            Example(title="an unknown guide is refused", request={"id": "no-such-guide"}, refused=WorkflowNotFound),
            Example(title="a broken guide is refused", request={"id": "broken-guide"}, refused=InvalidWorkflow),
        ),
    ),
    Operation(
        name="workflow_next",
        toolset=GUIDE,
        effect=Effect.READ,
        summary="Gets the next step guidance based on workflow state",
        request=NextStep,
        response=StepGuidance,
        handler=workflow_next,
        refusals=(WorkflowNotFound, InvalidWorkflow, StepNotFound),
        examples=(
            Example(
                title="the first step comes with its guidance",
                request={
                    "workflowId": "ai-task-implementation",
                    "completedSteps": [],
                    "context": {"taskId": "TASK-123"},
                },
                response={
                    "step": {
                        "id": "understand",
                        "title": "Deep understanding of task and codebase",
                        "prompt": "Analyze the task description...",
                    },
                    "guidance": {"prompt": "PREP: ... IMPLEMENT: ... VERIFY: ..."},
                    "isComplete": False,
                },
            ),
            Example(
                title="an unknown guide is refused",
                request={"workflowId": "no-such-guide", "completedSteps": []},
                refused=WorkflowNotFound,
            ),
            Example(
                title="a broken guide is refused",
                request={"workflowId": "broken-guide", "completedSteps": []},
                refused=InvalidWorkflow,
            ),
            Example(
                title="an unknown current step is refused",
                request={"workflowId": "ai-task-implementation", "completedSteps": [], "currentStep": "no-such-step"},
                refused=StepNotFound,
            ),
        ),
    ),
    Operation(
        name="workflow_validate",
        toolset=GUIDE,
        effect=Effect.READ,
        summary="Validates step output against workflow requirements",
        request=ValidateStep,
        response=StepVerdict,
        handler=workflow_validate,
        refusals=(WorkflowNotFound, InvalidWorkflow, StepNotFound),
        examples=(
            Example(
                title="an output that holds",
                request={
                    "workflowId": "ai-task-implementation",
                    "stepId": "understand",
                    "output": "I have analyzed the requirements.",
                },
                response={"valid": True, "issues": [], "suggestions": []},
            ),
            Example(
                title="an unknown guide is refused",
                request={"workflowId": "no-such-guide", "stepId": "understand", "output": "x"},
                refused=WorkflowNotFound,
            ),
            Example(
                title="a broken guide is refused",
                request={"workflowId": "broken-guide", "stepId": "understand", "output": "x"},
                refused=InvalidWorkflow,
            ),
            Example(
                title="an unknown step is refused",
                request={"workflowId": "ai-task-implementation", "stepId": "no-such-step", "output": "x"},
                refused=StepNotFound,
            ),
        ),
    ),
)
