"""JSON values are compared as JSON has it."""

from __future__ import annotations

from handrail.kernel.json_values import same_json


def test_true_is_not_one() -> None:
    assert not same_json(True, 1)
    assert not same_json({"a": [0]}, {"a": [False]})


def test_whole_numbers_have_one_value_and_members_no_order() -> None:
    assert same_json({"a": 1, "b": [1.0]}, {"b": [1], "a": 1})


def test_lists_have_an_order_and_a_length() -> None:
    assert not same_json([1, 2], [2, 1])
    assert not same_json([1], [1, None])
