"""What a run has spent, and when that is too much."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.pipeline.budget import (
    LIMITS,
    Budget,
    Spent,
    check_budget,
    check_limits,
    exceeded,
    spent,
    stricter,
    warning_about,
)
from handrail.kernel.errors import InvalidParams, SettingInvalid


def entry(tokens: int = 0, duration_ms: int = 0, model: str = "") -> dict[str, Any]:
    return {"phase": "phase-1", "tokens": tokens, "duration_ms": duration_ms, "model": model, "at": 0}


def test_tokens_and_minutes_are_what_was_reported() -> None:
    have = spent([entry(1000, 90_000), entry(500, 30_000)], {})
    assert (have.tokens, have.minutes, have.money) == (1500, 2.0, 0.0)


def test_money_goes_by_the_model_and_the_star_stands_for_the_rest() -> None:
    log = [entry(2_000_000, model="opus"), entry(1_000_000, model="sonnet"), entry(1_000_000)]
    assert spent(log, {"opus": 10.0, "*": 3.0}).money == pytest.approx(26.0)


def test_a_model_without_a_price_is_named_and_not_taken_for_free_in_silence() -> None:
    have = spent([entry(5, model="opus"), entry(5), entry(0, model="haiku")], {"sonnet": 3.0})
    assert have.unpriced == ("opus", "a model without a name")
    assert "no price is known for opus" in warning_about(have, {"hard_money": 10.0})
    assert warning_about(have, {"hard_tokens": 1000}) == "", "nobody asked about money"


def test_a_limit_of_money_without_any_price_is_said_to_hold_nothing() -> None:
    assert "opus" in warning_about(spent([entry(5, model="opus")], {}), {"hard_money": 1.0})


@pytest.mark.parametrize(
    ("limits", "kind", "said"),
    [
        ({"hard_tokens": 1000.0}, "hard", "1,000 of 1,000 tokens are spent"),
        ({"hard_tokens": 1001.0}, "hard", ""),
        ({"soft_tokens": 1.0}, "hard", ""),
        ({"hard_minutes": 2.0}, "hard", "2.50 of 2 minutes are spent"),
        ({"hard_money": 0.0}, "hard", "0.75 of 0 money are spent"),
        ({"soft_money": 0.5}, "soft", "0.75 of 0.50 money are spent"),
        ({}, "hard", ""),
    ],
)
def test_a_limit_is_reached_when_all_of_it_is_spent(limits: dict[str, float], kind: str, said: str) -> None:
    assert exceeded(Spent(1000, 2.5, 0.75), limits, kind) == said


def test_a_warning_says_both_what_is_nearly_spent_and_what_is_not_counted() -> None:
    said = warning_about(Spent(10, 0, 0, ("opus",)), {"soft_tokens": 10, "hard_money": 5})
    assert said == "10 of 10 tokens are spent; no price is known for opus, so its tokens count as free"


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, True, "5", None])
def test_what_is_no_amount_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParams, match="hard_tokens is an amount of tokens"):
        check_limits({"hard_tokens": value})


def test_a_limit_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidParams, match=r"hard_token.*hard_tokens"):
        check_limits({"hard_token": 1})
    check_limits(dict.fromkeys(LIMITS, 0))


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget({"hard_token": 5.0}), "hard_tokens"),
        (Budget({"hard_tokens": math.nan}), "amount"),
        (Budget({}, {"opus": -3.0}), "opus"),
        (Budget({}, {"*": math.inf}), "no price"),
    ],
)
def test_settings_that_would_stop_nobody_are_refused(budget: Budget, said: str) -> None:
    with pytest.raises(SettingInvalid, match=said):
        check_budget(budget)


def test_who_asks_can_ask_for_less_and_not_for_more() -> None:
    here = {"hard_tokens": 1000.0, "soft_minutes": 5.0}
    assert stricter(here, {"hard_tokens": 5000.0, "soft_minutes": 1.0, "hard_money": 2.0}) == {
        "hard_tokens": 1000.0,
        "soft_minutes": 1.0,
        "hard_money": 2.0,
    }


amounts = st.dictionaries(st.sampled_from(LIMITS), st.floats(0, 1e9))


@given(here=amounts, asked=amounts)
def test_the_stricter_of_two_allows_nothing_that_one_forbids(here: dict[str, float], asked: dict[str, float]) -> None:
    both = stricter(here, asked)
    for name, value in (*here.items(), *asked.items()):
        assert both[name] <= value


@given(st.lists(st.tuples(st.integers(0, 10**9), st.sampled_from(["opus", "sonnet", ""])), max_size=20))
def test_more_work_never_costs_less(log: list[tuple[int, str]]) -> None:
    whole = [entry(tokens, tokens, model) for tokens, model in log]
    have = [spent(whole[:count], {"opus": 15.0, "*": 3.0}) for count in range(len(whole) + 1)]
    assert [one.money for one in have] == sorted(one.money for one in have)
    assert have[-1].tokens == sum(tokens for tokens, _ in log)
