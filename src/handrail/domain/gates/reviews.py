"""Reviews: a person is asked to look at something. Nothing waits for it; it is shown until a person closes it."""

from __future__ import annotations

from collections.abc import Sequence

from handrail.domain.gates.gate import GATE_MACHINE, Gate, answered_gate
from handrail.domain.work.task import Task
from handrail.kernel.ledger import Actor
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

REVIEW = "review"


def ask_for_review(unit: UnitOfWork, task: Task, question: str) -> Gate:
    """The question, open; the caller records it with what it is about."""
    return Gate(
        id=unit.new_id("gate"),
        workflow_id=task.workflow_id,
        task_id=task.id,
        status=GATE_MACHINE.initial,
        question=question,
        options=[],
        content_hash="",
        answer=None,
        feedback=None,
        answered_by=None,
        channel=None,
        created_at=unit.now_ms(),
        answered_at=None,
        kind=REVIEW,
    )


def open_reviews(unit: UnitOfWork, workflow_id: str, limit: int) -> Sequence[Gate]:
    """What a person has been asked to look at in this workflow and has not yet, oldest first."""
    conditions = (("workflow_id", workflow_id), ("status", GATE_MACHINE.initial), ("kind", REVIEW))
    return unit.select(Gate, Query(conditions, ("created_at",), limit))


def close_review(unit: UnitOfWork, gate: Gate, actor: Actor, word: str, remark: str | None) -> Gate:
    """The review, answered by a person with a word."""
    closed = answered_gate(gate, actor, word, remark, unit.now_ms())
    unit.record("review.closed", closed)
    return closed
