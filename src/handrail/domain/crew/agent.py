"""An agent that works with others. Whether it is present follows from its lease, not from a stored status.

Who is calling, and how far an agent is trusted: what every call carries, as plain records. No rules for claims or
presence here, so that start-up does not load them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from handrail.kernel.records import UnitOfWork


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One registered agent. Only what proves its secret is kept (`token.py`)."""

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


class Writer(NamedTuple):
    """In whose name something is asked or written: an agent, and the fence it believes it holds."""

    agent_id: str | None = None
    fence: int | None = None
    proven: bool = False
    """True when the agent has proved its identity."""


class CrewRules(msgspec.Struct, frozen=True, kw_only=True):
    """How long a silent agent is presumed to be working, and how far agents are trusted."""

    heartbeat_ms: int = 30_000
    strict: bool = False
    """True if a call in an agent's name must prove that it comes from that agent."""

    @property
    def lease_ms(self) -> int:
        """Three missed heartbeats."""
        return 3 * self.heartbeat_ms
