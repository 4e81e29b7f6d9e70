"""What journal.md's tools take and answer, with the document's words. Types only; the tools are `journal.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Short = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(min_length=1, max_length=20_000)]
Texts = Annotated[list[Annotated[str, Meta(max_length=4000)]], Meta(max_length=200)]
TaskId = Annotated[str, Meta(max_length=200)]


class PlanStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a plan in words."""

    step: str
    goal: str


class StartWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the work is called, what it is for, and how it will go."""

    name: Annotated[Short, Meta(description="Short workflow name (e.g., 'Auth system refactor')")]
    description: Annotated[str, Meta(max_length=200_000, description="Detailed description of the workflow goal")] = ""
    plan: Annotated[list[PlanStep], Meta(max_length=500, description="Optional implementation plan as steps")] = []


class StartedWorkflow(msgspec.Struct, frozen=True):
    """The new workflow."""

    workflow_id: str
    created_at: str


class StartTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task of a workflow, or a part of one."""

    workflow_id: Annotated[str, Meta(description="Parent workflow ID")]
    name: Annotated[Short, Meta(description="Task name; one that the plan has is taken up")]
    goal: Annotated[Text, Meta(description="Precise goal of this task")]
    parent_task_id: Annotated[str, Meta(description="Parent task ID (null if top-level task)")] | None = None
    areas: Annotated[
        Texts, Meta(description="Code areas this task will touch (e.g., ['auth', 'api']); globs and paths too")
    ] = []
    plan_step: Annotated[str, Meta(max_length=200, description="The plan's step it belongs to")] | None = None
    directory: Annotated[str, Meta(max_length=4096, description="Where the work is done; the project if left out")] | (
        None
    ) = None


class StartedTask(msgspec.Struct, frozen=True):
    """The task, and the state of the working copy it began with."""

    task_id: str
    snapshot_id: str
    snapshot_type: str
    started_at: str
    warnings: tuple[str, ...]


class LogDecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision that will matter later."""

    task_id: TaskId
    category: Literal["architecture", "library_choice", "trade_off", "workaround", "other"]
    question: Annotated[Text, Meta(description="The decision question (e.g., 'Which auth library to use?')")]
    chosen: Annotated[Text, Meta(description="Chosen option")]
    reasoning: Annotated[Text, Meta(description="Why this choice (1-2 sentences)")]
    options_considered: Annotated[Texts, Meta(description="Options evaluated")] = []
    trade_offs: Annotated[str, Meta(max_length=20_000, description="Accepted compromises")] | None = None
    supersedes: Annotated[str, Meta(description="Id of an earlier decision this one replaces")] | None = None


class LogIssue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A problem that was met, and what was done about it."""

    task_id: TaskId
    type: Literal["documentation_gap", "bug_encountered", "dependency_conflict", "unclear_requirement", "other"]
    description: Annotated[Text, Meta(description="Description of the issue")]
    resolution: Annotated[Text, Meta(description="How the issue was resolved/worked around")]
    requires_human_review: Annotated[bool, Meta(description="Does a human need to review this resolution?")] = False


class LogMilestone(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the work is, for whoever watches."""

    task_id: TaskId
    message: Annotated[str, Meta(min_length=1, max_length=500, description="Short message (e.g., 'Running tests...')")]
    progress: Annotated[float, Meta(ge=0, le=100, description="Estimated progress (0-100)")] | None = None
    metadata: Annotated[dict[str, Any], Meta(description="Optional additional data")] = {}


class Logged(msgspec.Struct, frozen=True):
    """The note that was kept."""

    id: str
    task_id: str
    created_at: str
    warnings: tuple[str, ...]


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What came of a task."""

    summary: Annotated[Text, Meta(description="Summary of what was accomplished (2-4 sentences)")]
    achievements: Annotated[Texts, Meta(description="Concrete achievements (empty array if none)")] = []
    limitations: Annotated[Texts, Meta(description="Limitations/compromises (empty array if none)")] = []
    manual_review_needed: Annotated[bool, Meta(description="Does a human need to review before continuing?")] = False
    manual_review_reason: Annotated[str, Meta(max_length=4000, description="Why manual review is needed")] | None = None
    next_steps: Annotated[Texts, Meta(description="Suggested next steps (optional)")] = []


class Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was done on the way."""

    packages_added: Texts = []
    packages_removed: Texts = []
    commands_executed: Texts = []
    tests_status: Literal["passed", "failed", "not_run"] | None = None


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command that was run, and how it ended."""

    command: Annotated[str, Meta(max_length=4000)]
    exit_code: int


class CompleteTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a task ended."""

    task_id: TaskId
    status: Literal["success", "partial_success", "failed"]
    outcome: Outcome
    metadata: Metadata = Metadata()
    checks: Annotated[list[Check], Meta(max_length=100, description="Commands you ran, with their exit codes")] = []
    verify: Annotated[bool, Meta(description="Run the project's own checks and keep their results")] = False


class CompletedTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the task changed, and whether it stayed in scope."""

    task_id: str
    duration_seconds: int
    files_changed: dict[str, list[str]]
    verification: dict[str, Any]
    renamed: list[dict[str, str]] = []
    external: list[dict[str, str]] = []
    """Changes that came from elsewhere: merges, pulls, switches, other tasks."""
    overlaps: list[dict[str, Any]] = []
    checks: list[dict[str, Any]] = []
    review_id: str | None = None
    files_left_out: int = 0
    """Changed files beyond those that are listed here; the task's journal has all of them."""
