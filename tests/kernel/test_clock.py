"""A clock that stands still until it is told otherwise, and moments as text."""

from __future__ import annotations

from handrail.kernel.clock import Clock, FixedClock, iso_time


def test_it_stands_still() -> None:
    clock: Clock = FixedClock(5)
    assert [clock.now_ms(), clock.now_ms()] == [5, 5]


def test_it_moves_when_told_to_also_backwards() -> None:
    clock = FixedClock(5)
    clock.advance(10)
    assert clock.now_ms() == 15
    clock.advance(-12)
    assert clock.now_ms() == 3


def test_a_moment_is_written_in_utc_to_the_second() -> None:
    assert iso_time(1_700_000_000_999) == "2023-11-14T22:13:20Z"
