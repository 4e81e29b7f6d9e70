"""Toolset `agent`, second half: finding a task, claiming it, giving it back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from handrail.domain.claims.claim import Offered, check_writer, claim, give_up, missing, offers, without_expired_claim
from handrail.domain.crew.agent import Agent, Writer
from handrail.domain.crew.outbox import post_released
from handrail.domain.crew.presence import find_agent
from handrail.domain.journal.journal import LOOKING
from handrail.domain.work.lease import claim_of
from handrail.domain.work.lookup import find_task, find_workflow
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import workflow_of
from handrail.domain.work.workflow import CLOSED, Workflow, pause_details
from handrail.domain.workspaces.lifecycle import BRANCHES, FOLDER, name_for, record_workspace
from handrail.domain.workspaces.records import Workspace
from handrail.kernel.clock import spoken_time
from handrail.kernel.errors import (
    AgentNotFound,
    ClaimHeld,
    IllegalTransition,
    Refusal,
    RunNotFound,
    TaskBlocked,
    TaskNotFound,
    WorkflowClosed,
)
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import open_workflows
from handrail.toolsets.plan.agent import ANNA, BEN
from handrail.toolsets.plan.workflow import PLANNED
from handrail.toolsets.shown import TASK_GET, cut, shown_task
from handrail.toolsets.vocabulary import AGENT

WORKFLOWS = 20
"""How many open workflows are searched if none is named."""
BEYOND = 3
DESCRIPTION = 300


class ClaimTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which task, and for whom."""

    task_id: str
    agent_id: str
    start: Annotated[bool, Meta(description="Start it too")] = False


class ClaimedTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the task is the agent's now. The fence goes with every later write to it."""

    success: bool
    already_claimed_by: str | None = None
    held_by_name: str | None = None
    held_since: int | None = None
    fence: int | None = None
    expires_at: int | None = None
    status: str | None = None
    taken_from: str | None = None
    """The agent that had it and was lost. What it did stands in the task's checkpoints."""
    workspace: dict[str, Any] | None = None
    """Where it is to be done: the worktree it has, or was given just now."""
    warnings: tuple[str, ...] = ()
    wants_room: bool = False
    """True until a worktree was made for it, where its workflow wants one; never shown."""


class ReleaseTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which task is given back, and why."""

    task_id: str
    agent_id: str
    reason: Annotated[str, Meta(max_length=2000)] | None = None


class Released(msgspec.Struct, frozen=True, omit_defaults=True):
    """False where there was nothing to give back."""

    success: bool
    status: str | None = None


class FindTasks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For which agent, and where."""

    agent_id: str
    workflow_id: str | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 5


