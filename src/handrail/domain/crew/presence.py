"""Whether an agent is there: its presence lease, and what is seen of it. No store, no clock of its own.

Presence is a lease on the agent itself. Every call of an agent renews it, together with its claims; silence for
`CrewRules.lease_ms` ends it, whoever looks next. An agent that was away and calls again is back under a new fence.
"""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.lease import Lease, free_lease
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.errors import AgentNotFound, NotAllowed
from handrail.kernel.lease import Holding, acquire, release
from handrail.kernel.query import Query, where
from handrail.kernel.records import UnitOfWork

SHOWN = 10
"""Agents a refusal names."""
LOOKED_AT = 1000
"""Agents, the newest, that are looked at when they are counted."""
HELD = 50
"""Claims of one agent that are looked at."""


class CrewRules(msgspec.Struct, frozen=True, kw_only=True):
    """How long silence is taken for work, and how much of an agent's word is believed."""

    heartbeat_ms: int = 30_000
    strict: bool = False
    """True where a call in an agent's name must prove to be its own."""

    @property
    def lease_ms(self) -> int:
        """Three heartbeats missed."""
        return 3 * self.heartbeat_ms


class Liveness(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is seen of an agent, with the evidence."""

    state: str
    """working (it holds a task, or wrote something lately), idle, or lost."""
    last_call: int | None
    lease_expires: int | None
    last_progress: dict[str, Any] | None = None
    """The last thing it wrote to the ledger, and when."""


def secret_hash(secret: str) -> str:
    """What is kept of a secret. It is long and random, so a plain hash keeps it."""
    import hashlib  # noqa: PLC0415 - it takes longer to load than all of this toolset

    return hashlib.sha256(secret.encode()).hexdigest()


def knows_secret(agent: Agent, secret: str | None) -> bool:
    import hmac  # noqa: PLC0415 - as above

    return secret is not None and hmac.compare_digest(secret_hash(secret), agent.secret_hash)


def find_agent(unit: UnitOfWork, agent_id: str) -> Agent:
    """The agent, or a refusal that names those there are."""
    agent = unit.get(Agent, agent_id)
    if agent is None:
        newest = unit.select(Agent, Query((), ("-created_at", "-id"), SHOWN))
        known = ", ".join(f"{one.id} ({one.name})" for one in newest) or "there is none yet"
        raise AgentNotFound(
            f"there is no agent {agent_id}", hint=f"agent_register makes one; newest: {known}", id=agent_id
        )
    return agent


def presence_of(unit: UnitOfWork, agent_id: str) -> Lease:
    return unit.get(Lease, agent_id) or free_lease(agent_id, agent_id)


def is_present(unit: UnitOfWork, agent_id: str) -> bool:
    return presence_of(unit, agent_id).holding.is_held(unit.now_ms())


def check_room(unit: UnitOfWork, most: int) -> None:
    """Refuses one more agent where as many are present as may be."""
    newest = unit.select(Agent, Query((("status", ("online", "busy")),), ("-created_at", "-id"), LOOKED_AT))
    there = [agent for agent in newest if is_present(unit, agent.id)]
    if len(there) >= most:
        names = ", ".join(agent.name for agent in there[:SHOWN])
        raise NotAllowed(
            f"{most} agents may be present at once, and they are: {names}",
            hint="wait until one leaves (agent_unregister), or raise max_children in the settings",
        )


def present(unit: UnitOfWork, agent_id: str, rules: CrewRules) -> Lease:
    """The agent's presence from now on; recorded by the caller."""
    lease, now = presence_of(unit, agent_id), unit.now_ms()
    taken = acquire(lease.holding, agent_id, now, rules.lease_ms)
    assert taken is not None, "nobody else holds an agent's presence"
    return lease.with_holding(taken, now)


def arrive(unit: UnitOfWork, agent_id: str, rules: CrewRules) -> None:
    """Records that an agent that was away is back, unless it turns out to be there."""
    agent = unit.get(Agent, agent_id)
    if agent is None or is_present(unit, agent_id):
        return
    back = msgspec.structs.replace(agent, status="online" if agent.status == "offline" else agent.status)
    unit.record("agent.returned", back, present(unit, agent_id, rules))


def depart(unit: UnitOfWork, agent: Agent) -> None:
    """Records that an agent has left."""
    lease, now = presence_of(unit, agent.id), unit.now_ms()
    gone = release(lease.holding, agent.id, lease.fence) or Holding(None, lease.fence, 0)
    left = msgspec.structs.replace(agent, status="offline", current_task_id=None)
    unit.record("agent.left", left, lease.with_holding(gone, now))


def claims_of(unit: UnitOfWork, agent_id: str) -> tuple[list[Lease], list[Lease]]:
    """The leases on unfinished tasks that an agent holds, and those that have run out and nobody has taken; newest
    first."""
    now = unit.now_ms()
    stored = [lease.id for lease in unit.select(Lease, where(holder=agent_id)) if _is_open(unit, lease.id)]
    current = (unit.get(Lease, key) for key in stored)  # as this unit leaves them
    held = [lease for lease in current if lease is not None and lease.holder == agent_id]
    held.sort(key=lambda lease: (lease.since_ms, lease.id), reverse=True)
    return (
        [lease for lease in held if lease.holding.is_held(now)][:HELD],
        [lease for lease in held if not lease.holding.is_held(now)][:HELD],
    )


def _is_open(unit: UnitOfWork, task_id: str) -> bool:
    task = unit.get(Task, task_id)
    workflow = unit.get(Workflow, task.workflow_id) if task is not None and not task.is_finished else None
    return workflow is not None and workflow.status not in CLOSED


def status_of(unit: UnitOfWork, agent: Agent) -> str:
    """offline, busy or online: by its presence and its claims, then by what it said last."""
    if not is_present(unit, agent.id):
        return "offline"
    return "busy" if agent.status == "busy" or claims_of(unit, agent.id)[0] else "online"


def liveness(unit: UnitOfWork, agent: Agent, rules: CrewRules, *, holds: bool) -> Liveness:
    lease, now = presence_of(unit, agent.id), unit.now_ms()
    last = unit.last_event(agent.id)
    progress = {"at": last.at_ms, "kind": last.kind, "stream": last.stream} if last is not None else None
    recent = last is not None and last.at_ms > now - rules.lease_ms
    here = "working" if holds or recent else "idle"
    state = here if lease.holding.is_held(now) else "lost"
    return Liveness(state, lease.renewed_ms or None, lease.expires_ms or None, progress)
