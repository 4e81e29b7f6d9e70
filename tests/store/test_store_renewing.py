"""Leases that are renewed without an event, on every store: who renews what, and that nothing else notices."""

from __future__ import annotations

import pytest

from handrail.domain.work.lease import Lease
from handrail.store import store as module
from handrail.store.store import HOLDER, RENEWALS
from handrail.store.unit import Unit
from tests.store.ground import Ground
from tests.store.records import ANNA, found, lease, put, workflow

TTL_MS = 3000


def held(ground: Ground, key: str) -> Lease:
    known = found(ground.store, Lease, key)
    assert isinstance(known, Lease)
    return known


def test_renewing_puts_off_what_its_holder_still_has_and_nothing_else(ground: Ground) -> None:
    now = ground.clock.now_ms()
    put(ground.store, lease("own", stream="s1", holder="anna", fence=3, expires_ms=now + 10))
    put(ground.store, lease("other", stream="s2", holder="ben", fence=1, expires_ms=now + 10))
    put(ground.store, lease("over", stream="s3", holder="anna", fence=1, expires_ms=now))
    put(ground.store, lease("longer", stream="s4", holder="anna", fence=1, expires_ms=now + 9 * TTL_MS))
    position = ground.store.position()
    ground.store.renew("anna", TTL_MS)
    assert (held(ground, "own").expires_ms, held(ground, "own").renewed_ms) == (now + TTL_MS, now)
    assert held(ground, "own").fence == 3
    assert held(ground, "other").expires_ms == now + 10
    assert held(ground, "over").expires_ms == now
    assert held(ground, "longer").expires_ms == now + 9 * TTL_MS
    assert ground.store.position() == position


def test_a_renewal_is_seen_by_another_process_and_the_ledger_still_agrees(ground: Ground) -> None:
    now = ground.clock.now_ms()
    put(ground.store, lease("own", stream="s1", holder="anna", fence=1, expires_ms=now + 10))
    ground.store.renew("anna", TTL_MS)
    seen = found(ground.another(), Lease, "own")
    assert seen is not None
    assert seen.expires_ms == now + TTL_MS
    assert ground.store.verify() == []


def test_renewals_in_quick_succession_write_once(ground: Ground) -> None:
    now = ground.clock.now_ms()
    put(ground.store, lease("own", stream="s1", holder="anna", fence=1, expires_ms=now + 10))
    ground.store.renew("anna", TTL_MS)
    ground.clock.advance(TTL_MS // RENEWALS - 1)
    ground.store.renew("anna", TTL_MS)
    assert held(ground, "own").renewed_ms == now
    ground.clock.advance(1)
    ground.store.renew("anna", TTL_MS)
    assert held(ground, "own").renewed_ms == now + TTL_MS // RENEWALS


def test_who_takes_a_lease_over_while_it_is_renewed_has_it(ground: Ground) -> None:
    """A unit that found the lease run out commits, although its holder renewed in between: the fence decides."""
    now = ground.clock.now_ms()
    put(ground.store, workflow())
    put(ground.store, lease("own", stream="s1", holder="anna", fence=1, expires_ms=now + 10))

    def take_over(unit: Unit) -> None:
        assert unit.get(Lease, "own") is not None
        ground.another().engine.renew("anna", TTL_MS, now)
        unit.record("lease.taken", lease("own", stream="s1", holder="ben", fence=2, expires_ms=now + 50))

    ground.store.run(ANNA, take_over)
    assert (held(ground, "own").holder, held(ground, "own").fence) == ("ben", 2)
    ground.store.engine.renew("anna", TTL_MS, now)
    assert held(ground, "own").expires_ms == now + 50
    assert ground.store.verify() == []


def test_renewing_nothing_is_nothing(ground: Ground) -> None:
    assert ground.engine.renew("nobody", 1, ground.clock.now_ms()) == 0


def test_a_unit_that_was_stopped_takes_nothing_that_was_renewed_meanwhile(ground: Ground) -> None:
    """By the moment it began the lease was held; that the clock has gone on since says nothing about the lease."""
    now = ground.clock.now_ms()
    put(ground.store, lease("own", stream="s1", holder="anna", fence=1, expires_ms=now + 10))

    def looks(unit: Unit) -> bool:
        known = unit.get(Lease, "own")
        ground.another().engine.renew("anna", TTL_MS, now)
        ground.clock.advance(1000)  # it is stopped here, after it has read
        return known is not None and known.holding.is_held(unit.now_ms())

    assert ground.store.run(ANNA, looks) is True


def test_names_that_anybody_calls_in_do_not_pile_up(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOLDERS", 3)
    for number in range(10):
        ground.store.renew(f"agent_{number}", TTL_MS)
    ground.store.renew("x" * (HOLDER + 1), TTL_MS)
    assert 0 < len(ground.store._renewed) <= 3
    assert all(len(name) <= HOLDER for name in ground.store._renewed)
