"""A gate: a question to a person, and the answer with who gave it, when, and through which channel.

Work waits for a `decision`; a `review` asks a person to look at something and blocks nothing.

Reviews: a person is asked to look at something. Nothing waits for it; it is shown until a person closes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from handrail.domain.work.task import Task
from handrail.kernel.ledger import Actor
from handrail.kernel.machine import Machine
from handrail.kernel.records import Query, UnitOfWork

GATE_MACHINE = Machine("gate", {"open": ("answered", "withdrawn"), "answered": (), "withdrawn": ()})


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """One gate. `content_hash` covers what was shown: an answer applies only to that."""

    id: str
    workflow_id: str
    task_id: str | None
    status: str
    question: str
    options: list[str]
    content_hash: str
    answer: str | None
    feedback: str | None
    answered_by: str | None
    channel: str | None
    created_at: int
    answered_at: int | None
    kind: str = "decision"

    @property
    def stream(self) -> str:
        return self.workflow_id


def new_gate(
    unit: UnitOfWork,
    workflow_id: str,
    kind: str,
    question: str,
    *,
    task_id: str | None = None,
    options: Sequence[str] = (),
    content_hash: str = "",
) -> Gate:
    """A new open question; the caller records it."""
    return Gate(
        id=unit.new_id("gate"),
        workflow_id=workflow_id,
        task_id=task_id,
        status=GATE_MACHINE.initial,
        question=question,
        options=list(options),
        content_hash=content_hash,
        answer=None,
        feedback=None,
        answered_by=None,
        channel=None,
        created_at=unit.now_ms(),
        answered_at=None,
        kind=kind,
    )


def gates_of(
    unit: UnitOfWork, workflow_id: str, order: tuple[str, ...], limit: int, kind: str | None = None
) -> list[Gate]:
    """The questions of a workflow, of one kind or all: up to `limit` per state, since the index orders only within
    one."""
    of_kind = (("kind", kind),) if kind is not None else ()
    return [
        gate
        for state in GATE_MACHINE.states
        for gate in unit.select(Gate, Query((("workflow_id", workflow_id), ("status", state), *of_kind), order, limit))
    ]


def answered_gate(gate: Gate, actor: Actor, word: str, remark: str | None, now_ms: int) -> Gate:
    """The gate after it was answered. Raises if it is not open."""
    GATE_MACHINE.check(f"{gate.kind} {gate.id}", gate.status, "answered")
    return msgspec.structs.replace(
        gate,
        status="answered",
        answer=word,
        feedback=remark,
        answered_by=actor.name,
        channel=actor.channel,
        answered_at=now_ms,
    )


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
