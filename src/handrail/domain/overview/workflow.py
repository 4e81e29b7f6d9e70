"""One workflow with all its tasks, as the page loads it once and then keeps up to date by news."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.overview.rows import TaskRow, WorkflowRow, task_rows, workflow_rows
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

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
