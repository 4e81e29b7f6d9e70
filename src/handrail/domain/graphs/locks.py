"""Locks on graphs: while somebody holds one, nobody else can change the graph. A lock is a lease with a fence, in the
stream of what it guards, so that if a change and a lock race, one is refused. Every lock expires.

A lock is not an agent's presence: other calls by its holder do not renew it, only asking for it again does.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from handrail.domain.work.lease import Lease, acquire, free_lease
from handrail.kernel.errors import GraphNotFound, LockHeld
from handrail.kernel.records import UnitOfWork

LOCK_MS = 10 * 60 * 1000
"""How long a lock lasts by default."""
LOCKED, UNLOCKED = "graph.locked", "graph.unlocked"
_LOCK = "lock:"
"""The prefix of lock ids, and of holders' names in their leases: heartbeats renew only leases held under an agent's
bare name."""


class Lock(NamedTuple):
    """The current state of a lock."""

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
    """Gives the lock to `holder`, unless somebody else has it. A holder that asks again keeps its fence and gets the
    same time again."""
    there, now = lock_of(unit, graph_id, stream), unit.now_ms()
    lease = there.lease
    lasted = lease.expires_ms - lease.renewed_ms if there.is_held(now) else LOCK_MS
    taken = acquire(lease.holding, _LOCK + holder, now, ttl_ms or lasted)
    if taken is None:
        raise _lock_held(there)
    mine = Lock(graph_id, lease.with_holding(taken, now))
    unit.record(LOCKED, mine.lease, data={"graph_id": graph_id, "holder": holder, "fence": mine.lease.fence})
    return mine


def graph_of_lock(lock_id: str) -> str:
    """The id of the graph that a lock is on."""
    graph_id = lock_id.removeprefix(_LOCK)
    if graph_id == lock_id:
        raise GraphNotFound(f"{lock_id} is no lock", hint="graph_lock gives a lock_id, such as lock:plan", id=lock_id)
    return graph_id


def unlock(unit: UnitOfWork, graph_id: str, stream: str, holder: str, fence: int | None) -> tuple[Lock, bool]:
    """Releases a lock; returns it and whether there was anything to release. It may already be free, but not held by
    somebody else."""
    there, now = lock_of(unit, graph_id, stream), unit.now_ms()
    if there.holder is None:
        return there, False
    if there.holder != holder or fence not in (None, there.lease.fence):
        if there.is_held(now) or fence is not None:
            raise _lock_held(there, fence)
        return there, False  # somebody else's, and expired
    freed = there.lease.with_holding(there.lease.holding.freed(), now)
    unit.record(UNLOCKED, freed, data={"graph_id": graph_id, "holder": holder, "fence": freed.fence})
    return there, True


def check_unlocked(
    unit: UnitOfWork, graph_id: str, stream: str, names: Collection[str], fence: int | None = None
) -> None:
    """Raises LockHeld if somebody other than these names holds the lock, or if the given fence is not, or no longer,
    theirs."""
    there = lock_of(unit, graph_id, stream)
    held = there.is_held(unit.now_ms())
    own = there.holder in names
    if held and (not own or fence not in (None, there.lease.fence)):
        raise _lock_held(there, fence if own else None)
    if not held and fence is not None:
        raise LockHeld(
            f"fence {fence} on {graph_id} is not yours, or no longer; its fence is now {there.lease.fence}",
            hint="nobody holds the lock now: read what has changed, then take it with graph_lock",
            graph_id=graph_id,
            fence=there.lease.fence,
        )


def _lock_held(lock: Lock, fence: int | None = None) -> LockHeld:
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
            hint="your lock expired and somebody has locked it since: read the graph again",
            **details,
        )
    return LockHeld(
        f"{lock.holder} has locked {lock.graph_id} until {lock.lease.expires_ms}",
        hint="wait or ask the holder (message_send); it expires by itself. Tasks can start and finish meanwhile",
        **details,
    )
