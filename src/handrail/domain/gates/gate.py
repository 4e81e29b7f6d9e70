"""A gate: a question to a person, and its answer with who gave it, through which channel, when.

Work waits for a `decision`; a `review` asks a person to look at something and blocks nothing until they do.
"""

from __future__ import annotations

import msgspec

from handrail.kernel.ledger import Actor
from handrail.kernel.machine import Machine

GATE_MACHINE = Machine("gate", {"open": ("answered", "withdrawn"), "answered": (), "withdrawn": ()})


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """One gate. `content_hash` is of what was shown: an answer is to that and nothing else."""

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


def answered_gate(gate: Gate, actor: Actor, word: str, remark: str | None, now_ms: int) -> Gate:
    """The gate once somebody has answered it. Raises where it is not open."""
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
