"""A machine whose clock can be set, and processes on it that share a store."""

from __future__ import annotations

from handrail.domain.work.lease import FREE, Lease, acquire
from handrail.store.lease_clock import MachineTime
from handrail.store.store import Store
from handrail.store.unit import Unit
from tests.store.records import ANNA, lease

MINUTE_MS = 60_000
KEY = "task_1"


class Machine:
    """Both clocks of a machine. The time since its start only advances; its own clock is set at will."""

    def __init__(self) -> None:
        self.boot = 1
        self.since_ms = 5_000
        self.wall_ms = 1_700_000_000_000

    def read(self) -> MachineTime:
        return MachineTime(f"start-{self.boot}", self.since_ms, self.wall_ms)

    def advance(self, ms: int) -> None:
        self.since_ms += ms
        self.wall_ms += ms

    def set_clock(self, by_ms: int) -> None:
        self.wall_ms = max(1, self.wall_ms + by_ms)

    def start_again(self, wall_ms: int) -> None:
        self.boot, self.since_ms, self.wall_ms = self.boot + 1, 0, wall_ms


def holder_of(unit: Unit) -> str | None:
    known = unit.get(Lease, KEY)
    return known.holder if known is not None and known.holding.is_held(unit.now_ms()) else None


def seen_by(store: Store) -> str | None:
    """Who holds the lease, as this process sees it."""
    return store.run(ANNA, holder_of)


def left_ms(store: Store) -> int:
    """How long the lease still lasts, in the terms of whoever looks at it."""

    def work(unit: Unit) -> int:
        known = unit.get(Lease, KEY)
        assert known is not None
        return known.expires_ms - unit.now_ms()

    return store.run(ANNA, work)


def take(store: Store, holder: str, ttl_ms: int) -> bool:
    """Claims it, by the rules that claims, locks and presence share."""

    def work(unit: Unit) -> bool:
        now = unit.now_ms()
        known = unit.get(Lease, KEY)
        taken = acquire(known.holding if known is not None else FREE, holder, now, ttl_ms)
        if taken is None:
            return False
        unit.record("lease.taken", (known or lease(KEY, stream=KEY)).with_holding(taken, now))
        return True

    return store.run(ANNA, work)
