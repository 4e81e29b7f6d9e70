"""A lease as it is stored: a claim on a task, an agent's presence, a lock on a graph. The rules are in
`kernel/lease.py`.

Its id is the id of what it guards. A renewal is not news: `expires_ms` and `renewed_ms` change without an event, so an
agent that is merely present leaves no trace in the ledger.
"""

from __future__ import annotations

import msgspec

from handrail.domain.work.task import Task
from handrail.kernel.lease import FREE, Holding
from handrail.kernel.records import UnitOfWork


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
