"""What is on offer: tasks that can be begun and that nobody has, and which of them suit an agent, with reasons.

A claim that has run out counts as none: its task is on offer again, begun or not. Who then takes it is told by whom it
was begun.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.claiming import claim_of, holder_of
from handrail.domain.work.task import RUNNING, Task
from handrail.kernel.clock import spoken_time
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

PAGE = 200
LOOKED_AT = 2000
"""Ready tasks of one workflow that are looked through for those an agent can do."""
ORDER = ("-priority", "sequence", "-unblocks")


class Offered(NamedTuple):
    """A task, and why it is on offer."""

    task: Task
    reason: str
    match: int
    """How many of an agent's capabilities it asks for."""


def ready_tasks(unit: UnitOfWork, workflow_id: str, limit: int, status: str = "pending", offset: int = 0) -> list[Task]:
    """What can be begun now and nobody has, in the order it should be: by priority, then sequence, then how much it
    unblocks."""
    ready = (("workflow_id", workflow_id), ("status", status), ("unmet", 0), ("open_children", 0))
    found = unit.select(Task, Query((*ready, ("assigned_agent_id", None)), ORDER, limit, offset))
    if offset == 0:
        claimed = unit.select(Task, Query((*ready, ("assigned_agent_id >", "")), ORDER))
        found += [task for task in claimed if holder_of(unit, task) is None]
        found.sort(key=in_order)
    return found[:limit]


def in_order(task: Task) -> tuple[int, int, int, str]:
    return (-task.priority, task.sequence, -task.unblocks, task.id)


def deserted_tasks(unit: UnitOfWork, workflow_id: str) -> list[Task]:
    """Tasks that somebody began under a claim that has run out."""
    conditions = (("workflow_id", workflow_id), ("status", RUNNING), ("assigned_agent_id >", ""))
    under_way = unit.select(Task, Query(conditions, ORDER))
    return [task for task in under_way if holder_of(unit, task) is None and not task.unmet]


def as_held(unit: UnitOfWork, task: Task) -> Task:
    """The task as everybody may see it: with its claim only while that lasts. Who finished it stays with it."""
    if task.is_finished or task.assigned_agent_id is None or holder_of(unit, task) is not None:
        return task
    return msgspec.structs.replace(task, assigned_agent_id=None, claimed_at=None)


def whose(unit: UnitOfWork, task: Task) -> str | None:
    """Whose task it is, in words; None where it is nobody's."""
    if task.assigned_agent_id is None:
        return None
    agent = unit.get(Agent, task.assigned_agent_id)
    name = agent.name if agent is not None else task.assigned_agent_id
    if agent is None or task.is_finished or holder_of(unit, task) is not None:
        return f"with {name}"
    return f"{left_by(unit, task)}, and free to take"


def left_by(unit: UnitOfWork, task: Task) -> str:
    """By whom a task was left whose claim has run out, and when that one was last heard of."""
    lease = claim_of(unit, task)
    key = lease.holder or task.assigned_agent_id or ""
    agent = unit.get(Agent, key)
    name = agent.name if agent is not None else key
    heard = spoken_time(unit.now_ms() - (lease.renewed_ms or task.updated_at))
    return f"left by {name}, who was last heard of {heard} ago"


def offers(unit: UnitOfWork, workflow_id: str, agent: Agent) -> tuple[list[Offered], list[Task]]:
    """What of a workflow an agent can do, the best match first; and some of what it cannot."""
    can: list[Offered] = []
    cannot: list[Task] = []
    for task in [*deserted_tasks(unit, workflow_id), *_all_ready(unit, workflow_id)]:
        if set(task.requires) <= set(agent.capabilities):
            can.append(Offered(task, _reason(unit, task), len(set(task.requires))))
        else:
            cannot.append(task)
    can.sort(key=lambda offered: (-offered.match, *in_order(offered.task)))
    return can, cannot


def missing(task: Task, agent: Agent) -> list[str]:
    """What a task asks for and an agent has not."""
    return [need for need in task.requires if need not in agent.capabilities]


def _all_ready(unit: UnitOfWork, workflow_id: str) -> list[Task]:
    found: list[Task] = []
    for status in ("pending", "failed"):
        for offset in range(0, LOOKED_AT, PAGE):
            page = ready_tasks(unit, workflow_id, PAGE, status, offset)
            found += page
            if len(page) < PAGE:
                break
    return found


def _reason(unit: UnitOfWork, task: Task) -> str:
    needs = f"it asks for {_listed(task.requires)}, which you have" if task.requires else "it asks for nothing special"
    if task.status in RUNNING:
        lease = claim_of(unit, task)
        before = unit.get(Agent, lease.holder or "")
        name = f"{before.name} ({before.id})" if before is not None else lease.holder
        heard = spoken_time(unit.now_ms() - lease.renewed_ms)
        return f"{name} began it and was last heard of {heard} ago: task_load_context shows how far; {needs}"
    if task.status == "failed":
        return f"it failed before: {(task.error or '')[:200]}; {needs}"
    return f"ready: {needs}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
