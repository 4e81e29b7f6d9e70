"""A lease as it is stored: a claim on a task, an agent's presence, a lock on a graph.

Its id is the id of what it guards. A renewal is not news: `expires_ms` and `renewed_ms` change without an event, so an
agent that is merely present leaves no trace in the ledger.

Leases: who holds something, until when, and under which fencing number. One mechanism for claims, locks and presence.

Expiry is checked on every read, so nothing needs a sweeper. The fence grows with every change of holder, which exposes
a holder that was presumed lost and comes back: safety rests on the fence, never on synchronised clocks.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from handrail.domain.work.task import Task
from handrail.kernel.records import UnitOfWork


class Holding(NamedTuple):
    """The state of a lease. Without a holder it is free."""

    holder: str | None
    fence: int
    expires_ms: int

    def is_held(self, now_ms: int) -> bool:
        return self.holder is not None and self.expires_ms > now_ms

    def freed(self) -> Holding:
        """The lease without a holder. It keeps its fence, so that the next holder gets a higher one."""
        return Holding(None, self.fence, 0)


FREE = Holding(None, 0, 0)


def acquire(lease: Holding, holder: str, now_ms: int, ttl_ms: int) -> Holding | None:
    """The lease held by `holder`, or None while somebody else holds it. Acquiring it again renews it under the same
    fence."""
    if lease.is_held(now_ms):
        if lease.holder != holder:
            return None
        return lease._replace(expires_ms=max(lease.expires_ms, now_ms + ttl_ms))
    return Holding(holder, lease.fence + 1, now_ms + ttl_ms)


def renew(lease: Holding, holder: str, fence: int, now_ms: int, ttl_ms: int) -> Holding | None:
    """The lease with a later expiry; None when `holder` no longer holds it under this fence."""
    if not holds(lease, holder, fence, now_ms):
        return None
    return lease._replace(expires_ms=max(lease.expires_ms, now_ms + ttl_ms))


def release(lease: Holding, holder: str, fence: int) -> Holding | None:
    """The lease, freed; None when it is not `holder`'s under this fence. An expired lease can still be released."""
    return lease.freed() if (lease.holder, lease.fence) == (holder, fence) else None


def holds(lease: Holding, holder: str, fence: int, now_ms: int) -> bool:
    """True while `holder` may write under this fence."""
    return lease.is_held(now_ms) and lease.holder == holder and lease.fence == fence


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds `id`, since when, until when, under which fence. It lives in the stream of what it guards."""

    id: str
    stream: str
    holder: str | None
    fence: int
    expires_ms: int
    since_ms: int = 0
    renewed_ms: int = 0
    """When its holder was last heard from."""

    @property
    def holding(self) -> Holding:
        return Holding(self.holder, self.fence, self.expires_ms)

    def with_holding(self, holding: Holding, now_ms: int) -> Lease:
        """The lease updated to `holding` as of now."""
        begins = holding.holder != self.holder or holding.fence != self.fence
        return msgspec.structs.replace(
            self,
            holder=holding.holder,
            fence=holding.fence,
            expires_ms=holding.expires_ms,
            since_ms=now_ms if begins else self.since_ms,
            renewed_ms=now_ms,
        )


def ended(unit: UnitOfWork, key: str) -> tuple[Lease, ...]:
    """The freed lease on `key`, for the event that ends it; empty if nobody holds or held it."""
    lease = unit.get(Lease, key)
    if lease is None or lease.holder is None:
        return ()
    return (lease.with_holding(lease.holding.freed(), unit.now_ms()),)


def free_lease(key: str, stream: str) -> Lease:
    """A lease that has never been held."""
    return Lease(id=key, stream=stream, holder=FREE.holder, fence=FREE.fence, expires_ms=FREE.expires_ms)


def claim_of(unit: UnitOfWork, task: Task) -> Lease:
    return unit.get(Lease, task.id) or free_lease(task.id, task.stream)


def holder_of(unit: UnitOfWork, task: Task) -> Lease | None:
    """The claim on a task, if somebody holds it now."""
    if task.assigned_agent_id is None:
        return None
    lease = claim_of(unit, task)
    return lease if lease.holding.is_held(unit.now_ms()) else None
