"""How large a change is, and that the evidence which decided is named."""

from __future__ import annotations

import math

import pytest

from handrail.domain.pipeline.start import WORDS, Effort, detect


def test_what_a_person_said_decides_before_all_else() -> None:
    assert detect("S", 40, ["epic"], "rewrite the architecture") == Effort("S", "you asked for S")


@pytest.mark.parametrize(
    ("points", "effort"), [(0.5, "S"), (4, "S"), (4.5, "M"), (12, "M"), (13, "L"), (math.inf, "L")]
)
def test_story_points_decide_next(points: float, effort: str) -> None:
    assert detect(None, points, ["epic"], "typo") == Effort(effort, f"{points:g} story points")


@pytest.mark.parametrize("points", [None, 0, -3, math.nan])
def test_points_that_say_nothing_leave_it_to_the_labels(points: float | None) -> None:
    assert detect(None, points, ["bug", " Epic\x1f\n"], "typo") == Effort("L", "the label Epic")
    assert detect(None, points, ["Good First Issue"], "rewrite") == Effort("S", "the label Good First Issue")


def test_a_label_for_large_outweighs_one_for_small() -> None:
    assert detect(None, None, ["small", "size/XL"], "").effort == "L"


def test_words_are_weighed_and_named() -> None:
    assert detect(None, None, ["bug"], "Fix the typo") == Effort("S", "the words typo (-3)")
    assert detect(None, None, [], "Migration to a new service").effort == "L"
    assert detect(None, None, [], "a message queue for billing") == Effort(
        "M", "the words queue (+1), message (-1) balance each other"
    )
    assert detect(None, None, [], "") == Effort("M", "nothing suggests more or less")


def test_only_whole_words_count_and_each_once() -> None:
    assert detect(None, None, [], "labels, hidden, prototypos, messages").effort == "M"
    assert detect(None, None, [], "queue " * 50).effort == "M"
    assert set(WORDS) == {word.lower() for word in WORDS}
