"""A call that is under way and can be cancelled, from this process or another. The record as it is stored."""

from __future__ import annotations

import msgspec


class RunningCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that gave an `op_id`. Its row exists while it is under way; the ledger keeps its history."""

    id: str
    tool: str
    run_id: str | None
    task_id: str | None
    agent: str
    session: str | None
    """The connection it came through: once that connection's process has ended, so has the call."""
    status: str
    """`running`, or `cancelling` once somebody has cancelled it; for a call that is over, `done` or `cancelled`."""
    reason: str | None
    started_at: int
    ended_at: int | None

    @property
    def stream(self) -> str:
        return call_stream(self.id)


def call_stream(op_id: str) -> str:
    return f"op:{op_id}"
