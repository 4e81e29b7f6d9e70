"""What the tools of `orchestration.py` take and answer. Types only."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType


class NextTasks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which workflow."""

    workflow_id: str | None = None
    include_failed: bool = True
    limit: Annotated[int, Meta(ge=1, le=200)] = 10


class NextTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """A task that can be started now."""

    id: str
    name: str
    description: str
    can_parallelize: bool
    dependencies_completed: tuple[str, ...]
    status: str
    sequence: int
    priority: int = 0
    parallel_with: tuple[str, ...] = ()
    requires: list[str] = []
    unblocks: int = 0
    error: str | None = None
    """Why it failed before."""
    begun_by: str | None = None
    """The agent that began it and has not been heard of since."""
    unknown_scope: bool = False
    """True where a batch is proposed and nothing says what this task will touch."""


class NextTasksFound(msgspec.Struct, frozen=True, omit_defaults=True):
    """What can be started, the best first, and how many of it at once."""

    tasks: tuple[NextTask, ...]
    max_parallel: int
    recommended_count: int
    workflow_status: str | None
    all_complete: bool
    workflow_id: str | None
    running: tuple[dict[str, str], ...]
    next: str | None = None
    """What to do where no workflow is open, or nothing in it is left to start."""
    more: bool = False
    """True where more tasks can start than are shown; a larger limit shows them."""
    open_reviews: tuple[dict[str, str | None], ...] = ()
    """What a person has been asked to look at and has not yet."""
    batch: tuple[str, ...] | None = None
    """Which of the tasks to begin together: nothing they declare meets, nor what is under way or reserved by others.
    Only where more than one could run, or something is in the way of one."""
    conflicts: tuple[dict[str, Any], ...] = ()
    """Why two are not safe together: a path in both, and how each declares it."""
    conflicts_total: int | None = None
    """Where not all of them are shown."""
    unchecked: tuple[str, ...] = ()
    """Tasks that declare too much to be compared with everything."""
    paused: dict[str, Any] | None = None
    """Why nothing is offered, where the workflow is paused: since when, by whom, and for what reason."""
    plan_steps_left: tuple[str, ...] = ()
    """Steps of the plan that `start_workflow` was given and that no task has been started for: what comes next when no
    task is ready."""


class OfWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which workflow."""

    workflow_id: str | None = None


class WorkflowProgress(msgspec.Struct, frozen=True):
    """How far a workflow is."""

    workflow_id: str | None
    total_tasks: int
    by_status: dict[str, int]
    completed_sequence: int
    current_sequence: int
    blocked_tasks: tuple[dict[str, Any], ...]
    """The first of them; `by_status` counts all."""
    parallel_groups: tuple[dict[str, Any], ...]
    estimated_remaining: int
    estimated_remaining_ms: int | None
    parallel_groups_total: int | UnsetType = UNSET
    """Where not all of them are shown."""
    next: str | UnsetType = UNSET
    """What to do where no workflow is open."""


class OfTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which task."""

    task_id: str | None = None


class Dependencies(msgspec.Struct, frozen=True):
    """What a task waits for, and what came of those it no longer waits for."""

    satisfied: bool
    pending: tuple[dict[str, str], ...]
    completed: tuple[dict[str, str], ...]
    pending_total: int | UnsetType = UNSET
    """Where not all of them are shown."""
    completed_total: int | UnsetType = UNSET
    next: str | UnsetType = UNSET
    """What to do where no task is in progress."""
