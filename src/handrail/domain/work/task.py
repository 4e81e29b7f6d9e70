"""A task of a workflow: the record as it is stored, and its states. `blocked` is computed, never stored.

A dependency: one task waits for another. A separate record, so that each end can look up the other directly.

A subtask also waits for whatever its parent task waits for. Such a dependency is `inherited` and is not among the
subtask's own `depends_on` names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from handrail.kernel.machine import Machine
from handrail.kernel.records import UnitOfWork, found_by

TASK_MACHINE = Machine(
    "task",
    {
        "pending": ("planning", "in_progress", "skipped"),
        "planning": ("in_progress", "completed", "failed"),
        "in_progress": ("completed", "paused", "failed"),
        "paused": ("in_progress", "failed"),
        "failed": ("pending", "in_progress", "skipped"),
        "completed": (),
        "skipped": (),
    },
    {
        ("in_progress", "pending"): "task_replan, task_release",
        ("planning", "pending"): "task_release",
        ("paused", "pending"): "task_release",
        ("planning", "skipped"): "its run skips it or ends",
        ("in_progress", "skipped"): "its run skips it or ends",
        ("paused", "skipped"): "its run skips it or ends",
    },
)
FINISHED = TASK_MACHINE.terminal
UNFINISHED = tuple(state for state in TASK_MACHINE.states if state not in FINISHED)
AT_WORK = ("planning", "in_progress")
"""States in which someone works on it: it takes up one of the workflow's parallel slots."""
RUNNING = (*AT_WORK, "paused")
"""States in which work on it has begun."""
REPLACEABLE = ("pending", "failed")
"""States in which a new plan may change, drop or restart it."""
SHOWN_STATES = ("pending", "blocked", *TASK_MACHINE.states[1:])


def shown_status(status: str, unmet: int) -> str:
    """The status as shown to everyone: a pending task that waits for another is blocked."""
    return "blocked" if status == "pending" and unmet else status


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task.

    Three counters make readiness readable from this row alone: `unmet` counts the unfinished tasks it waits for (its
    own dependencies and those of the tasks it is part of), `open_children` its unfinished subtasks, and `unblocks` the
    tasks that wait for it.
    """

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
    requires: list[str] = []
    acceptance: list[str] = []
    unblocks: int = 0
    open_children: int = 0
    attempts: int = 0
    """How often work on it was started."""
    started_at: int | None = None
    finished_at: int | None = None
    assigned_agent_id: str | None = None
    claimed_at: int | None = None
    workspace_id: str | None = None

    @property
    def stream(self) -> str:
        return self.workflow_id

    @property
    def shown_status(self) -> str:
        return shown_status(self.status, self.unmet)

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    @property
    def took_ms(self) -> int | None:
        """From its first start to its end; None unless it has both."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(0, self.finished_at - self.started_at)


def task_name(unit: UnitOfWork, task_id: str) -> str:
    """The name of a task, or its id if the task is gone."""
    task = unit.get(Task, task_id)
    return task.name if task is not None else task_id


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """`task_id` cannot start before `needs_id` is finished."""

    id: str
    workflow_id: str
    task_id: str
    needs_id: str
    inherited: bool = False

    @property
    def stream(self) -> str:
        return self.workflow_id


def dependency(workflow_id: str, task_id: str, needs_id: str, *, inherited: bool = False) -> Dependency:
    """The dependency between two tasks. Its id depends only on the two, so there is never more than one."""
    return Dependency(
        id=f"{task_id}>{needs_id}", workflow_id=workflow_id, task_id=task_id, needs_id=needs_id, inherited=inherited
    )


def dependencies_of(unit: UnitOfWork, task_ids: Iterable[str]) -> list[Dependency]:
    """What these tasks wait for."""
    return list(found_by(unit, Dependency, "task_id", task_ids))
