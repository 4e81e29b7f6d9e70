"""Leases: who holds something, until when, and under which fencing number. One mechanism for claims, locks and
presence. Pure; `work/lease.py` in the domain stores leases.

Expiry is checked on every read, so nothing needs a sweeper. The fence grows with every change of holder, which exposes
a holder that was presumed lost and comes back: safety rests on the fence, never on synchronised clocks.
"""

from __future__ import annotations

from typing import NamedTuple


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
