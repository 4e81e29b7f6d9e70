"""What journal.md's tools take and answer, in the document's words. Types only; the tools are in `tools.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Short = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=20_000)]
Said = Annotated[str, Meta(min_length=1, max_length=20_000)]
Texts = Annotated[list[Annotated[str, Meta(max_length=4000)]], Meta(max_length=200)]
TaskId = Annotated[str, Meta(max_length=200)]


class PlanStepText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a plan in words."""

    step: str
    goal: str


class StartWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the work is called, what it is for, and how it will go."""

    name: Short
    description: Annotated[str, Meta(max_length=200_000)] = ""
    plan: Annotated[list[PlanStepText], Meta(max_length=500)] = []


class StartedWorkflow(msgspec.Struct, frozen=True):
    """The new workflow."""

    workflow_id: str
    created_at: str


class StartTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task of a workflow, or a part of one."""

    workflow_id: str
    name: Annotated[Short, Meta(description="A planned task of this name is started")]
    goal: Said
    parent_task_id: str | None = None
    areas: Annotated[Texts, Meta(description="Code it will touch: words, paths, globs")] = []
    plan_step: Annotated[str, Meta(max_length=200, description="Step of the plan it is for")] | None = None
    directory: Annotated[str, Meta(max_length=4096)] | None = None


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
    question: Text
    chosen: Text
    reasoning: Text
    options_considered: Texts = []
    trade_offs: Annotated[str, Meta(max_length=20_000)] | None = None
    supersedes: Annotated[str, Meta(max_length=200)] | None = None


class LogIssue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A problem that was met, and what was done about it."""

    task_id: TaskId
    type: Literal["documentation_gap", "bug_encountered", "dependency_conflict", "unclear_requirement", "other"]
    description: Text
    resolution: Text
    requires_human_review: bool = False


class LogMilestone(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the work is, for whoever watches."""

    task_id: TaskId
    message: Annotated[str, Meta(max_length=500)]
    progress: Annotated[float, Meta(ge=0, le=100)] | None = None
    metadata: dict[str, Any] = {}


class Logged(msgspec.Struct, frozen=True):
    """The note that was kept."""

    id: str
    task_id: str
    created_at: str
    warnings: tuple[str, ...]


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What came of a task."""

    summary: Annotated[Said, Meta(description="2-4 sentences")]
    achievements: Texts = []
    limitations: Texts = []
    manual_review_needed: bool = False
    manual_review_reason: Annotated[str, Meta(max_length=4000)] | None = None
    next_steps: Texts = []


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
    checks: Annotated[list[Check], Meta(max_length=100)] = []
    verify: Annotated[bool, Meta(description="Run the project's own checks too")] = False


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
    partial: bool = False
    """True when something could not be looked at; the warnings say what."""
    files_left_out: int = 0
    """Changed files beyond those that are listed here; the task's journal has all of them."""
