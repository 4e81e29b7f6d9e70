"""Reviews that a person was asked for in a workflow: open ones first, then closed ones. No work waits for them.
Reads only."""

from __future__ import annotations

import msgspec

from handrail.domain.gates.gate import GATE_MACHINE, Gate
from handrail.domain.gates.reviews import REVIEW
from handrail.domain.journal.journal import resolutions
from handrail.domain.overview.rows import agent_names, task_names
from handrail.domain.work.workflow import Workflow
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

SHOWN = 200


class ReviewRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question."""

    id: str
    question: str
    resolution: str | None
    """What the agent did about the issue, if the review is about one."""
    task_id: str | None
    task_name: str | None
    created_at: int
    status: str
    answer: str | None
    remark: str | None
    answered_by: str | None
    channel: str | None
    answered_at: int | None


class Reviews(msgspec.Struct, frozen=True, kw_only=True):
    """Open ones, oldest first; then closed ones, newest first."""

    reviews: list[ReviewRow]
    more: int


def reviews(unit: UnitOfWork, workflow: Workflow) -> Reviews:
    asked: list[Gate] = []
    total = 0
    for status in GATE_MACHINE.states:
        order = ("created_at",) if status == GATE_MACHINE.initial else ("-created_at", "-id")
        own = (("workflow_id", workflow.id), ("status", status), ("kind", REVIEW))
        asked += unit.select(Gate, Query(own, order, SHOWN))
        total += unit.count(Gate, Query(own))
    shown = asked[:SHOWN]
    tasks = task_names(unit, (gate.task_id for gate in shown))
    done = resolutions(unit, shown)
    names = agent_names(unit, (gate.answered_by for gate in shown))
    rows = [
        ReviewRow(
            id=gate.id,
            question=gate.question,
            resolution=done.get(gate.id),
            task_id=gate.task_id,
            task_name=tasks.get(gate.task_id or ""),
            created_at=gate.created_at,
            status=gate.status,
            answer=gate.answer,
            remark=gate.feedback,
            answered_by=names.get(gate.answered_by or ""),
            channel=gate.channel,
            answered_at=gate.answered_at,
        )
        for gate in shown
    ]
    return Reviews(reviews=rows, more=total - len(rows))
