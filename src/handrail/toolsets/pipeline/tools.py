"""Toolset `pipeline`: pipeline.md. An orchestrating agent asks what is next, does that action, and reports on it.

Declarations only: the work is done in `start.py` and `turns.py`, which the first call loads. The engine
(`domain/pipeline`) decides what is next.

The types say what tools take. Answers depend on the path a call takes, so they are plain objects.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from handrail.kernel.errors import ArtefactMissing, IllegalTransition, RunNotFound, WorkspaceHeld
from handrail.kernel.late import by_name
from handrail.operation import Asks, Effect, Example, Operation, Wait
from handrail.toolsets.vocabulary import PIPELINE

WorkspaceText = Annotated[str, Meta(min_length=1, max_length=300)]
Amount = Annotated[int, Meta(ge=0, le=10**12)]
LongText = Annotated[str, Meta(max_length=100_000)]


class Init(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The raw request."""

    arguments: LongText
    current_branch: Annotated[str, Meta(max_length=300)] | None = None


class Confirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the person decided."""

    effort: Literal["S", "M", "L"]
    workspace_slug: Annotated[str, Meta(max_length=200)] = ""
    use_current_branch: bool = False
    enriched_request_body: LongText | None = None
    flow: Annotated[str, Meta(max_length=100, description="A flow of your own in place of the effort's")] | None = None
    discussion_answers: (
        Annotated[str, Meta(max_length=100_000, description="Where enriched_request_body lacks them")] | None
    ) = None


class InitWithContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request with what was fetched, discussed and decided."""

    workspace: WorkspaceText
    source_id: str | None = None
    source_url: str | None = None
    external_context: Annotated[
        dict[str, Any], Meta(description="The fields of fetch_needed, such as title or github_title")
    ] = {}
    flags: dict[str, Any] = {}
    task_text: LongText | None = None
    user_confirmation: Confirmation | None = None
    discussion_answers: LongText | None = None


class NextAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What came of the action before, and a person's answer where one was asked for."""

    workspace: WorkspaceText
    previous_action_complete: bool = False
    previous_tokens: Amount = 0
    previous_duration_ms: Amount = 0
    previous_model: Annotated[str, Meta(max_length=100)] = ""
    previous_setup_only: bool = False
    previous_action_id: Annotated[str, Meta(description="Its action_id: makes repeating a call safe")] | None = None
    previous_error: Annotated[str, Meta(max_length=2000, description="Why it failed: it is done again")] | None = None
    user_response: Annotated[str, Meta(max_length=20_000)] | None = None
    gate_id: Annotated[str, Meta(description="Which gate user_response answers")] | None = None
    wait_ms: Annotated[int, Meta(ge=0, le=25_000, description="Wait so long for a person's answer")] = 0
    until: Annotated[str, Meta(max_length=100, description="Go on to this phase, or to the end")] | None = None
    take_over: Annotated[bool, Meta(description="Drive a run that another orchestrator holds")] = False


class ReportResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What came of one phase."""

    workspace: WorkspaceText
    phase: Annotated[str, Meta(min_length=1, max_length=100)]
    tokens_used: Amount = 0
    duration_ms: Amount = 0
    model: Annotated[str, Meta(max_length=100)] = ""
    setup_only: bool = False
    error: Annotated[str, Meta(max_length=2000, description="Why it failed: it is not done")] | None = None


class ResumeInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which run."""

    workspace: WorkspaceText


_GITHUB = "https://github.com/owner/repo/issues/42"
_TEXT = {"workspace": ".specs/20260401-fix-auth", "task_text": "Fix the auth timeout"}

