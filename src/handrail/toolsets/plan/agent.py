"""Toolset `agent`: plan.md's agents. They register, show that they are present, claim tasks and give them back.

`domain/claims/claim.py` defines claims; the tools to find and claim tasks are in `claims.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.claims.claim import give_up, take_up
from handrail.domain.crew.agent import Agent
from handrail.domain.crew.outbox import losses
from handrail.domain.crew.presence import (
    LOOKED_AT,
    change_agent,
    check_room,
    claims_of,
    depart,
    find_agent,
    liveness,
    presence_of,
    present,
    status_of,
)
from handrail.domain.crew.token import about_agent, secret_hash, vouched
from handrail.domain.work.lease import Lease
from handrail.domain.work.lookup import find_task
from handrail.domain.work.task import Task
from handrail.kernel.errors import AgentNotFound, TaskNotFound
from handrail.kernel.records import Query, UnitOfWork
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.plan.workflow import PLANNED, Done
from handrail.toolsets.vocabulary import AGENT

Runtime = Literal["claude_code", "codex", "opencode", "gemini", "cursor", "copilot", "qwen", "custom"]
Role = Literal["coordinator", "worker"]
Status = Literal["online", "offline", "busy"]
Name = Annotated[str, Meta(min_length=1, max_length=100)]
Capabilities = Annotated[list[Annotated[str, Meta(min_length=1, max_length=60)]], Meta(max_length=100)]
PathText = Annotated[str, Meta(max_length=4096)]
LISTED = 15


class RegisterAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who the agent is and what it can do."""

    name: Name
    runtime: Runtime
    role: Role = "worker"
    capabilities: Capabilities = []
    workspace_path: PathText | None = None
    metadata: dict[str, Any] = {}
    id: Annotated[str, Meta(description="Come back as this agent; send agent_secret as well")] | None = None


