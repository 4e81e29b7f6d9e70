"""An agent that works with others. Whether it is present follows from its lease, not from a stored status."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.kernel.records import UnitOfWork


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One registered agent. Only what proves its secret is kept (`verifiers.py`)."""

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
    """How many writes in its name came without its secret."""

    @property
    def stream(self) -> str:
        return self.id


def agent_name(unit: UnitOfWork, agent_id: str) -> str:
    """An agent's name; for an unknown agent, its id."""
    agent = unit.get(Agent, agent_id)
    return agent.name if agent is not None else agent_id
