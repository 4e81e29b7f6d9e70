"""A checkpoint: one recorded step of progress on a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from handrail.domain.work.task import Task
from handrail.kernel.records import UnitOfWork

CheckpointType = Literal["plan", "progress", "decision", "error", "recovery", "complete", "replan"]
CHECKPOINT_TYPES: tuple[str, ...] = get_args(CheckpointType)


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint. `sequence` counts from 1 within its task."""

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
    def is_end(self) -> bool:
        """True for the note left by a task's end: besides its summary it holds only the status."""
        return self.type in ("complete", "error") and set(self.detail) == {"status"}

    @property
    def is_settled(self) -> bool:
        """True for an error that was logged with its resolution and that no person has to review."""
        return (
            self.type == "error"
            and bool(self.detail.get("resolution"))
            and not self.detail.get("requires_human_review")
        )

    def listed(self, member: str) -> list[Any]:
        """What a member of its detail holds, be it one value or a list of them."""
        value = self.detail.get(member)
        if value is None:
            return []
        return value if isinstance(value, list) else [value]


def next_checkpoint(
    unit: UnitOfWork, task: Task, kind: str, summary: str, detail: Mapping[str, Any], files: Sequence[str] = ()
) -> Checkpoint:
    """The next checkpoint of a task. The caller records it together with the task, whose counter it raises."""
    return Checkpoint(
        id=unit.new_id("cp"),
        workflow_id=task.workflow_id,
        task_id=task.id,
        sequence=task.checkpoints + 1,
        type=kind,
        summary=summary,
        detail=dict(detail),
        files_changed=list(files),
        created_at=unit.now_ms(),
    )
