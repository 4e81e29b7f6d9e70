"""What a run will probably cost, by those before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.pipeline.budget import Cost, estimate, percentile


def test_without_earlier_runs_there_is_no_estimate() -> None:
    assert estimate([]) is None
    assert estimate([Cost(0, 0), Cost(0, 0, 1.0)]) is None, "runs that reported nothing teach nothing"


def test_an_estimate_is_a_run_that_was() -> None:
    costs = [Cost(tokens, tokens * 60, tokens / 1000) for tokens in (100, 200, 300, 400, 5000)]
    assert estimate(costs) == {
        "runs": 5,
        "tokens": {"p50": 300, "p90": 5000},
        "minutes": {"p50": 0.3, "p90": 5.0},
        "money": {"p50": 0.3, "p90": 5.0},
    }


def test_money_is_estimated_by_the_runs_that_had_a_price() -> None:
    shown = estimate([Cost(100, 0, None), Cost(200, 0, 4.0)])
    assert shown is not None
    assert shown["money"] == {"p50": 4.0, "p90": 4.0}
    assert "money" not in (estimate([Cost(100, 0, None)]) or {})


@pytest.mark.parametrize(("share", "value"), [(0.5, 5), (0.9, 9), (0.0, 1), (1.0, 10)])
def test_a_percentile_is_the_smallest_that_enough_do_not_exceed(share: float, value: int) -> None:
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], share) == value


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200), st.sampled_from([0.5, 0.9]))
def test_every_percentile_keeps_its_promise(values: list[int], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    tenths = round(share * 10)
    assert 10 * sum(value <= found for value in values) >= tenths * len(values)
    smaller = [value for value in values if value < found]
    assert 10 * len(smaller) < tenths * len(values), "a smaller one would have done"
