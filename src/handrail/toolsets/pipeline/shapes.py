"""What the tools of `tools.py` take. Their answers depend on the path a call takes, so they are plain objects."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

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
