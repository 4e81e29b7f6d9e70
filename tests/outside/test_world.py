"""Ids of one process sort in the order they were made, and are nobody else's."""

from __future__ import annotations

from handrail.kernel.clock import FixedClock
from handrail.outside.world import RandomIds, SystemClock


def test_ids_of_one_millisecond_sort_in_the_order_they_were_made() -> None:
    ids = RandomIds(FixedClock())
    made = [ids.new("task") for _ in range(2000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_a_clock_that_is_set_back_changes_nothing_about_the_order() -> None:
    clock = FixedClock()
    ids = RandomIds(clock)
    first = ids.new("task")
    clock.advance(-60_000)
    assert ids.new("task") > first
    clock.advance(120_000)
    assert ids.new("task") > first


def test_two_processes_do_not_make_the_same_ids() -> None:
    clock = FixedClock()
    one, other = RandomIds(clock), RandomIds(clock)
    assert not {one.new("wf") for _ in range(500)} & {other.new("wf") for _ in range(500)}


def test_the_clock_tells_milliseconds_since_the_epoch() -> None:
    assert SystemClock().now_ms() > 1_700_000_000_000
