"""One workflow with all its tasks, as the page loads it once and then keeps up to date by news.

The first screen: every workflow in the store, open ones first, and how many messages wait for the person.
"""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.crew.outbox import HUMAN, unread_count
from handrail.domain.overview.rows import TaskRow, WorkflowRow, task_rows, workflow_rows
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, OPEN, Workflow
from handrail.kernel.records import Query, UnitOfWork

TASKS = 10_000
"""Tasks that a page is given: the first in the plan's order."""


class WorkflowSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the work came from."""

    type: str
    ref: str | None


class WorkflowDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow, its plan and its tasks."""

    position: int
    """What is told after it is news."""
    workflow: WorkflowRow
    description: str
    """What was asked for, as it was asked."""
    source: WorkflowSource
    plan_version: int
    approach: str | None
    """How the plan means to do it, where it says."""
    tasks: list[TaskRow]
    more: int
    pipeline: Any = None
    """Where its run stands, phase by phase; None for a workflow that is no run."""


def workflow_document(unit: UnitOfWork, workflow: Workflow) -> WorkflowDocument:
    position = unit.position()  # before anything is read: what comes meanwhile is told again rather than missed
    (row,) = workflow_rows(unit, [workflow])
    tasks = unit.select(Task, Query((("workflow_id", workflow.id),), ("sequence",), TASKS))
    approach = (workflow.plan or {}).get("approach")
    return WorkflowDocument(
        position=position,
        workflow=row,
        description=workflow.source_content,
        source=WorkflowSource(type=workflow.source_type, ref=workflow.source_ref),
        plan_version=row.plan_version,
        approach=approach if isinstance(approach, str) else None,
        tasks=task_rows(unit, tasks),
        more=max(0, row.total - len(tasks)),
    )


SHOWN = 200
"""How many open, and how many closed, workflows are listed."""


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the first screen shows."""

    position: int
    """The ledger position of this view; anything later is news."""
    workflows: list[WorkflowRow]
    """The open ones, newest first; then the closed ones, if asked for, in reverse order of ending."""
    closed: int
    more: int
    """How many more workflows of the listed kinds there are."""
    unread: int


def home(unit: UnitOfWork, *, archived: bool = False) -> Home:
    position = unit.position()  # taken before anything is read, so that events meanwhile are repeated, not missed
    opened = _newest(unit, OPEN, "-created_at")
    ended = _newest(unit, CLOSED, "-updated_at") if archived else []
    counted = unit.count_by(Workflow, Query(), ("status",))
    closed = sum(counted.get((status,), 0) for status in CLOSED)
    there = sum(counted.values()) - (0 if archived else closed)
    return Home(
        position=position,
        workflows=workflow_rows(unit, [*opened, *ended]),
        closed=closed,
        more=there - len(opened) - len(ended),
        unread=unread_count(unit, HUMAN),
    )


def _newest(unit: UnitOfWork, states: tuple[str, ...], order: str) -> list[Workflow]:
    return unit.select(Workflow, Query((("status", states),), (order, "-id"), SHOWN))
