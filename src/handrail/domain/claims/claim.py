"""Claims: which agent has which task. A claim is a lease on the task, with a fencing number.

Expiry is checked on every read; nothing sweeps. Safety rests on the lease's row being in the task's own stream: every
write to a task has read it there, so if two agents believe they hold the task, one is refused, whatever their clocks
say.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.identity import CrewRules, Writer
from handrail.domain.crew.outbox import post_takeover
from handrail.domain.work.lease import Lease, claim_of
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import RUNNING, Task
from handrail.domain.work.transitions import blocked, check_open, move_task, workflow_of
from handrail.kernel.clock import spoken_time
from handrail.kernel.errors import ClaimHeld, IllegalTransition
from handrail.kernel.lease import Holding, acquire
from handrail.kernel.records import UnitOfWork


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
