"""Toolset `locks`: while somebody holds the lock of a graph or plan, nobody else changes it. Locks expire, and tasks
can be started and finished regardless of them. The rules are in `domain/graphs/locks.py`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from handrail.domain.graphs.graph_access import graph_there
from handrail.domain.graphs.locks import graph_of_lock, lock, unlock
from handrail.domain.graphs.transactions import check_named
from handrail.kernel.clock import DAY_MS
from handrail.kernel.errors import GraphNotFound, LockHeld, NotAllowed
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.registry.graph_shapes import AnyGraphId, Owner, caller_of
from handrail.toolsets.registry.tx import GRAPH
from handrail.toolsets.vocabulary import LOCKS


class LockGraph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which graph, and for how long."""

    graph_id: AnyGraphId
    holder: Annotated[Owner, Meta(description="Default: the caller")] | None = None
    ttl_ms: Annotated[int, Meta(ge=1, le=DAY_MS, description="Default 600000; asking again renews")] | None = None


class LockedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The lock. Its fence grows whenever it comes into other hands."""

    lock_id: str
    graph_id: str
    holder: str
    fence: int
    acquired_at: int
    refreshed_at: int
    expires_at: int


class UnlockGraph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lock, and whose it is."""

    lock_id: Annotated[str, Meta(min_length=1, max_length=200)]
    holder: Owner


class UnlockedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The lock is free."""

    lock_id: str
    graph_id: str
    holder: str
    released: bool
    """False where nobody had it."""
    released_at: int
    expired: bool
    """True where it had ended by itself."""


def graph_lock(call: Call, request: LockGraph) -> LockedGraph:
    caller = caller_of(call, request.holder)
    check_named(call.work, caller)
    holder = request.holder or caller.name
    stream, _ = graph_there(call.work, request.graph_id)
    taken = lock(call.work, request.graph_id, stream, holder, request.ttl_ms)
    return LockedGraph(
        lock_id=taken.id,
        graph_id=taken.graph_id,
        holder=holder,
        fence=taken.lease.fence,
        acquired_at=taken.lease.since_ms,
        refreshed_at=taken.lease.renewed_ms,
        expires_at=taken.lease.expires_ms,
    )


def graph_unlock(call: Call, request: UnlockGraph) -> UnlockedGraph:
    caller = caller_of(call, request.holder)
    check_named(call.work, caller)
    graph_id = graph_of_lock(request.lock_id)
    stream, _ = graph_there(call.work, graph_id)
    given_back, released = unlock(call.work, graph_id, stream, request.holder, caller.fence)
    now = call.work.now_ms()
    return UnlockedGraph(
        lock_id=given_back.id,
        graph_id=graph_id,
        holder=request.holder,
        released=released,
        released_at=now,
        expired=not given_back.is_held(now),
    )


_LOCKED = (*GRAPH, ("graph_lock", {"graph_id": "release", "holder": "anna"}))
_AGENT = (*GRAPH, ("agent_register", {"name": "Anna", "runtime": "codex"}))

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="graph_lock",
        toolset=LOCKS,
        effect=Effect.WRITE,
        stored=True,
        summary="Keeps others from changing a graph or plan for a while",
        request=LockGraph,
        response=LockedGraph,
        handler=graph_lock,
        refusals=(GraphNotFound, LockHeld, NotAllowed),
        examples=(
            Example(
                title="a lock",
                given=GRAPH,
                request={"graph_id": "release", "holder": "anna", "ttl_ms": 60_000},
                response={"lock_id": "lock:release", "holder": "anna", "fence": 1},
            ),
            Example(
                title="asking again renews it",
                given=_LOCKED,
                request={"graph_id": "release", "holder": "anna"},
                response={"lock_id": "lock:release", "fence": 1},
            ),
            Example(
                title="another has it",
                given=_LOCKED,
                request={"graph_id": "release", "holder": "ben"},
                refused=LockHeld,
            ),
            Example(
                title="in the name of another agent",
                given=_AGENT,
                request={"graph_id": "release", "holder": "ag_1"},
                refused=NotAllowed,
            ),
            Example(title="no such graph", request={"graph_id": "nothing"}, refused=GraphNotFound),
        ),
    ),
    Operation(
        name="graph_unlock",
        toolset=LOCKS,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Releases a lock",
        request=UnlockGraph,
        response=UnlockedGraph,
        handler=graph_unlock,
        refusals=(GraphNotFound, LockHeld, NotAllowed),
        examples=(
            Example(
                title="it is free",
                given=_LOCKED,
                request={"lock_id": "lock:release", "holder": "anna"},
                response={"graph_id": "release", "released": True, "expired": False},
            ),
            Example(
                title="nobody had it",
                given=GRAPH,
                request={"lock_id": "lock:release", "holder": "anna"},
                response={"released": False},
            ),
            Example(
                title="it is another's",
                given=_LOCKED,
                request={"lock_id": "lock:release", "holder": "ben"},
                refused=LockHeld,
            ),
            Example(
                title="in the name of another agent",
                given=_AGENT,
                request={"lock_id": "lock:release", "holder": "ag_1"},
                refused=NotAllowed,
            ),
            Example(title="no such lock", request={"lock_id": "lock:nothing", "holder": "anna"}, refused=GraphNotFound),
        ),
    ),
)
