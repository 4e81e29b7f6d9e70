"""Leases: one holder at a time, and a fence that tells a late holder apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.work.lease import FREE, Holding, acquire, holds, release, renew


def test_a_free_lease_is_taken_until_its_time_is_up() -> None:
    taken = acquire(FREE, "anna", 100, 50)
    assert taken == Holding("anna", 1, 150)
    assert taken.is_held(149)
    assert not taken.is_held(150)


def test_another_does_not_get_what_is_held() -> None:
    assert acquire(Holding("anna", 1, 150), "ben", 149, 50) is None


def test_another_gets_what_has_run_out_under_a_new_fence() -> None:
    assert acquire(Holding("anna", 1, 150), "ben", 150, 50) == Holding("ben", 2, 200)


def test_asking_again_renews_and_keeps_the_fence() -> None:
    assert acquire(Holding("anna", 1, 150), "anna", 120, 50) == Holding("anna", 1, 170)


def test_asking_again_after_it_ran_out_is_a_new_holding() -> None:
    assert acquire(Holding("anna", 1, 150), "anna", 150, 50) == Holding("anna", 2, 200)


def test_a_shorter_time_never_shortens_a_holding() -> None:
    assert acquire(Holding("anna", 1, 150), "anna", 100, 10) == Holding("anna", 1, 150)
    assert renew(Holding("anna", 1, 150), "anna", 1, 100, 10) == Holding("anna", 1, 150)


def test_only_the_holder_renews_under_its_fence_in_time() -> None:
    lease = Holding("anna", 3, 150)
    assert renew(lease, "anna", 3, 149, 50) == Holding("anna", 3, 199)
    assert renew(lease, "anna", 2, 149, 50) is None
    assert renew(lease, "ben", 3, 149, 50) is None
    assert renew(lease, "anna", 3, 150, 50) is None


def test_a_released_lease_is_free_and_remembers_its_fence() -> None:
    free = release(Holding("anna", 3, 150), "anna", 3)
    assert free == Holding(None, 3, 0)
    assert acquire(free, "ben", 0, 50) == Holding("ben", 4, 50)


def test_only_the_holder_releases_also_when_it_has_run_out() -> None:
    lease = Holding("anna", 3, 150)
    assert release(lease, "ben", 3) is None
    assert release(lease, "anna", 2) is None
    assert release(Holding("anna", 3, 0), "anna", 3) == Holding(None, 3, 0)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["acquire", "renew", "release"]),
            st.sampled_from(["anna", "ben", "eve"]),
            st.integers(0, 30),
        ),
        max_size=30,
    )
)
def test_at_no_time_do_two_hold_it_and_no_fence_is_given_twice(steps: list[tuple[str, str, int]]) -> None:
    """Every holder keeps the fence it was last given, right or wrong; at most one of them may write with it."""
    lease, now = FREE, 0
    fences: dict[str, int] = {}
    given: list[int] = []
    for action, who, pause in steps:
        now += pause
        changed: Holding | None
        if action == "acquire":
            changed = acquire(lease, who, now, 20)
            if changed is not None and changed.fence != lease.fence:
                given.append(changed.fence)
            if changed is not None:
                fences[who] = changed.fence
        elif action == "renew":
            changed = renew(lease, who, fences.get(who, 0), now, 20)
        else:
            changed = release(lease, who, fences.get(who, 0))
        assert changed is None or changed.fence >= lease.fence
        lease = changed or lease
        assert len([name for name, fence in fences.items() if holds(lease, name, fence, now)]) <= 1
    assert given == sorted(set(given))
