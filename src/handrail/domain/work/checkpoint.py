"""A checkpoint: one recorded step of progress on a task."""

from __future__ import annotations

from typing import Any

import msgspec

CHECKPOINT_TYPES = ("plan", "progress", "decision", "error", "recovery", "complete", "replan")


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint. `sequence` counts within its task from 1."""

    id: str
    workflow_id: str
    task_id: str
    sequence: int
    type: str
    summary: str
    detail: dict[str, Any]
    files_changed: list[str]
    created_at: int

    @property
    def stream(self) -> str:
        return self.workflow_id