class AvailableTasks(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the agent can take, the best match first, each with the reason why it is offered."""

    tasks: tuple[dict[str, Any], ...]
    total: int
    beyond_you: tuple[dict[str, Any], ...] = ()
    """Some of what is ready and asks for more than the agent can do."""
    paused: tuple[dict[str, Any], ...] = ()
    """Workflows of which nothing is offered because they are paused: since when, by whom, for what reason."""


def task_claim(call: Call, request: ClaimTask) -> ClaimedTask:
    agent = find_agent(call.work, request.agent_id)
    task = find_task(call.work, request.task_id)
    done = claim(call.work, task, agent, call.crew, start=request.start)
    lease = done.lease
    if not done.granted:
        holder = call.work.get(Agent, lease.holder or "")
        name = holder.name if holder is not None else None
        return ClaimedTask(False, lease.holder, name, lease.since_ms, expires_at=lease.expires_ms)
    lacking = missing(task, agent)
    warnings = (f"it asks for {', '.join(lacking)}, which {agent.name} has not named",) if lacking else ()
    return ClaimedTask(
        True,
        fence=lease.fence,
        expires_at=lease.expires_ms,
        status=done.task.shown_status,
        taken_from=done.taken_from,
        workspace=_workspace(call.work, done.task),
        warnings=warnings,
        wants_room=request.start and _wants_room(call.work, done.task),
    )


def _workspace(unit: UnitOfWork, task: Task) -> dict[str, Any] | None:
    space = _space(unit, task)
    return {"id": space.id, "path": space.path, "branch": space.branch} if space is not None else None


def _wants_room(unit: UnitOfWork, task: Task) -> bool:
    """Whether a worktree must be created, or looked for where it was created: somebody may have removed it."""
    space = _space(unit, task)
    return workflow_of(unit, task).auto_create_workspaces and (space is None or space.managed)


def _space(unit: UnitOfWork, task: Task) -> Workspace | None:
    """The workspace a task is done in, while it is active."""
    space = unit.get(Workspace, task.workspace_id) if task.workspace_id is not None else None
    return space if space is not None and space.status == "active" else None


def make_room(call: Call, request: ClaimTask, done: ClaimedTask) -> Callable[[Call], ClaimedTask] | None:
    """Creates a worktree for a task that was just started, if its workflow wants one per task.

    Its path follows from the task, so that any later holder of the task finds what another created for it.
    """
    if not done.wants_room:
        return None
    answer = msgspec.structs.replace(done, wants_room=False)

    def wanted(unit: UnitOfWork) -> tuple[Task, Workflow]:
        task = find_task(unit, request.task_id)
        check_writer(unit, task, Writer(request.agent_id, done.fence), call.crew)  # a replayed answer may be late
        return task, find_workflow(unit, task.workflow_id)

    try:
        task, workflow = call.ledger.run(LOOKING, wanted)
        repository = workflow.repository_path or call.here.repository
        name = name_for(task.name, task.id)
        path, branch = str(PurePath(repository, FOLDER, name)), f"{BRANCHES}/{name}"
        if done.workspace is not None:  # created before, perhaps under another name
            path, branch = done.workspace["path"], done.workspace["branch"]
        made = call.world.worktrees(repository).make(path, branch, None)
    except Refusal as refusal:  # the claim stands all the same
        warned = msgspec.structs.replace(
            answer, warnings=(*answer.warnings, f"no worktree was made: {refusal.message}")
        )
        return lambda _: warned

    def keep(call: Call) -> ClaimedTask:
        task = find_task(call.work, request.task_id)
        check_writer(call.work, task, Writer(request.agent_id, done.fence), call.crew)
        if _space(call.work, task) is None:
            record_workspace(call.work, workflow, made, [task], managed=True)
        return msgspec.structs.replace(answer, workspace=_workspace(call.work, find_task(call.work, task.id)))

    return keep


def task_release(call: Call, request: ReleaseTask) -> Released:
    agent = find_agent(call.work, request.agent_id)
    task = find_task(call.work, request.task_id)
    lease = claim_of(call.work, task)
    if lease.holder is None:
        return Released(False, task.shown_status)
    stale = call.writer.fence not in (None, lease.fence)
    if stale or (lease.holder != agent.id and agent.role != "coordinator"):
        held_for = spoken_time(call.work.now_ms() - lease.since_ms)
        raise ClaimHeld(
            f'task "{task.name}" has been held by {lease.holder} for {held_for}, under fence {lease.fence}',
            hint="its holder can release it, or an agent whose role is coordinator",
            task_id=task.id,
            held_by=lease.holder,
            since=lease.since_ms,
            fence=lease.fence,
        )
    freed = give_up(call.work, task, lease, request.reason)
    if lease.holder != agent.id:
        post_released(call.work, agent.id, lease.holder, task, request.reason)
    return Released(True, freed.shown_status)


def task_get_available(call: Call, request: FindTasks) -> AvailableTasks:
    agent = find_agent(call.work, request.agent_id)
    if request.workflow_id is not None:
        workflows = [find_workflow(call.work, request.workflow_id)]
    else:
        workflows = open_workflows(call, WORKFLOWS)
    can: list[Offered] = []
    cannot: list[Task] = []
    for workflow in workflows:
        if workflow.status not in (*CLOSED, "paused"):
            found = offers(call.work, workflow.id, agent)
            can += found[0]
            cannot += found[1]
    can.sort(key=lambda offered: -offered.match)
    return AvailableTasks(
        tuple(_shown(call, offered) for offered in can[: request.limit]),
        len(can),
        tuple({"id": task.id, "name": task.name, "missing": missing(task, agent)} for task in cannot[:BEYOND]),
        tuple(
            {"workflow_id": workflow.id, **pause}
            for workflow in [one for one in workflows if one.status == "paused"][:BEYOND]
            if (pause := pause_details(call.work, workflow)) is not None
        ),
    )


def _shown(call: Call, offered: Offered) -> dict[str, Any]:
    shown = shown_task(without_expired_claim(call.work, offered.task), full=False, rest=TASK_GET)
    description = cut(offered.task.description, DESCRIPTION, rest=TASK_GET)
    return {**shown, "description": description, "reason": offered.reason}


_CLAIMED = (*PLANNED, ANNA, BEN, ("task_claim", {"task_id": "task_1", "agent_id": "ag_1"}))
_DONE = (
    *PLANNED,
    ANNA,
    ("task_update_status", {"id": "task_1", "status": "in_progress"}),
    ("task_update_status", {"id": "task_1", "status": "completed", "outcome": "Done"}),
)
_ABANDONED = (*PLANNED, ANNA, ("workflow_update_status", {"id": "wf_1", "status": "abandoned"}))
_UNKNOWN_AGENT = "an unknown agent is refused"
_STRANGERS = (
    Example(
        title="an unknown task is refused",
        given=(ANNA,),
        request={"task_id": "t", "agent_id": "ag_1"},
        refused=TaskNotFound,
    ),
    Example(
        title=_UNKNOWN_AGENT,
        given=PLANNED,
        request={"task_id": "task_1", "agent_id": "ag_9"},
        refused=AgentNotFound,
    ),
)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="task_claim",
        toolset=AGENT,
        effect=Effect.WRITE,
        stored=True,
        acts_as="agent_id",
        summary="Claims a task for you, and starts it if asked; send the fence with later writes to it",
        request=ClaimTask,
        response=ClaimedTask,
        handler=task_claim,
        follow=make_room,
        refusals=(AgentNotFound, TaskNotFound, TaskBlocked, IllegalTransition, WorkflowClosed),
        examples=(
            Example(
                title="a claim that begins the work",
                given=(*PLANNED, ANNA),
                request={"task_id": "task_1", "agent_id": "ag_1", "start": True},
                response={"success": True, "fence": 1, "status": "in_progress"},
            ),
            Example(
                title="a task that another has",
                given=_CLAIMED,
                request={"task_id": "task_1", "agent_id": "ag_2"},
                response={"success": False, "already_claimed_by": "ag_1", "held_by_name": "Anna"},
            ),
            Example(
                title="a blocked task is refused",
                given=_CLAIMED,
                request={"task_id": "task_2", "agent_id": "ag_2"},
                refused=TaskBlocked,
            ),
            Example(
                title="a finished task is refused",
                given=_DONE,
                request={"task_id": "task_1", "agent_id": "ag_1"},
                refused=IllegalTransition,
            ),
            Example(
                title="a workflow that has ended is refused",
                given=_ABANDONED,
                request={"task_id": "task_1", "agent_id": "ag_1"},
                refused=WorkflowClosed,
            ),
            *_STRANGERS,
        ),
    ),
    Operation(
        name="task_release",
        toolset=AGENT,
        effect=Effect.WRITE,
        stored=True,
        acts_as="agent_id",
        summary="Releases a claimed task; a coordinator can release anyone's",
        request=ReleaseTask,
        response=Released,
        handler=task_release,
        refusals=(AgentNotFound, TaskNotFound, ClaimHeld),
        examples=(
            Example(
                title="a task is given back",
                given=_CLAIMED,
                request={"task_id": "task_1", "agent_id": "ag_1", "reason": "out of my depth"},
                response={"success": True, "status": "pending"},
            ),
            Example(
                title="there was nothing to give back",
                given=(*PLANNED, ANNA),
                request={"task_id": "task_1", "agent_id": "ag_1"},
                response={"success": False},
            ),
            Example(
                title="another's task is not given back",
                given=_CLAIMED,
                request={"task_id": "task_1", "agent_id": "ag_2"},
                refused=ClaimHeld,
            ),
            *_STRANGERS,
        ),
    ),
    Operation(
        name="task_get_available",
        toolset=AGENT,
        effect=Effect.READ,
        stored=True,
        acts_as="agent_id",
        summary="Lists tasks you can claim, best match first, with reasons",
        request=FindTasks,
        response=AvailableTasks,
        handler=task_get_available,
        refusals=(AgentNotFound, RunNotFound),
        examples=(
            Example(
                title="what is ready and nobody has",
                given=(*PLANNED, ANNA),
                request={"agent_id": "ag_1"},
                response={"tasks": [{"id": "task_1", "reason": "ready: it asks for nothing special"}], "total": 1},
            ),
            Example(
                title="what another has is not offered",
                given=_CLAIMED,
                request={"agent_id": "ag_2"},
                response={"tasks": [], "total": 0},
            ),
            Example(title=_UNKNOWN_AGENT, request={"agent_id": "ag_9"}, refused=AgentNotFound),
            Example(
                title="an unknown workflow is refused",
                given=(ANNA,),
                request={"agent_id": "ag_1", "workflow_id": "wf_9"},
                refused=RunNotFound,
            ),
        ),
    ),
)
