"""Whether an agent is present: its presence lease, and the evidence for it. No store, no clock of its own.

Presence is a lease on the agent itself. Every call an agent makes renews it, together with its claims; after
`CrewRules.lease_ms` of silence it has expired for anyone who looks. An agent that calls again later is back under a new
fence.
"""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.crew.agent import Agent, CrewRules
from handrail.domain.work.lease import Lease, acquire, free_lease
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.errors import AgentNotFound, NotAllowed
from handrail.kernel.records import Query, UnitOfWork, where

SHOWN = 10
"""How many agents a refusal names."""
LOOKED_AT = 1000
"""How many agents are examined when they are counted; the newest ones."""
HELD = 50
"""How many claims of one agent are examined."""


class Liveness(msgspec.Struct, frozen=True, omit_defaults=True):
    """The observed state of an agent, with the evidence."""

    state: str
    """working (it holds a task, or recently wrote something), idle, or lost."""
    last_call: int | None
    lease_expires: int | None
    last_progress: dict[str, Any] | None = None
    """The last thing it wrote to the ledger, and when."""


def find_agent(unit: UnitOfWork, agent_id: str) -> Agent:
    """The agent, or a refusal that names the newest ones there are."""
    agent = unit.get(Agent, agent_id)
    if agent is None:
        newest = unit.select(Agent, Query((), ("-created_at", "-id"), SHOWN))
        known = ", ".join(f"{one.id} ({one.name})" for one in newest) or "there is none yet"
        raise AgentNotFound(
            f"there is no agent {agent_id}", hint=f"agent_register registers one; newest: {known}", id=agent_id
        )
    return agent


def presence_of(unit: UnitOfWork, agent_id: str) -> Lease:
    return unit.get(Lease, agent_id) or free_lease(agent_id, agent_id)


def is_present(unit: UnitOfWork, agent_id: str) -> bool:
    return presence_of(unit, agent_id).holding.is_held(unit.now_ms())


def check_room(unit: UnitOfWork, most: int) -> None:
    """Refuses another agent once the most allowed are present."""
    newest = unit.select(Agent, Query((("status", ("online", "busy")),), ("-created_at", "-id"), LOOKED_AT))
    there = [agent for agent in newest if is_present(unit, agent.id)]
    if len(there) >= most:
        names = ", ".join(agent.name for agent in there[:SHOWN])
        raise NotAllowed(
            f"{most} agents may be present at once, and they are: {names}",
            hint="wait until one unregisters (agent_unregister), or raise max_children in the settings",
        )


def present(unit: UnitOfWork, agent_id: str, rules: CrewRules) -> Lease:
    """The agent's presence lease from now on; the caller records it."""
    lease, now = presence_of(unit, agent_id), unit.now_ms()
    taken = acquire(lease.holding, agent_id, now, rules.lease_ms)
    assert taken is not None, "nobody else holds an agent's presence"
    return lease.with_holding(taken, now)


def arrive(unit: UnitOfWork, agent_id: str, rules: CrewRules) -> None:
    """Records that an agent is back, unless it turns out to be present already."""
    agent = unit.get(Agent, agent_id)
    if agent is None or is_present(unit, agent_id):
        return
    back = msgspec.structs.replace(agent, status="online" if agent.status == "offline" else agent.status)
    unit.record("agent.returned", back, present(unit, agent_id, rules))


def change_agent(unit: UnitOfWork, agent: Agent, **values: Any) -> Agent:
    """The agent with these values, recorded if they differ."""
    changed = msgspec.structs.replace(agent, **values)
    if changed != agent:
        unit.record("agent.updated", changed)
    return changed


def depart(unit: UnitOfWork, agent: Agent) -> None:
    """Records that an agent has left."""
    lease, now = presence_of(unit, agent.id), unit.now_ms()
    left = msgspec.structs.replace(agent, status="offline", current_task_id=None)
    unit.record("agent.left", left, lease.with_holding(lease.holding.freed(), now))


def claims_of(unit: UnitOfWork, agent_id: str) -> tuple[list[Lease], list[Lease]]:
    """The leases on unfinished tasks that an agent holds, and the expired ones that nobody else has taken; newest
    first."""
    now = unit.now_ms()
    stored = [lease.id for lease in unit.select(Lease, where(holder=agent_id)) if _is_open(unit, lease.id)]
    current = (unit.get(Lease, key) for key in stored)  # including this unit's own changes
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
    """offline, busy or online: by its presence and claims, then by what it last reported."""
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
