"""The agents of a store, for people: who is present, what each holds, and what it did last. Reads only.

Presence and activity are distinguished: a heartbeat renews a lease and leaves no trace, so `last_action` is the newest
event that changed anything, however recent the heartbeat is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from handrail.domain.crew.agent import Agent, CrewRules
from handrail.domain.crew.message import Message
from handrail.domain.crew.presence import LOOKED_AT, liveness, presence_of
from handrail.domain.overview.events import told
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.registry.envelopes import AGENT, CATEGORIES
from handrail.domain.work.blockers import status_or_ready
from handrail.domain.work.lease import Lease
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.domain.workspaces.records import Workspace
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import Query, UnitOfWork, chunks, found_by

SHOWN = 100
TASKS = 20
"""How many tasks of one agent are named."""
ACTED = 1000
"""How many of a workflow's newest events are searched for agents that acted in it."""
TIERS = ("ok", "late", "lost", "gone")
_NO_WORK = ("agent.", "op.", "token.", "ledger.")
_WORK = tuple(start for starts in CATEGORIES.values() for start in starts if start not in _NO_WORK)
"""Prefixes of the kinds of events that are actual work, rather than agents coming and going."""


class LastAction(msgspec.Struct, frozen=True, kw_only=True):
    """The newest thing an agent did."""

    kind: str
    at: int
    stream: str
    text: str


class HeldTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that an agent holds, or held when it was last heard from."""

    id: str
    name: str
    status: str
    workflow_id: str
    workflow_name: str
    since: int
    lease_expires_at: int
    lapsed: bool
    """True once the claim has expired: any agent may take it."""


class AgentWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """The working copy an agent works in. An unregistered one has only a path."""

    id: str | None
    branch: str | None
    path: str


class AgentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent."""

    id: str
    name: str
    type: str
    """Its runtime."""
    role: str
    status: str
    """working, idle or lost, by the evidence; gone if its tier is."""
    tier: str
    """ok (heard from within one heartbeat interval), late, lost (its presence has expired and it has an unfinished
    task), gone (it signed off, or has nothing left to do: nobody waits for it)."""
    heartbeat_at: int | None
    expires_at: int | None
    last_action: LastAction | None
    tasks: list[HeldTask]
    workspace: AgentWorkspace | None
    unread: int
    created_at: int
    unproven: int
    """How many writes in its name came without its secret."""


class Agents(msgspec.Struct, frozen=True, kw_only=True):
    """Agents that are present first, then those lost with work in hand, then the rest; newest first in each group."""

    agents: list[AgentRow]
    more: int
    heartbeat_ms: int
    """How often an agent is expected to show that it is present."""


def agents(unit: UnitOfWork, rules: CrewRules, workflow_id: str | None = None) -> Agents:
    """The newest agents of the store, or those involved in a workflow."""
    if workflow_id is None:
        found = unit.select(Agent, Query((), ("-created_at", "-id"), LOOKED_AT))
    else:
        found = list(found_by(unit, Agent, "id", _involved(unit, workflow_id)))
        found.sort(key=lambda agent: (agent.created_at, agent.id), reverse=True)
    list(found_by(unit, Lease, "id", (agent.id for agent in found)))  # read together, to avoid a query for each
    held = _held(unit, found)
    now = unit.now_ms()
    tiers = {agent.id: tier_of(presence_of(unit, agent.id), now, rules, holds=agent.id in held) for agent in found}
    ordered = sorted(found, key=lambda agent: _rank(tiers[agent.id], held.get(agent.id, ())))
    shown = ordered[:SHOWN]
    return Agents(
        agents=_rows(unit, rules, shown, tiers, held),
        more=len(found) - len(shown),
        heartbeat_ms=rules.heartbeat_ms,
    )


def tier_of(presence: Lease, now_ms: int, rules: CrewRules, *, holds: bool) -> str:
    """How certain an agent's presence is. Silence counts as lost only if the agent leaves an unfinished task: one that
    has done its work may go without a word."""
    if presence.holder is None:
        return "gone"
    if not presence.holding.is_held(now_ms):
        return "lost" if holds else "gone"
    return "ok" if now_ms - presence.renewed_ms <= rules.heartbeat_ms else "late"


def _rank(tier: str, held: Sequence[HeldTask]) -> tuple[int, int]:
    """The sort key; the sort is stable. Agents that are gone come last, whatever they left behind."""
    return TIERS.index(tier), 0 if held else 1


def _involved(unit: UnitOfWork, workflow_id: str) -> list[str]:
    """The agents that have or had a task of a workflow, drive its run, or acted in it recently."""
    claimed = Query((("workflow_id", workflow_id), ("assigned_agent_id >", "")))
    keys = dict.fromkeys(key for (key,) in unit.count_by(Task, claimed, ("assigned_agent_id",)))
    run = unit.get(PipelineRun, workflow_id)
    driver = (run.holder or {}).get("agent_id") if run is not None else None
    if isinstance(driver, str):
        keys[driver] = None
    for event in unit.newest(ACTED, Only(streams=(workflow_id,))):
        if event.actor.startswith(AGENT):
            keys[event.actor] = None
    return list(keys)


