"""Records in the shape of plan.md's types: plain objects with the document's field names, long texts cut.

Not a place for logic: each tool decides which records are shown.
"""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow

NOTE = 220
"""How many characters of a note's summary and of its detail are shown, unless all were requested."""
FILES = 10
TEXT = 2000
"""How many characters of a text are shown, unless all were requested."""

_INNER = ("unmet", "open_children")
"""Counters that the store keeps for itself."""
FULL = "`full` shows them"
"""How a caller gets the rest of a text that was cut, if its own tool has an argument for that."""
TASK_GET = "task_get with `full` shows them"
"""The same if it has none and the text is a task's."""


def shown_workflow(workflow: Workflow, *, full: bool) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(workflow)
    if not full:
        shown["source_content"] = cut(workflow.source_content)
    return shown


def shown_task(task: Task, *, full: bool, rest: str = FULL) -> dict[str, Any]:
    """A task; if long texts are cut, `rest` says how to get the rest."""
    shown: dict[str, Any] = msgspec.to_builtins(task)
    for name in _INNER:
        del shown[name]
    shown["checkpoint_count"] = shown.pop("checkpoints")
    shown["status"] = task.shown_status
    if not full:
        shown["description"] = cut(task.description, rest=rest)
        shown["outcome"] = cut(task.outcome, rest=rest) if task.outcome else task.outcome
    return shown


def brief_task(task: Task) -> dict[str, Any]:
    """A task in one line."""
    shown = {"id": task.id, "name": task.name, "status": task.shown_status, "sequence": task.sequence}
    if task.depends_on:
        shown["depends_on"] = task.depends_on
    if task.outcome or task.error:
        shown["outcome"] = cut(task.outcome or task.error or "", 200, rest=TASK_GET)
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


def cut(text: str, most: int = TEXT, *, rest: str = FULL) -> str:
    """The text, or its beginning with a note on how much more there is and how to get it."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters; {rest})"
