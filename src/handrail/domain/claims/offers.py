"""What is on offer: unclaimed tasks that can be begun, and which of them suit an agent, with reasons.

An expired claim does not count: its task is on offer again, begun or not. An agent that takes such a task is told who
began it.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent, agent_name
from handrail.domain.work.blockers import startable
from handrail.domain.work.lease import claim_of, holder_of
from handrail.domain.work.task import RUNNING, Task
from handrail.kernel.clock import spoken_time
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

PAGE = 200
LOOKED_AT = 2000
"""How many ready tasks of one workflow are searched for those an agent can do."""
ORDER = ("-priority", "sequence", "-unblocks")


class Offered(NamedTuple):
    """A task, and why it is on offer."""

    task: Task
    reason: str
    match: int
    """How many of the agent's capabilities it requires."""


def ready_tasks(unit: UnitOfWork, workflow_id: str, limit: int, status: str = "pending", offset: int = 0) -> list[Task]:
    """Unclaimed tasks that can begin now, in the order they should: by priority, then sequence, then how much they
    unblock."""
    found = unclaimed_tasks(unit, workflow_id, limit, status, offset)
    if offset == 0:
        claimed = unit.select(Task, Query((*startable(workflow_id, status), ("assigned_agent_id >", "")), ORDER))
        found += [task for task in claimed if holder_of(unit, task) is None]
        found.sort(key=in_order)
    return found[:limit]


def unclaimed_tasks(
    unit: UnitOfWork, workflow_id: str, limit: int, status: str = "pending", offset: int = 0
) -> list[Task]:
    """The same without tasks whose claim has expired: a single indexed query."""
    unclaimed = (*startable(workflow_id, status), ("assigned_agent_id", None))
    return unit.select(Task, Query(unclaimed, ORDER, limit, offset))


def in_order(task: Task) -> tuple[int, int, int, str]:
    return (-task.priority, task.sequence, -task.unblocks, task.id)


def deserted_tasks(unit: UnitOfWork, workflow_id: str) -> list[Task]:
    """Tasks that are under way but whose claim has expired."""
    conditions = (("workflow_id", workflow_id), ("status", RUNNING), ("assigned_agent_id >", ""))
    under_way = unit.select(Task, Query(conditions, ORDER))
    return [task for task in under_way if holder_of(unit, task) is None and not task.unmet]


def without_expired_claim(unit: UnitOfWork, task: Task) -> Task:
    """The task as shown to everybody: an expired claim is removed, but a finished task keeps who finished it."""
    if task.is_finished or task.assigned_agent_id is None or holder_of(unit, task) is not None:
        return task
    return msgspec.structs.replace(task, assigned_agent_id=None, claimed_at=None)


def whose(unit: UnitOfWork, task: Task) -> str | None:
    """Whose task it is, in words; None if it is nobody's."""
    if task.assigned_agent_id is None:
        return None
    agent = unit.get(Agent, task.assigned_agent_id)
    name = agent.name if agent is not None else task.assigned_agent_id
    return f"{left_by(unit, task)}, and free to take" if is_left(unit, task) else f"with {name}"


def is_left(unit: UnitOfWork, task: Task) -> bool:
    """Whether the agent that had an open task has lost its claim on it."""
    if task.assigned_agent_id is None or task.is_finished or holder_of(unit, task) is not None:
        return False
    return unit.get(Agent, task.assigned_agent_id) is not None


def left_by(unit: UnitOfWork, task: Task) -> str:
    """For a task whose claim has expired: who left it, and when they were last heard from."""
    lease = claim_of(unit, task)
    name = agent_name(unit, lease.holder or task.assigned_agent_id or "")
    heard = spoken_time(unit.now_ms() - (lease.renewed_ms or task.updated_at))
    return f"left by {name}, who was last heard from {heard} ago"


def offers(unit: UnitOfWork, workflow_id: str, agent: Agent) -> tuple[list[Offered], list[Task]]:
    """The tasks of a workflow that an agent can do, best match first; and some that it cannot."""
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
    """The capabilities a task requires and an agent lacks."""
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
        return f"{name} began it and was last heard from {heard} ago: task_load_context shows how far; {needs}"
    if task.status == "failed":
        return f"it failed before: {(task.error or '')[:200]}; {needs}"
    return f"ready: {needs}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