# -- rows -------------------------------------------------------------------------------------------------------------


def _rows(
    unit: UnitOfWork,
    rules: CrewRules,
    shown: Sequence[Agent],
    tiers: Mapping[str, str],
    held: Mapping[str, list[HeldTask]],
) -> list[AgentRow]:
    actions = _last_actions(unit, shown)
    unread = _unread(unit, shown)
    workspaces = _workspaces(unit, shown, held)
    rows = []
    for agent in shown:
        tasks = held.get(agent.id, [])
        seen = liveness(unit, agent, rules, holds=any(not task.lapsed for task in tasks))
        tier = tiers[agent.id]
        rows.append(
            AgentRow(
                id=agent.id,
                name=agent.name,
                type=agent.runtime,
                role=agent.role,
                status="gone" if tier == "gone" else seen.state,
                tier=tier,
                heartbeat_at=seen.last_call,
                expires_at=seen.lease_expires,
                last_action=actions.get(agent.id),
                tasks=tasks[:TASKS],
                workspace=workspaces.get(agent.id),
                unread=unread.get(agent.id, 0),
                created_at=agent.created_at,
                unproven=agent.mismatches,
            )
        )
    return rows


def _held(unit: UnitOfWork, found: Sequence[Agent]) -> dict[str, list[HeldTask]]:
    """The unfinished tasks of open workflows that each agent holds or held, newest first."""
    leases = [
        lease for lease in found_by(unit, Lease, "holder", (agent.id for agent in found)) if lease.id != lease.holder
    ]
    tasks = {task.id: task for task in found_by(unit, Task, "id", (lease.id for lease in leases))}
    workflows = {one.id: one for one in found_by(unit, Workflow, "id", (task.workflow_id for task in tasks.values()))}
    now = unit.now_ms()
    held: dict[str, list[HeldTask]] = {}
    for lease in sorted(leases, key=lambda one: (one.since_ms, one.id), reverse=True):
        task = tasks.get(lease.id)
        workflow = workflows.get(task.workflow_id) if task is not None and not task.is_finished else None
        if task is None or workflow is None or workflow.status in CLOSED or lease.holder is None:
            continue
        one = HeldTask(
            id=task.id,
            name=task.name,
            status=status_or_ready(task),
            workflow_id=workflow.id,
            workflow_name=workflow.name,
            since=lease.since_ms,
            lease_expires_at=lease.expires_ms,
            lapsed=not lease.holding.is_held(now),
        )
        held.setdefault(lease.holder, []).append(one)
    return held


def _last_actions(unit: UnitOfWork, shown: Sequence[Agent]) -> dict[str, LastAction]:
    """What each agent did last: one lookup in the index of actors per agent on the page."""
    newest: dict[str, Event] = {}
    for agent in shown:
        last = unit.last_event(agent.id)
        if last is not None and last.kind.startswith(_NO_WORK):
            last = next(iter(unit.newest(1, Only(actors=(agent.id,), kinds=_WORK))), None)
        if last is not None:
            newest[agent.id] = last
    texts = told(unit, newest.values())
    return {
        key: LastAction(kind=event.kind, at=event.at_ms, stream=event.stream, text=texts[event.position])
        for key, event in newest.items()
    }


def _unread(unit: UnitOfWork, shown: Sequence[Agent]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for chunk in chunks(agent.id for agent in shown):
        waiting = (("recipient_id", chunk), ("status", "unread"), ("expires_at >", unit.now_ms()))
        counts |= {key: count for (key,), count in unit.count_by(Message, Query(waiting), ("recipient_id",)).items()}
    return counts


def _workspaces(
    unit: UnitOfWork, shown: Sequence[Agent], held: Mapping[str, list[HeldTask]]
) -> dict[str, AgentWorkspace]:
    """Where each agent works: where it says it does, or the workspace of the task it holds."""
    paths = {agent.id: agent.workspace_path for agent in shown if agent.workspace_path}
    by_path = {space.path: space for space in _active(found_by(unit, Workspace, "path", paths.values()))}
    tasks = {one.id: one for agent in shown for one in held.get(agent.id, ())[:1]}
    spaces = {task.id: task.workspace_id for task in found_by(unit, Task, "id", tasks) if task.workspace_id is not None}
    by_id = {space.id: space for space in _active(found_by(unit, Workspace, "id", spaces.values()))}
    found: dict[str, AgentWorkspace] = {}
    for agent in shown:
        path = paths.get(agent.id)
        first = next(iter(held.get(agent.id, ())), None)
        space = by_path.get(path) if path is not None else None
        if space is None and path is None and first is not None:
            space = by_id.get(spaces.get(first.id, ""))
        if space is not None:
            found[agent.id] = AgentWorkspace(id=space.id, branch=space.branch, path=space.path)
        elif path is not None:
            found[agent.id] = AgentWorkspace(id=None, branch=None, path=path)
    return found


def _active(found: Iterable[Workspace]) -> Iterable[Workspace]:
    return (space for space in found if space.status == "active")
