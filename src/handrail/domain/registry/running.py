"""A call that is under way and can be cancelled, from this process or another. The record as it is stored."""

from __future__ import annotations

import msgspec

from handrail.kernel.machine import Machine

RUNNING_MACHINE = Machine(
    "operation",
    {"running": ("done", "cancelling", "cancelled"), "cancelling": ("cancelled", "done"), "done": (), "cancelled": ()},
)


class RunningCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that said its `op_id`. Its row is there while it is under way; that it was is in the ledger."""

    id: str
    tool: str
    run_id: str | None
    task_id: str | None
    agent: str
    session: str | None
    """The connection it came through: whose process has ended, whose call has too."""
    status: str
    reason: str | None
    started_at: int
    ended_at: int | None

    @property
    def stream(self) -> str:
        return call_stream(self.id)


def call_stream(op_id: str) -> str:
    return f"op:{op_id}"
