"""Claims: which agent has which task. A claim is a lease on the task, with a fencing number.

Expiry is checked on every read; nothing sweeps. Safety rests on the lease's row being in the task's own stream: every
write to a task has read it there, so if two agents believe they hold the task, one is refused, whatever their clocks
say.

What is on offer: unclaimed tasks that can be begun, and which of them suit an agent, with reasons.

An expired claim does not count: its task is on offer again, begun or not. An agent that takes such a task is told who
began it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent, CrewRules, Writer, agent_name
from handrail.domain.crew.outbox import post_takeover
from handrail.domain.work.blockers import startable
from handrail.domain.work.lease import Holding, Lease, acquire, claim_of, holder_of
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import RUNNING, Task
from handrail.domain.work.transitions import blocked, check_open, move_task, workflow_of
from handrail.kernel.clock import spoken_time
from handrail.kernel.errors import ClaimHeld, IllegalTransition
from handrail.kernel.records import Query, UnitOfWork


class Claimed(NamedTuple):
    """The outcome of asking for a claim. If it was not granted, `lease` is the other holder's."""

    granted: bool
    lease: Lease
    task: Task
    taken_from: str | None = None


def claim(unit: UnitOfWork, task: Task, agent: Agent, rules: CrewRules, *, start: bool) -> Claimed:
    """Gives the task to the agent unless another one holds it; asking again renews. `start` also begins the work."""
    workflow = workflow_of(unit, task)
    if task.is_finished:
        raise IllegalTransition(
            f'task "{task.name}" is {task.status}; it cannot be claimed any more',
            hint="task_get_available lists what you can claim",
            status=task.status,
        )
    check_open(workflow, starting=True)
    if task.unmet:
        raise blocked(unit, task)
    lease, now = claim_of(unit, task), unit.now_ms()
    taken = acquire(lease.holding, agent.id, now, rules.lease_ms)
    if taken is None:
        return Claimed(False, lease, task)
    mine = lease.with_holding(taken, now)
    before = lease.holder if lease.holder not in (None, agent.id) else None
    changed = task
    if lease.fence != mine.fence:
        edit = PlanEdit(unit, workflow)
        again = start and task.status == "in_progress"
        attempts = task.attempts + 1 if again else task.attempts
        changed = edit.change(task, assigned_agent_id=agent.id, claimed_at=now, attempts=attempts)
        told = {"agent_id": agent.id, "fence": mine.fence, **({"taken_from": before} if before else {})}
        edit.record("task.claimed", mine, data=told)
        if before is not None:
            post_takeover(unit, before, task, agent, mine.fence)
    if start and changed.status != "in_progress":
        changed = move_task(unit, changed, "in_progress")
    return Claimed(True, mine, changed, before)


def give_up(unit: UnitOfWork, task: Task, lease: Lease, reason: str | None) -> Task:
    """Releases a claimed task. One that was under way becomes pending again; its checkpoints keep what was done."""
    edit = PlanEdit(unit, workflow_of(unit, task))
    status = "pending" if task.status in RUNNING else task.status
    changed = edit.change(task, status=status, assigned_agent_id=None, claimed_at=None)
    freed = lease.with_holding(lease.holding.freed(), unit.now_ms())
    told: dict[str, Any] = {"agent_id": lease.holder, "fence": lease.fence}
    edit.record("task.released", freed, data={**told, "reason": reason} if reason else told)
    return changed


def take_up(unit: UnitOfWork, task: Task, lease: Lease, agent: Agent, rules: CrewRules) -> Lease:
    """Renews the claim of a returning agent under a new fence, which shuts out any instance of it still running
    elsewhere."""
    now = unit.now_ms()
    mine = lease.with_holding(Holding(agent.id, lease.fence + 1, now + rules.lease_ms), now)
    edit = PlanEdit(unit, workflow_of(unit, task))
    edit.change(task, claimed_at=now)
    edit.record("task.claimed", mine, data={"agent_id": agent.id, "fence": mine.fence, "again": True})
    return mine


def check_writer(unit: UnitOfWork, task: Task, writer: Writer, rules: CrewRules) -> None:
    """Raises ClaimHeld if somebody else holds the task, or if the given fence is not, or no longer, the writer's.

    An expired claim that nobody has taken is resumed by its holder's next write, so no work is lost.
    """
    lease, now = unit.get(Lease, task.id), unit.now_ms()
    if lease is None:
        if writer.fence is not None:
            raise ClaimHeld(
                f'nobody has claimed task "{task.name}"; fence {writer.fence} is not for this task',
                hint="leave fence out, or claim the task first: task_claim returns its fence",
                task_id=task.id,
            )
        return
    held = lease.holding.is_held(now)
    own = writer.agent_id is not None and lease.holder == writer.agent_id
    if own and writer.fence in (None, lease.fence):
        if not held:
            again = Holding(lease.holder, lease.fence, now + rules.lease_ms)
            unit.record("task.claim_resumed", lease.with_holding(again, now), data={"agent_id": writer.agent_id})
        return
    if held or writer.fence is not None:
        raise _claim_held(unit, task, lease, writer, held=held)


def _claim_held(unit: UnitOfWork, task: Task, lease: Lease, writer: Writer, *, held: bool) -> ClaimHeld:
    details: dict[str, Any] = {"task_id": task.id, "fence": lease.fence}
    if held:
        holder = unit.get(Agent, lease.holder or "")
        name = f"{holder.name} ({holder.id})" if holder is not None else lease.holder
        since = f"for {spoken_time(unit.now_ms() - lease.since_ms)}"
        details |= {"held_by": lease.holder, "since": lease.since_ms, "expires_at": lease.expires_ms}
        if lease.holder == writer.agent_id:
            message = f'task "{task.name}" has been held {since} under fence {lease.fence}, not {writer.fence}'
        else:
            message = f'task "{task.name}" has been held by {name} {since}, under fence {lease.fence}'
        return ClaimHeld(message, hint="task_get_available lists what is free; message_send reaches them", **details)
    return ClaimHeld(
        f'fence {writer.fence} on task "{task.name}" is not yours, or no longer; its fence is now {lease.fence}',
        hint="nobody holds it now: claim it with task_claim; task_load_context shows what was done",
        **details,
    )


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
