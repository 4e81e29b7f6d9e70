"""A lease as it is stored: on a task's claim, a graph's lock, an agent's liveness. The rules are in
`kernel/lease.py`."""

from __future__ import annotations

import msgspec

from handrail.kernel.lease import Holding


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds `id`, until when, under which fence. It lives in the stream of what it guards."""

    id: str
    stream: str
    holder: str | None
    fence: int
    expires_ms: int

    @property
    def holding(self) -> Holding:
        return Holding(self.holder, self.fence, self.expires_ms)

    def with_holding(self, holding: Holding) -> Lease:
        return msgspec.structs.replace(self, holder=holding.holder, fence=holding.fence, expires_ms=holding.expires_ms)
