"""A task of a workflow: the record as it is stored, and its states. `blocked` is computed, never stored."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.kernel.machine import Machine

TASK_MACHINE = Machine(
    "task",
    {
        "pending": ("planning", "in_progress", "skipped"),
        "planning": ("in_progress", "completed", "failed", "pending"),
        "in_progress": ("completed", "paused", "failed", "pending"),
        "paused": ("in_progress", "failed"),
        "failed": ("pending", "in_progress", "skipped"),
        "completed": (),
        "skipped": (),
    },
)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task. `unmet` counts the dependencies that are not finished yet: 0 and pending is ready."""

    id: str
    workflow_id: str
    parent_task_id: str | None
    name: str
    description: str
    status: str
    sequence: int
    priority: int
    parallel_group: str | None
    depends_on: list[str]
    unmet: int
    estimated_complexity: str | None
    files_likely_affected: list[str]
    plan: dict[str, Any] | None
    context: dict[str, Any]
    outcome: str | None
    outcome_detail: dict[str, Any] | None
    error: str | None
    checkpoints: int
    created_at: int
    updated_at: int

    @property
    def stream(self) -> str:
        return self.workflow_id
