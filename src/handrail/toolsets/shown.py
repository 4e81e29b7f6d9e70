"""Records as plan.md's types show them: plain objects with the documents' field names, long texts cut.

Not a place for logic: which records are shown is each tool's own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow

NOTE = 220
"""Characters of a note's summary and of its detail, where nobody asked for all of them."""
FILES = 10
TEXT = 2000
"""Characters of a text that are shown where nobody asked for all of it."""

_INNER = ("unmet", "open_children")
"""Counters the store keeps for itself."""


def shown_workflow(workflow: Workflow, *, full: bool) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(workflow)
    if not full:
        shown["source_content"] = cut(workflow.source_content)
    return shown


def shown_task(task: Task, *, full: bool) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(task)
    for name in _INNER:
        del shown[name]
    shown["checkpoint_count"] = shown.pop("checkpoints")
    shown["status"] = task.shown_status
    if not full:
        shown["description"] = cut(task.description)
        shown["outcome"] = cut(task.outcome) if task.outcome else task.outcome
    return shown


def brief_task(task: Task) -> dict[str, Any]:
    """One line's worth of a task."""
    shown = {"id": task.id, "name": task.name, "status": task.shown_status, "sequence": task.sequence}
    if task.depends_on:
        shown["depends_on"] = task.depends_on
    if task.outcome or task.error:
        shown["outcome"] = cut(task.outcome or task.error or "", 200)
    return shown


def shown_checkpoint(checkpoint: Checkpoint, *, full: bool) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(checkpoint)
    del shown["workflow_id"]
    if not full:
        shown["summary"] = cut(checkpoint.summary, NOTE)
        written = msgspec.json.encode(checkpoint.detail).decode()
        if len(written) > NOTE:
            shown["detail"] = {"cut": cut(written, NOTE)}
        shown["files_changed"] = checkpoint.files_changed[:FILES]
    return shown


def cut(text: str, most: int = TEXT) -> str:
    """The text, or its beginning with a note of how much more there is."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters; `full` shows them)"
