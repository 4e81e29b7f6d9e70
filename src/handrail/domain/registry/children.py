"""Agents as registry.md's children: what is told of one beside what an agent is, and the limits it was given.

Limits are words: nothing here starts a process, so nothing here can hold one to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.registry.envelopes import level_of, line_of
from handrail.domain.registry.tailing import bus_of_agent
from handrail.kernel.errors import InvalidParams
from handrail.kernel.records import UnitOfWork

LIMITS = "limits"
"""Where an agent's record keeps them, in its metadata."""
MOST = 10**15
"""The largest limit: every client reads it as the number that it is."""


def limits_of(agent: Agent) -> dict[str, Any]:
    kept = agent.metadata.get(LIMITS)
    return dict(kept) if isinstance(kept, dict) else {}


def with_limits(metadata: Mapping[str, Any], limits: Mapping[str, float]) -> dict[str, Any]:
    """An agent's metadata with these limits and no others."""
    for name, value in limits.items():
        _check_limit(name, value)
    rest = {name: value for name, value in metadata.items() if name != LIMITS}
    kept = {name: int(value) if float(value).is_integer() else value for name, value in limits.items()}
    return {**rest, LIMITS: kept} if kept else rest


def _check_limit(name: str, value: float) -> None:
    if not name.isprintable():
        raise InvalidParams(f"{name!a} is no name for a limit", hint="use characters that can be seen, as in tokens")
    if not abs(value) <= MOST:  # so that what is no number is refused too
        raise InvalidParams(f"the limit {name} must be at most {MOST:.0f}", hint="leave out a limit that is to be none")


def change(unit: UnitOfWork, agent: Agent, **values: Any) -> Agent:
    """The agent with other values, recorded where they differ."""
    changed = msgspec.structs.replace(agent, **values)
    if changed != agent:
        unit.record("agent.updated", changed)
    return changed


def last_event(unit: UnitOfWork, agent_id: str) -> dict[str, Any] | None:
    """The last thing that an agent did or that was done to it; its seq is that of its log."""
    for event in bus_of_agent(unit, agent_id).newest(1):
        return {
            "seq": event.position,
            "ts": event.at_ms,
            "kind": event.kind,
            "level": level_of(event),
            "message": line_of(event),
        }
    return None