class RegisteredAgent(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agent as it is known from now on."""

    id: str
    name: str
    status: str
    next_heartbeat_ms: int
    secret: str | None = None
    """Given once. On another connection it proves, as `agent_secret`, that a call is this agent's."""
    holding: tuple[dict[str, Any], ...] = ()
    lapsed: tuple[dict[str, Any], ...] = ()
    """Claims that ran out and that nobody has taken: task_claim takes them up again."""
    lost: tuple[dict[str, Any], ...] = ()
    """Claims that others have now."""


class Heartbeat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sign of life, and what it is spent on."""

    agent_id: str
    current_task_id: str | None = None
    status: Literal["online", "busy"] | None = None


class Beaten(msgspec.Struct, frozen=True, omit_defaults=True):
    """When to call again, and what became of the agent's claims."""

    success: bool
    next_heartbeat_ms: int
    holding: tuple[dict[str, Any], ...] = ()
    lapsed: tuple[dict[str, Any], ...] = ()
    lost: tuple[dict[str, Any], ...] = ()


class UpdateAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What has changed of an agent."""

    id: str
    status: Status | None = None
    current_task_id: str | UnsetType | None = UNSET
    workspace_path: PathText | None = None
    metadata: Annotated[dict[str, Any], Meta(description="Merged into what is there")] = {}
    capabilities: Capabilities | None = None


class OfAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which agent."""

    id: str


class ListAgents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which agents."""

    status: list[Status] | UnsetType = UNSET
    role: Role | None = None
    runtime: str | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = LISTED
    offset: Annotated[int, Meta(ge=0)] = 0


class AgentPage(msgspec.Struct, frozen=True):
    """Agents, the newest first, and how many fit in all."""

    agents: tuple[dict[str, Any], ...]
    total: int


class Unregistered(msgspec.Struct, frozen=True):
    """The agent is offline; what it had claimed is free."""

    success: bool
    tasks_released: int


def agent_register(call: Call, request: RegisterAgent) -> RegisteredAgent:
    unit, now = call.work, call.work.now_ms()
    known = find_agent(unit, request.id) if request.id is not None else None
    if known is None and call.bounds.children:
        check_room(unit, call.bounds.children)
    secret = call.world.new_secret() if known is None else None
    agent_id = known.id if known is not None else unit.new_id("ag")
    agent = Agent(
        id=agent_id,
        name=request.name,
        runtime=request.runtime,
        role=request.role,
        status="online",
        capabilities=list(dict.fromkeys(request.capabilities)),
        current_task_id=None,
        workspace_path=request.workspace_path,
        metadata={**_limits_of(known), **request.metadata},
        secret_hash=known.secret_hash
        if known is not None
        else vouched(unit, about_agent(agent_id), secret_hash(secret or "")),
        created_at=known.created_at if known is not None else now,
        mismatches=known.mismatches if known is not None else 0,
    )
    unit.record("agent.registered", agent, present(unit, agent.id, call.crew))
    if known is not None:
        _take_up_claims(call, agent)
    return RegisteredAgent(
        agent.id, agent.name, "online", call.crew.heartbeat_ms, secret, **_claims_shown(unit, agent.id)
    )


def _limits_of(known: Agent | None) -> dict[str, Any]:
    """Limits that others have set for an agent survive when it registers again."""
    return {"limits": known.metadata["limits"]} if known is not None and "limits" in known.metadata else {}


def agent_heartbeat(call: Call, request: Heartbeat) -> Beaten:
    agent = find_agent(call.work, request.agent_id)
    changes: dict[str, Any] = {}
    if request.current_task_id is not None:
        changes["current_task_id"] = find_task(call.work, request.current_task_id).id
    if request.status is not None:
        changes["status"] = request.status
    change_agent(call.work, agent, **changes)
    return Beaten(True, call.crew.heartbeat_ms, **_claims_shown(call.work, agent.id))


def agent_update(call: Call, request: UpdateAgent) -> Done:
    agent = find_agent(call.work, request.id)
    changes: dict[str, Any] = {"metadata": {**agent.metadata, **request.metadata}}
    if request.current_task_id is not UNSET:
        task_id = request.current_task_id
        changes["current_task_id"] = find_task(call.work, task_id).id if task_id is not None else None
    for name in ("workspace_path", "capabilities"):
        if (given := getattr(request, name)) is not None:
            changes[name] = given
    if request.status in ("online", "busy"):
        changes["status"] = request.status
    changed = change_agent(call.work, agent, **changes)
    if request.status == "offline":
        _leave(call.work, changed)
    return Done(True)


def agent_get(call: Call, request: OfAgent) -> dict[str, Any]:
    return shown_agent(call, find_agent(call.work, request.id))


def agent_list(call: Call, request: ListAgents) -> AgentPage:
    named = tuple((name, value) for name in ("role", "runtime") if (value := getattr(request, name)) is not None)
    newest = call.work.select(Agent, Query(named, ("-created_at", "-id"), LOOKED_AT))
    if request.status is not UNSET:
        wanted = set(request.status)
        newest = [agent for agent in newest if status_of(call.work, agent) in wanted]
    page = newest[request.offset : request.offset + request.limit]
    return AgentPage(tuple(shown_agent(call, agent) for agent in page), len(newest))


def agent_unregister(call: Call, request: OfAgent) -> Unregistered:
    return Unregistered(True, _leave(call.work, find_agent(call.work, request.id)))


def shown_agent(call: Call, agent: Agent) -> dict[str, Any]:
    """The agent in the shape of plan.md's type, with what is observed about it."""
    unit = call.work
    held, _ = claims_of(unit, agent.id)
    shown: dict[str, Any] = msgspec.to_builtins(agent)
    for name in ("secret_hash", "mismatches"):
        del shown[name]
    current = agent.current_task_id or (held[0].id if held else None)
    task = unit.get(Task, current) if current is not None else None
    shown |= {
        "status": status_of(unit, agent),
        "current_task_id": current,
        "last_heartbeat": presence_of(unit, agent.id).renewed_ms,
        "liveness": msgspec.to_builtins(liveness(unit, agent, call.crew, holds=bool(held))),
    }
    if task is not None:
        shown["current_task"] = {"name": task.name, "status": task.shown_status}
    if held:
        shown["holding"] = [_claim(unit, lease) for lease in held[:LISTED]]
    if agent.mismatches:
        shown["unproven_calls"] = agent.mismatches
    return shown


def _leave(unit: UnitOfWork, agent: Agent) -> int:
    """Gives back what the agent holds, including expired claims that nobody has taken, and records that it left."""
    held, lapsed = claims_of(unit, agent.id)
    released = 0
    for lease in (*held, *lapsed):
        task = unit.get(Task, lease.id)
        if task is not None and not task.is_finished:
            give_up(unit, task, lease, "its agent left")
            released += 1
    depart(unit, agent)
    return released


def _take_up_claims(call: Call, agent: Agent) -> None:
    """A returning agent continues with what it holds; another process that still acts as the same agent does not."""
    held, _ = claims_of(call.work, agent.id)
    for lease in held:
        task = call.work.get(Task, lease.id)
        if task is not None:
            take_up(call.work, task, lease, agent, call.crew)


def _claims_shown(unit: UnitOfWork, agent_id: str) -> dict[str, Any]:
    held, lapsed = claims_of(unit, agent_id)
    return {
        "holding": tuple(_claim(unit, lease) for lease in held[:LISTED]),
        "lapsed": tuple(_claim(unit, lease) for lease in lapsed[:LISTED]),
        "lost": tuple(losses(unit, agent_id)[:LISTED]),
    }


def _claim(unit: UnitOfWork, lease: Lease) -> dict[str, Any]:
    task = unit.get(Task, lease.id)
    name = task.name if task is not None else ""
    return {"task_id": lease.id, "name": name, "fence": lease.fence, "expires_at": lease.expires_ms}


ANNA = ("agent_register", {"name": "Anna", "runtime": "claude_code", "capabilities": ["python"]})
BEN = ("agent_register", {"name": "Ben", "runtime": "codex"})
_UNKNOWN = "an unknown agent is refused"

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="agent_register",
        toolset=AGENT,
        effect=Effect.WRITE,
        stored=True,
        acts_as="id",
        introduces=True,
        summary="Registers you as an agent; keep the secret",
        request=RegisterAgent,
        response=RegisteredAgent,
        handler=agent_register,
        refusals=(AgentNotFound,),
        examples=(
            Example(
                title="a new agent gets an id and a secret",
                request=ANNA[1],
                response={
                    "id": "ag_...",
                    "name": "Anna",
                    "status": "online",
                    "secret": "...",
                    "next_heartbeat_ms": 30000,
                },
            ),
            Example(
                title="an agent comes back as itself",
                given=(ANNA,),
                request={**ANNA[1], "id": "ag_1"},
                response={"id": "ag_1", "status": "online"},
            ),
            Example(title=_UNKNOWN, request={**ANNA[1], "id": "ag_9"}, refused=AgentNotFound),
        ),
    ),
    Operation(
        name="agent_heartbeat",
        toolset=AGENT,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        acts_as="agent_id",
        summary="Tells others you are alive while you call nothing else; returns what you hold and lost",
        request=Heartbeat,
        response=Beaten,
        handler=agent_heartbeat,
        refusals=(AgentNotFound, TaskNotFound),
        examples=(
            Example(
                title="an agent that works",
                given=(*PLANNED, ANNA, ("task_claim", {"task_id": "task_1", "agent_id": "ag_1"})),
                request={"agent_id": "ag_1", "current_task_id": "task_1", "status": "busy"},
                response={"success": True, "next_heartbeat_ms": 30000, "holding": [{"task_id": "task_1", "fence": 1}]},
            ),
            Example(
                title="an unknown task is refused",
                given=(ANNA,),
                request={"agent_id": "ag_1", "current_task_id": "task_9"},
                refused=TaskNotFound,
            ),
            Example(title=_UNKNOWN, request={"agent_id": "ag_9"}, refused=AgentNotFound),
        ),
    ),
    Operation(
        name="agent_update",
        toolset=AGENT,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        acts_as="id",
        summary="Updates an agent's status, task, workspace or capabilities",
        request=UpdateAgent,
        response=Done,
        handler=agent_update,
        refusals=(AgentNotFound, TaskNotFound),
        examples=(
            Example(
                title="an agent moves to another working copy",
                given=(ANNA,),
                request={"id": "ag_1", "workspace_path": "/srv/copies/one", "metadata": {"model": "m"}},
                response={"success": True},
            ),
            Example(title=_UNKNOWN, request={"id": "ag_9"}, refused=AgentNotFound),
            Example(
                title="an unknown task is refused",
                given=(ANNA,),
                request={"id": "ag_1", "current_task_id": "task_9"},
                refused=TaskNotFound,
            ),
        ),
    ),
    Operation(
        name="agent_get",
        toolset=AGENT,
        effect=Effect.READ,
        stored=True,
        summary="Shows an agent: its claims, and the evidence that it is alive",
        request=OfAgent,
        response=dict[str, Any],
        handler=agent_get,
        refusals=(AgentNotFound,),
        examples=(
            Example(
                title="an agent that has just come",
                given=(ANNA,),
                request={"id": "ag_1"},
                response={"name": "Anna", "status": "online", "liveness": {"state": "idle"}},
            ),
            Example(title=_UNKNOWN, request={"id": "ag_9"}, refused=AgentNotFound),
        ),
    ),
    Operation(
        name="agent_list",
        toolset=AGENT,
        effect=Effect.READ,
        stored=True,
        summary="Lists agents: runtime, task, workspace, last action",
        request=ListAgents,
        response=AgentPage,
        handler=agent_list,
        examples=(
            Example(
                title="those that are there",
                given=(ANNA, BEN, ("agent_unregister", {"id": "ag_2"})),
                request={"status": ["online", "busy"]},
                response={"agents": [{"id": "ag_1", "runtime": "claude_code"}], "total": 1},
            ),
        ),
    ),
    Operation(
        name="agent_unregister",
        toolset=AGENT,
        effect=Effect.WRITE,
        stored=True,
        acts_as="id",
        summary="Marks an agent offline and frees its claims",
        request=OfAgent,
        response=Unregistered,
        handler=agent_unregister,
        refusals=(AgentNotFound,),
        examples=(
            Example(
                title="what it held is free",
                given=(*PLANNED, ANNA, ("task_claim", {"task_id": "task_1", "agent_id": "ag_1"})),
                request={"id": "ag_1"},
                response={"success": True, "tasks_released": 1},
            ),
            Example(title=_UNKNOWN, request={"id": "ag_9"}, refused=AgentNotFound),
        ),
    ),
)