_BEGUN = (
    (
        "pipeline_init_with_context",
        {
            "workspace": ".specs/20260401-fix-auth",
            "task_text": "Fix the auth timeout",
            "user_confirmation": {"effort": "M", "workspace_slug": "fix-auth"},
        },
    ),
)
_AT = {"workspace": ".specs/20260401-fix-auth"}
_DRIVEN = (
    *_BEGUN,
    ("agent_register", {"name": "driver", "runtime": "claude_code"}),
    ("pipeline_next_action", {**_AT, "agent_id": "ag_1"}),
)
_UNKNOWN = "a workspace that no run has is refused"

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="pipeline_init",
        toolset=PIPELINE,
        effect=Effect.READ,
        stored=True,
        summary="Parses a request: source, flags, workspace, or the run to resume",
        request=Init,
        response=dict[str, Any],
        prepare=by_name("handrail.toolsets.pipeline.start:looked_for_state"),
        handler=by_name("handrail.toolsets.pipeline.start:pipeline_init"),
        examples=(
            Example(
                title="an issue on GitHub",
                request={"arguments": _GITHUB, "current_branch": "main"},
                response={
                    "workspace": ".specs/...-https-github-com-owner-repo-issues-42",
                    "spec_name": "https-github-com-owner-repo-issues-42",
                    "source_type": "github_issue",
                    "source_url": _GITHUB,
                    "source_id": "42",
                    "core_text": _GITHUB,
                    "flags": {"auto": False, "skip_pr": False, "effort_override": None, "current_branch": "main"},
                    "fetch_needed": {"type": "github", "fields": ["labels", "title", "body"]},
                },
            ),
            Example(
                title="too little is no request",
                request={"arguments": "x"},
                response={"errors": ["input too short: minimum 3 characters required"]},
            ),
        ),
    ),
    Operation(
        name="pipeline_init_with_context",
        toolset=PIPELINE,
        effect=Effect.WRITE,
        stored=True,
        summary="Estimates the effort, asks what must be asked, and starts the run once it is confirmed",
        request=InitWithContext,
        response=dict[str, Any],
        prepare=by_name("handrail.toolsets.pipeline.start:looked_at_flows"),
        handler=by_name("handrail.toolsets.pipeline.start:pipeline_init_with_context"),
        follow=by_name("handrail.toolsets.pipeline.turns:write_request"),
        examples=(
            Example(
                title="the effort is found and must be confirmed",
                request=_TEXT,
                response={
                    "needs_user_confirmation": {
                        "detected_effort": "M",
                        "effort_options": {"S": {"recommended": False}, "M": {"recommended": True}},
                        "is_main_branch": True,
                        "enriched_request_body": "Fix the auth timeout",
                        "message": 'Detected effort="M"...',
                    }
                },
            ),
            Example(
                title="a confirmed run is ready",
                request={
                    **_TEXT,
                    "source_id": "42",
                    "user_confirmation": {"effort": "M", "workspace_slug": "Fix auth"},
                },
                response={
                    "ready": True,
                    "workspace": ".specs/20260401-42-fix-auth",
                    "effort": "M",
                    "flow_template": "standard",
                    "skipped_phases": ["phase-4b", "checkpoint-b"],
                    "request_md_content": "---...source_type: text...Fix the auth timeout...",
                    "branch": "feature/42-fix-auth",
                    "create_branch": True,
                },
            ),
            Example(
                title="with --discuss there are questions first",
                request={**_TEXT, "flags": {"discuss": True}},
                response={"needs_discussion": {"questions": ["What is the main goal of this change?"]}},
            ),
        ),
    ),
    Operation(
        name="pipeline_next_action",
        toolset=PIPELINE,
        effect=Effect.WRITE,
        stored=True,
        summary="Returns the one action to do next; takes the result of the one before",
        request=NextAction,
        response=dict[str, Any],
        prepare=by_name("handrail.toolsets.pipeline.turns:documents_read"),
        handler=by_name("handrail.toolsets.pipeline.turns:pipeline_next_action"),
        follow=by_name("handrail.toolsets.pipeline.turns:mirror_state"),
        wait=Wait(
            lambda request: 0 if request.user_response else request.wait_ms,
            lambda answer: not answer.get("still_waiting"),
        ),
        asks=Asks(
            question=by_name("handrail.toolsets.pipeline.elicitation:question"),
            answered=by_name("handrail.toolsets.pipeline.elicitation:answered"),
            again=lambda request: NextAction(request.workspace),
            told_once=("report_result", "warning"),
        ),
        refusals=(RunNotFound, IllegalTransition, WorkspaceHeld),
        examples=(
            Example(
                title="a fresh run begins with the situation",
                given=_BEGUN,
                request=_AT,
                response={
                    "type": "spawn_agent",
                    "warning": "",
                    "display_message": "Phase 1: Situation Analysis",
                    "report_result": None,
                    "agent": "situation-analyst",
                    "prompt": "...## Input Files\n- .specs/20260401-fix-auth/request.md...",
                    "model": "sonnet",
                    "phase": "phase-1",
                    "input_files": ["request.md"],
                    "output_file": "analysis.md",
                    "parallel_task_ids": None,
                },
            ),
            Example(title=_UNKNOWN, request=_AT, refused=RunNotFound),
            Example(
                title="a second orchestrator is told of the first", given=_DRIVEN, request=_AT, refused=WorkspaceHeld
            ),
            Example(
                title="an answer that nobody asked for is refused",
                given=_BEGUN,
                request={**_AT, "user_response": "approve"},
                refused=IllegalTransition,
            ),
        ),
    ),
    Operation(
        name="pipeline_report_result",
        toolset=PIPELINE,
        effect=Effect.WRITE,
        stored=True,
        summary="Records the result of a phase: cost, verdict, findings",
        request=ReportResult,
        response=dict[str, Any],
        prepare=by_name("handrail.toolsets.pipeline.turns:documents_read"),
        handler=by_name("handrail.toolsets.pipeline.turns:pipeline_report_result"),
        follow=by_name("handrail.toolsets.pipeline.turns:mirror_state"),
        refusals=(RunNotFound, IllegalTransition, ArtefactMissing, WorkspaceHeld),
        examples=(
            Example(
                title="an analysis is there",
                given=(*_BEGUN, ("pipeline_next_action", _AT)),
                files={".specs/20260401-fix-auth/analysis.md": "# Analysis\n\nThe timeout is in the middleware.\n"},
                request={**_AT, "phase": "phase-1", "tokens_used": 15000, "duration_ms": 45000, "model": "sonnet"},
                response={
                    "state_updated": True,
                    "artifact_written": "analysis.md",
                    "verdict_parsed": None,
                    "findings": [],
                    "next_action_hint": "proceed",
                    "warning": "",
                    "display_message": "",
                },
            ),
            Example(
                title="a phase without its file is refused",
                given=(*_BEGUN, ("pipeline_next_action", _AT)),
                request={**_AT, "phase": "phase-1", "tokens_used": 15000},
                refused=ArtefactMissing,
            ),
            Example(
                title="a phase that was not handed out is refused",
                given=_BEGUN,
                request={**_AT, "phase": "phase-3"},
                refused=IllegalTransition,
            ),
            Example(title=_UNKNOWN, request={**_AT, "phase": "phase-1"}, refused=RunNotFound),
            Example(
                title="only who drives the run reports",
                given=_DRIVEN,
                request={**_AT, "phase": "phase-1"},
                refused=WorkspaceHeld,
            ),
        ),
    ),
    Operation(
        name="state_resume_info",
        toolset=PIPELINE,
        effect=Effect.READ,
        stored=True,
        summary="Shows where a run stands",
        request=ResumeInfo,
        response=dict[str, Any],
        prepare=by_name("handrail.toolsets.pipeline.turns:documents_read"),
        handler=by_name("handrail.toolsets.pipeline.turns:state_resume_info"),
        refusals=(RunNotFound,),
        examples=(
            Example(
                title="a run that has just begun",
                given=_BEGUN,
                request=_AT,
                response={"workspace": ".specs/20260401-fix-auth", "effort": "M", "completed_phases": []},
            ),
            Example(title=_UNKNOWN, request=_AT, refused=RunNotFound),
        ),
    ),
)
