"""An agent that works with others. Whether it is there follows from its lease, not from a stored word."""

from __future__ import annotations

from typing import Any

import msgspec


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One registered agent. `secret_hash` is all that is kept of its secret."""

    id: str
    name: str
    runtime: str
    role: str
    status: str
    capabilities: list[str]
    current_task_id: str | None
    workspace_path: str | None
    metadata: dict[str, Any]
    secret_hash: str
    created_at: int
    mismatches: int = 0
    """Writes in its name that did not come with its secret."""

    @property
    def stream(self) -> str:
        return self.id
