"""The first screen: every workflow in the store, open ones first, and how many messages wait for the person."""

from __future__ import annotations

import msgspec

from handrail.domain.crew.outbox import HUMAN, unread_count
from handrail.domain.overview.rows import WorkflowRow, workflow_rows
from handrail.domain.work.workflow import CLOSED, OPEN, Workflow
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

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
