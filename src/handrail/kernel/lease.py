"""Leases: who holds something, until when, and under which fencing number. One mechanism for claims, locks and
liveness.

Expiry is honoured on every reading; nothing needs a sweeper. The fence grows with every change of holder, so that a
holder that was presumed lost and comes back can be told apart: safety rests on the fence, never on clocks that agree.
"""

from __future__ import annotations

from typing import NamedTuple


class Holding(NamedTuple):
    """What is known of a lease. No holder: free."""

    holder: str | None
    fence: int
    expires_ms: int

    def is_held(self, now_ms: int) -> bool:
        return self.holder is not None and self.expires_ms > now_ms


FREE = Holding(None, 0, 0)


def acquire(lease: Holding, holder: str, now_ms: int, ttl_ms: int) -> Holding | None:
    """The lease in the hands of `holder`, or None while another holds it. Asking again renews and keeps the fence."""
    if lease.is_held(now_ms):
        if lease.holder != holder:
            return None
        return lease._replace(expires_ms=max(lease.expires_ms, now_ms + ttl_ms))
    return Holding(holder, lease.fence + 1, now_ms + ttl_ms)


def renew(lease: Holding, holder: str, fence: int, now_ms: int, ttl_ms: int) -> Holding | None:
    """The lease with a later expiry; None when `holder` does not hold it under this fence any more."""
    if not holds(lease, holder, fence, now_ms):
        return None
    return lease._replace(expires_ms=max(lease.expires_ms, now_ms + ttl_ms))


def release(lease: Holding, holder: str, fence: int) -> Holding | None:
    """The lease set free; None when it is not `holder`'s under this fence. An expired one may still be given back."""
    if lease.holder != holder or lease.fence != fence:
        return None
    return Holding(None, lease.fence, 0)


def holds(lease: Holding, holder: str, fence: int, now_ms: int) -> bool:
    """True while `holder` may write under this fence."""
    return lease.is_held(now_ms) and lease.holder == holder and lease.fence == fence
