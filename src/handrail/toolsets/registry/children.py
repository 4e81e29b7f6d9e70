"""Toolset `children`: registry.md's children, which are the agents registered here: what is observed about each, its
role, the limits it was given; and registering one that runs elsewhere.

Nothing here starts, signals or measures a process: that comes later, and the toolset says so.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.presence import change_agent, find_agent
from handrail.domain.registry.children import last_event, limits_of, with_limits
from handrail.domain.reply_size import bounds, within
from handrail.kernel.errors import AgentNotFound
from handrail.kernel.records import Query
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.plan.agent import (
    ANNA,
    BEN,
    Capabilities,
    Name,
    PathText,
    RegisterAgent,
    Role,
    Runtime,
    agent_register,
    shown_agent,
)
from handrail.toolsets.vocabulary import CHILDREN

LISTED = 10
Limits = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=60)], Annotated[float, Meta(ge=0)]],
    Meta(max_length=20, description="Numbers by name"),
]


class GetChildren(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which child; all of them where none is named."""

    child_id: str | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class Child(msgspec.Struct, frozen=True):
    """What is known and seen of a child."""

    child_id: str
    name: str
    role: str
    runtime: str
    status: str
    liveness: dict[str, Any]
    """working, idle or lost, with the evidence."""
    current_task: dict[str, Any] | None
    lease_expires_at: int | None
    """When it is taken for lost unless it calls."""
    limits: dict[str, float]
    last_event: dict[str, Any] | None


class ChildPage(msgspec.Struct, frozen=True):
    """Children, the newest first, and how many there are in all."""

    children: tuple[Child, ...]
    total: int


