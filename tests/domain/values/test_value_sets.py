"""The arithmetic of values: more risk is never better, conflicts turn things round, and what nobody stated is a
violation."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.values.value_sets import Impact, Relationship, Score, Value, Values, check_values, score
from handrail.kernel.errors import InvalidParams

IDS = ["a", "b", "c", "d"]
shares = st.sampled_from([0.0, 0.1, 0.25, 0.35, 0.5, 0.75, 1.0])
pairs = st.lists(
    st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)).filter(lambda ends: ends[0] != ends[1]), unique=True
)
impacts = st.builds(Impact, value=st.sampled_from(IDS), effect=st.sampled_from(["supports", "risks"]), severity=shares)


@st.composite
def stated(draw: st.DrawFn, kinds: tuple[str, ...] = ("supports", "conflicts")) -> Values:
    weights = st.sampled_from([0.0, 0.5, 1.0, 3.0, 100.0])
    return Values(
        values=[Value(id=key, weight=draw(weights), tolerance=draw(shares)) for key in IDS],
        relationships=[
            Relationship(source=one, target=other, kind=draw(st.sampled_from(kinds)), weight=draw(shares))
            for one, other in draw(pairs)
        ],
    )


def account(found: Score, key: str) -> float:
    return next(one.satisfaction for one in found.accounts if one.value.id == key)


@given(stated(), st.lists(impacts, max_size=6), st.sampled_from(IDS), shares)
def test_more_risk_never_satisfies_the_value_at_risk_more(
    values: Values, before: list[Impact], key: str, severity: float
) -> None:
    more = [*before, Impact(value=key, effect="risks", severity=severity)]
    was, now = score(values, before), score(values, more)
    assert account(now, key) <= account(was, key) + 1e-9
    violated = {one.value.id for one in was.violated}
    assert key not in violated or key in {one.value.id for one in now.violated}


@given(stated(kinds=("supports",)), st.lists(impacts, max_size=6), st.sampled_from(IDS), shares)
def test_where_nothing_conflicts_more_risk_never_raises_the_score(
    values: Values, before: list[Impact], key: str, severity: float
) -> None:
    more = [*before, Impact(value=key, effect="risks", severity=severity)]
    was, now = score(values, before), score(values, more)
    assert now.score <= was.score + 1e-9
    assert was.is_allowed or not now.is_allowed


@given(stated(), st.lists(impacts, max_size=6))
def test_a_score_lies_between_nothing_and_one_and_allows_no_violation(values: Values, given_: list[Impact]) -> None:
    found = score(values, given_)
    assert 0 <= found.score <= 1 + 1e-9
    assert not (found.is_allowed and found.violated)
    assert found.is_allowed is (found.score >= 0.6 - 1e-9 and not found.violated)
    for one in found.violated:
        assert one.primary is not None


@given(stated(), st.lists(impacts, max_size=6))
def test_conflicts_turn_support_and_risk_round(values: Values, given_: list[Impact]) -> None:
    """With every relationship the other way, what comes over it changes sides, and by as much."""
    turned = Values(
        values=values.values,
        relationships=[
            msgspec.structs.replace(one, kind="supports" if one.kind == "conflicts" else "conflicts")
            for one in values.relationships
        ],
    )
    for one, other in zip(score(values, given_).accounts, score(turned, given_).accounts, strict=True):
        passed = [each for each in one.contributions if each.over]
        mirrored = [each for each in other.contributions if each.over]
        assert [(each.amount, each.is_risk) for each in passed] == [
            (each.amount, not each.is_risk) for each in mirrored
        ]


@given(stated(), st.lists(impacts, max_size=4))
def test_an_unknown_value_is_never_allowed(values: Values, given_: list[Impact]) -> None:
    found = score(values, [*given_, Impact(value="unheard", effect="supports")], threshold=0)
    assert list(found.unknown) == ["unheard"]
    assert not found.is_allowed
    assert found.score == score(values, given_).score


def test_the_figures_of_an_example() -> None:
    values = Values(
        values=[Value(id="privacy", weight=2), Value(id="speed", weight=1), Value(id="rest", weight=1)],
        relationships=[
            Relationship(source="speed", target="privacy", kind="conflicts", weight=0.5),
            Relationship(source="privacy", target="rest", kind="supports", weight=0.25),
        ],
    )
    found = score(values, [Impact(value="speed", effect="supports", severity=0.8)])
    privacy = found.accounts[0]
    assert (privacy.risk, privacy.support, privacy.satisfaction) == (0.4, 0, 0.8)
    assert found.accounts[2].contributions == []  # one step far, and no further
    assert found.score == pytest.approx((2 * 0.8 + 1 + 1) / 4)
    assert found.is_allowed
    found = score(values, [Impact(value="privacy", effect="risks", severity=0.5)])
    assert [one.value.id for one in found.violated] == ["privacy"]
    assert (found.accounts[0].severity, found.accounts[2].risk) == (0.5, 0.25)


def test_a_tolerance_is_borne_and_no_more() -> None:
    values = Values(values=[Value(id="a", tolerance=0.3)])
    parts = [Impact(value="a", effect="risks", severity=0.1)] * 3
    assert not score(values, parts).violated
    assert score(values, [*parts, Impact(value="a", effect="risks", severity=0.01)]).violated


@pytest.mark.parametrize(
    ("values", "ends"),
    [(["a", "a"], []), (["a"], [("a", "b")]), (["a"], [("a", "a")]), (["a", "b"], [("a", "b"), ("a", "b")])],
)
def test_a_set_that_makes_no_sense_is_refused(values: list[str], ends: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidParams):
        check_values(
            Values(
                values=[Value(id=key) for key in values],
                relationships=[Relationship(source=one, target=other, kind="supports") for one, other in ends],
            )
        )
