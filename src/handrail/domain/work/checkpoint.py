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

    @property
    def is_settled(self) -> bool:
        """True for an error that was told together with what was done about it, and that no person has to look at."""
        return (
            self.type == "error"
            and bool(self.detail.get("resolution"))
            and not self.detail.get("requires_human_review")
        )