class SetRole(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A child and its role."""

    child_id: str
    role: Role


class SetLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A child and what it is told to keep within; these take the place of those before."""

    child_id: str
    limits: Limits


class ChildChanged(msgspec.Struct, frozen=True):
    """The child as it is now."""

    child_id: str
    role: str
    limits: dict[str, float]


class AttachChild(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent that runs elsewhere."""

    name: Name
    runtime: Runtime = "custom"
    role: Role = "worker"
    capabilities: Capabilities = []
    workspace_path: PathText | None = None
    limits: Limits = {}
    metadata: dict[str, Any] = {}


class AttachedChild(msgspec.Struct, frozen=True):
    """The child's id, and the secret by which its own calls prove to be its own: hand it to the child."""

    child_id: str
    name: str
    role: str
    runtime: str
    status: str
    secret: str | None
    next_heartbeat_ms: int
    logs: str


def child_status(call: Call, request: GetChildren) -> ChildPage:
    if request.child_id is not None:
        return ChildPage((_child(call, find_agent(call.work, request.child_id)),), 1)
    limit, room = bounds(request.limit, LISTED)
    agents = call.work.select(Agent, Query((), ("-created_at", "-id"), limit, request.offset))
    shown = within([_child(call, agent) for agent in agents], room)
    return ChildPage(tuple(shown), call.work.count(Agent, Query()))


def child_set_role(call: Call, request: SetRole) -> ChildChanged:
    agent = find_agent(call.work, request.child_id)
    return _changed(change_agent(call.work, agent, role=request.role))


def child_set_limits(call: Call, request: SetLimits) -> ChildChanged:
    agent = find_agent(call.work, request.child_id)
    return _changed(change_agent(call.work, agent, metadata=with_limits(agent.metadata, request.limits)))


def child_attach(call: Call, request: AttachChild) -> AttachedChild:
    made = agent_register(
        call,
        RegisterAgent(
            name=request.name,
            runtime=request.runtime,
            role=request.role,
            capabilities=request.capabilities,
            workspace_path=request.workspace_path,
            metadata=with_limits(request.metadata, request.limits) if request.limits else request.metadata,
        ),
    )
    return AttachedChild(
        child_id=made.id,
        name=made.name,
        role=request.role,
        runtime=request.runtime,
        status=made.status,
        secret=made.secret,
        next_heartbeat_ms=made.next_heartbeat_ms,
        logs=f"sc://children/{made.id}/logs",
    )


def _child(call: Call, agent: Agent) -> Child:
    seen = shown_agent(call, agent)
    task_id = seen["current_task_id"]
    task = seen.get("current_task")
    return Child(
        child_id=agent.id,
        name=agent.name,
        role=agent.role,
        runtime=agent.runtime,
        status=seen["status"],
        liveness=seen["liveness"],
        current_task={"task_id": task_id, **task} if task is not None else None,
        lease_expires_at=seen["liveness"].get("lease_expires"),
        limits=limits_of(agent),
        last_event=last_event(call.work, agent.id),
    )


def _changed(agent: Agent) -> ChildChanged:
    return ChildChanged(agent.id, agent.role, limits_of(agent))


_UNKNOWN = "an unknown child is refused"

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="child_status",
        toolset=CHILDREN,
        effect=Effect.READ,
        stored=True,
        summary="Shows one child or all: state with evidence, task, limits, last event",
        request=GetChildren,
        response=ChildPage,
        handler=child_status,
        refusals=(AgentNotFound,),
        examples=(
            Example(
                title="a child that has just come",
                given=(ANNA, ("child_set_limits", {"child_id": "ag_1", "limits": {"tokens": 90000}})),
                request={"child_id": "ag_1"},
                response={
                    "children": [
                        {
                            "child_id": "ag_1",
                            "status": "online",
                            "liveness": {"state": "idle"},
                            "current_task": None,
                            "limits": {"tokens": 90000},
                            "last_event": {"kind": "agent.updated"},
                        }
                    ],
                    "total": 1,
                },
            ),
            Example(
                title="all of them, the newest first",
                given=(ANNA, BEN),
                request={},
                response={"children": [{"name": "Ben"}, {"name": "Anna"}], "total": 2},
            ),
            Example(title=_UNKNOWN, request={"child_id": "ag_9"}, refused=AgentNotFound),
        ),
    ),
    Operation(
        name="child_set_role",
        toolset=CHILDREN,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Makes a child a coordinator or a worker",
        request=SetRole,
        response=ChildChanged,
        handler=child_set_role,
        refusals=(AgentNotFound,),
        examples=(
            Example(
                title="a worker becomes a coordinator",
                given=(ANNA,),
                request={"child_id": "ag_1", "role": "coordinator"},
                response={"child_id": "ag_1", "role": "coordinator", "limits": {}},
            ),
            Example(title=_UNKNOWN, request={"child_id": "ag_9", "role": "worker"}, refused=AgentNotFound),
        ),
    ),
    Operation(
        name="child_set_limits",
        toolset=CHILDREN,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Records limits for a child; child_status shows them, nothing enforces them",
        request=SetLimits,
        response=ChildChanged,
        handler=child_set_limits,
        refusals=(AgentNotFound,),
        examples=(
            Example(
                title="limits are noted",
                given=(ANNA,),
                request={"child_id": "ag_1", "limits": {"tokens": 90000, "minutes": 30}},
                response={"child_id": "ag_1", "limits": {"tokens": 90000, "minutes": 30}},
            ),
            Example(title=_UNKNOWN, request={"child_id": "ag_9", "limits": {}}, refused=AgentNotFound),
        ),
    ),
    Operation(
        name="child_attach",
        toolset=CHILDREN,
        effect=Effect.WRITE,
        stored=True,
        summary="Registers an agent that runs elsewhere; hand it the secret",
        request=AttachChild,
        response=AttachedChild,
        handler=child_attach,
        examples=(
            Example(
                title="a child gets an id and a secret",
                request={"name": "Cleo", "runtime": "codex", "limits": {"minutes": 30}},
                response={
                    "child_id": "ag_...",
                    "name": "Cleo",
                    "role": "worker",
                    "status": "online",
                    "secret": "...",
                    "logs": "sc://children/ag_.../logs",
                },
            ),
        ),
    ),
)
