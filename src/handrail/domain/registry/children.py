"""Agents as registry.md's children: what is reported about one beyond its agent record, and the limits it was given.

Limits are only recorded: nothing here starts a process, so nothing here can enforce them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail.domain.crew.agent import Agent
from handrail.domain.registry.envelopes import level_of, line_of
from handrail.domain.registry.tail import bus_of_agent
from handrail.kernel.errors import InvalidParams
from handrail.kernel.records import UnitOfWork

LIMITS = "limits"
"""The member of an agent's metadata that holds them."""
MOST = 10**15
"""The largest limit: every client can represent it exactly."""


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
        raise InvalidParams(f"{name!a} is not a name for a limit", hint="use characters that can be seen, as in tokens")
    if not abs(value) <= MOST:  # written so that NaN is refused too
        raise InvalidParams(f"the limit {name} must be at most {MOST:.0f}", hint="leave out a limit that is to be none")


def last_event(unit: UnitOfWork, agent_id: str) -> dict[str, Any] | None:
    """The last thing that an agent did or that was done to it; `seq` is the number in its log."""
    for event in bus_of_agent(unit, agent_id).newest(1):
        return {
            "seq": event.position,
            "ts": event.at_ms,
            "kind": event.kind,
            "level": level_of(event),
            "message": line_of(event),
        }
    return None
