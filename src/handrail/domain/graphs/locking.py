"""Locks on graphs: while somebody has one, nobody else changes the graph. A lock is a lease with a fence, in the stream
of what it guards, so that of a change and a lock that cross one is refused. It always ends by itself.

A lock is not an agent's presence: that its holder is heard of does not renew it, only asking for it again does.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from handrail.domain.crew.lease import Lease, free_lease
from handrail.kernel.errors import GraphNotFound, LockHeld
from handrail.kernel.lease import Holding, acquire
from handrail.kernel.records import UnitOfWork

DAY_MS = 24 * 60 * 60 * 1000
LOCK_MS = 10 * 60 * 1000
"""How long a lock lasts where nobody says."""
LOCKED, UNLOCKED = "graph.locked", "graph.unlocked"
_LOCK = "lock:"
"""How ids of locks begin, and in a lease the name of who holds one: heartbeats renew what has an agent's bare name."""


class Lock(NamedTuple):
    """A lock as it stands."""

    graph_id: str
    lease: Lease

    @property
    def id(self) -> str:
        return self.lease.id

    @property
    def holder(self) -> str | None:
        return self.lease.holder.removeprefix(_LOCK) if self.lease.holder is not None else None

    def is_held(self, now_ms: int) -> bool:
        return self.lease.holding.is_held(now_ms)


def lock_of(unit: UnitOfWork, graph_id: str, stream: str) -> Lock:
    return Lock(graph_id, unit.get(Lease, _LOCK + graph_id) or free_lease(_LOCK + graph_id, stream))


def lock(unit: UnitOfWork, graph_id: str, stream: str, holder: str, ttl_ms: int | None) -> Lock:
    """Gives the lock to `holder`, unless another has it. Who has it already keeps its fence, and has it for as long
    again."""
    there, now = lock_of(unit, graph_id, stream), unit.now_ms()
    lease = there.lease
    lasted = lease.expires_ms - lease.renewed_ms if there.is_held(now) else LOCK_MS
    taken = acquire(lease.holding, _LOCK + holder, now, ttl_ms or lasted)
    if taken is None:
        raise _held(there)
    mine = Lock(graph_id, lease.with_holding(taken, now))
    unit.record(LOCKED, mine.lease, data={"graph_id": graph_id, "holder": holder, "fence": mine.lease.fence})
    return mine


def graph_of_lock(lock_id: str) -> str:
    """The graph that a lock is on."""
    graph_id = lock_id.removeprefix(_LOCK)
    if graph_id == lock_id:
        raise GraphNotFound(f"{lock_id} is no lock", hint="graph_lock gives a lock_id, such as lock:plan", id=lock_id)
    return graph_id


def unlock(unit: UnitOfWork, graph_id: str, stream: str, holder: str, fence: int | None) -> tuple[Lock, bool]:
    """Gives a lock back, and whether there was anything to give back: it may be free already, never another's."""
    there, now = lock_of(unit, graph_id, stream), unit.now_ms()
    if there.holder is None:
        return there, False
    if there.holder != holder or fence not in (None, there.lease.fence):
        if there.is_held(now) or fence is not None:
            raise _held(there, fence)
        return there, False  # another's, and over
    freed = there.lease.with_holding(Holding(None, there.lease.fence, 0), now)
    unit.record(UNLOCKED, freed, data={"graph_id": graph_id, "holder": holder, "fence": freed.fence})
    return there, True


def check_unlocked(
    unit: UnitOfWork, graph_id: str, stream: str, names: Collection[str], fence: int | None = None
) -> None:
    """Raises LockHeld while none of these names is the holder's, or where a fence is given that is not, or no longer,
    theirs."""
    there = lock_of(unit, graph_id, stream)
    held = there.is_held(unit.now_ms())
    own = there.holder in names
    if held and (not own or fence not in (None, there.lease.fence)):
        raise _held(there, fence if own else None)
    if not held and fence is not None:
        raise LockHeld(
            f"fence {fence} on {graph_id} is not yours, or not any more; it stands at {there.lease.fence}",
            hint="nobody holds the lock now: graph_lock takes it; look at what has changed first",
            graph_id=graph_id,
            fence=there.lease.fence,
        )


def _held(lock: Lock, fence: int | None = None) -> LockHeld:
    details: dict[str, Any] = {
        "graph_id": lock.graph_id,
        "lock_id": lock.id,
        "holder": lock.holder,
        "fence": lock.lease.fence,
        "expires_at": lock.lease.expires_ms,
    }
    if fence is not None:
        return LockHeld(
            f"{lock.graph_id} is locked by {lock.holder} under fence {lock.lease.fence}, not {fence}",
            hint="what you held has ended, and somebody has locked it since: look at it anew",
            **details,
        )
    return LockHeld(
        f"{lock.holder} has locked {lock.graph_id} until {lock.lease.expires_ms}",
        hint="wait for them or ask them (message_send); it ends by itself. Tasks can be started and finished meanwhile",
        **details,
    )
