"""Who is calling, and how far an agent is trusted: what every call carries, as plain records. No rules for claims or
presence here, so that start-up does not load them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


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
