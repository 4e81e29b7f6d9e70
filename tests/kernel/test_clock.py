"""A clock that stands still until it is told otherwise."""

from __future__ import annotations

from handrail.kernel.clock import Clock, FixedClock


def test_it_stands_still() -> None:
    clock: Clock = FixedClock(5)
    assert [clock.now_ms(), clock.now_ms()] == [5, 5]


def test_it_moves_when_told_to_also_backwards() -> None:
    clock = FixedClock(5)
    clock.advance(10)
    assert clock.now_ms() == 15
    clock.advance(-12)
    assert clock.now_ms() == 3
