"""A workflow: a piece of work with a source, a plan and tasks. The record as it is stored, and its states.

How many tasks of a workflow are in each state. Every move updates it, so that nothing has to be counted.

Since when a workflow has had its status, who set it and why; and what an agent looking for work is told about a paused
one. Reads only: `transitions.py` makes sure that no task starts in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

import msgspec

from handrail.domain.work.task import FINISHED, SHOWN_STATES, Task
from handrail.kernel.ledger import Event, Only
from handrail.kernel.machine import Machine
from handrail.kernel.records import UnitOfWork

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


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one workflow, stored under its id. `blocked` is counted separately from `pending`."""

    id: str
    counts: dict[str, int]
    worked_ms: int = 0
    """Total time of completed tasks, each from its first start to its end."""
    version: int = 0
    """How often the plan itself changed: tasks, their order, their dependencies. Changes of task states do not
    count."""
    laid_at: int = 0
    """When the plan last changed."""

    @property
    def stream(self) -> str:
        return self.id

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def finished(self) -> int:
        return sum(self.counts[status] for status in FINISHED)

    @property
    def unfinished(self) -> int:
        return self.total - self.finished

    def after(self, *, gone: Iterable[Task] = (), come: Iterable[Task] = ()) -> Tally:
        """The tally with `gone` taken out and `come` added; a task that moved is in both."""
        counts = dict(self.counts)
        worked = self.worked_ms
        for task in gone:
            counts[task.shown_status] -= 1
            worked -= _work_ms(task)
        for task in come:
            counts[task.shown_status] += 1
            worked += _work_ms(task)
        return msgspec.structs.replace(self, counts=counts, worked_ms=worked)


def empty_tally(workflow_id: str) -> Tally:
    return Tally(id=workflow_id, counts=dict.fromkeys(SHOWN_STATES, 0))


def _work_ms(task: Task) -> int:
    return task.took_ms or 0 if task.status == "completed" else 0


LOOKED_AT = 50
"""Events of a workflow that are searched for the one that set its status."""
TEXT = 300


def status_event(unit: UnitOfWork, workflow: Workflow) -> Event | None:
    """The event that gave a workflow its current status; None if it is too far back to be found."""
    about = Only(streams=(workflow.stream,), kinds=("workflow.", "pipeline."))
    events = unit.newest(LOOKED_AT, about)
    return next((event for event in reversed(events) if _is_move_to(event, workflow.status)), None)


def _is_move_to(event: Event, status: str) -> bool:
    if event.kind.endswith(f".{status}"):
        return True
    return any(row.get("status") == status for row in event.rows("workflow"))


def reason_of(event: Event | None) -> str | None:
    """The reason given by the person or agent who did it."""
    reason = event.data.get("reason") if event is not None else None
    return reason[:TEXT] if isinstance(reason, str) and reason else None


def pause_details(unit: UnitOfWork, workflow: Workflow) -> dict[str, Any] | None:
    """Why no task can start in a workflow; None if it is not paused."""
    if workflow.status != "paused":
        return None
    event = status_event(unit, workflow)
    details: dict[str, Any] = {"since": event.at_ms if event is not None else workflow.updated_at}
    if event is not None:
        details["by"] = event.actor
    if (reason := reason_of(event)) is not None:
        details["reason"] = reason
    return {**details, "hint": "no task can start; workflow_update_status with in_progress resumes it"}
