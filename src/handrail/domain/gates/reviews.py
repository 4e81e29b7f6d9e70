"""Reviews: a person is asked to look at something. Nothing waits for it; it is shown until a person closes it."""

from __future__ import annotations

from collections.abc import Sequence

from handrail.domain.gates.gate import GATE_MACHINE, Gate, answered_gate, new_gate
from handrail.domain.work.task import Task
from handrail.kernel.ledger import Actor
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

REVIEW = "review"


def ask_for_review(unit: UnitOfWork, task: Task, question: str) -> Gate:
    """A new open question; the caller records it together with its subject."""
    return new_gate(unit, task.workflow_id, REVIEW, question, task_id=task.id)


def open_reviews(unit: UnitOfWork, workflow_id: str, limit: int) -> Sequence[Gate]:
    """What a person was asked to look at in this workflow and has not looked at yet, oldest first."""
    conditions = (("workflow_id", workflow_id), ("status", GATE_MACHINE.initial), ("kind", REVIEW))
    return unit.select(Gate, Query(conditions, ("created_at",), limit))


def close_review(unit: UnitOfWork, gate: Gate, actor: Actor, word: str, remark: str | None) -> Gate:
    """Closes a review with a person's answer."""
    closed = answered_gate(gate, actor, word, remark, unit.now_ms())
    unit.record("review.closed", closed)
    return closed
