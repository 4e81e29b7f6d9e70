"""A workflow: a piece of work with a source, a plan and tasks. The record as it is stored, and its states."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from handrail.kernel.machine import Machine

WORKFLOW_MACHINE = Machine(
    "workflow",
    {
        "planning": ("ready", "abandoned"),
        "ready": ("in_progress", "abandoned"),
        "in_progress": ("paused", "completed", "failed", "abandoned"),
        "paused": ("in_progress", "abandoned"),
        "failed": ("in_progress", "abandoned"),
        "completed": (),
        "abandoned": (),
    },
    {("planning", "in_progress"): "a first task is started"},
)
CLOSED = WORKFLOW_MACHINE.terminal
OPEN = tuple(state for state in WORKFLOW_MACHINE.states if state not in CLOSED)

SourceType = Literal["prompt", "github_issue", "linear", "jira", "custom"]
SOURCE_TYPES: tuple[str, ...] = get_args(SourceType)


class Workflow(msgspec.Struct, frozen=True, kw_only=True):
    """One workflow. Everything that belongs to it is in the stream with its id."""

    id: str
    name: str
    status: str
    source_type: str
    source_ref: str | None
    source_content: str
    repository_path: str | None
    plan: dict[str, Any] | None
    max_parallel_tasks: int
    auto_create_workspaces: bool
    created_at: int
    updated_at: int
    """The last change to it or to any of its tasks."""

    @property
    def stream(self) -> str:
        return self.id
