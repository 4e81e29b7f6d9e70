"""What conditions mean: each rule by itself, and all of them against an evaluator written another way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.guides.conditions import Incomparable, describe, holds, value_text, variables
from handrail.domain.guides.definition import Condition
from handrail.kernel.errors import InvalidParams


def condition(data: dict[str, Any]) -> Condition:
    return msgspec.convert(data, Condition)


def test_no_condition_and_an_empty_one_hold() -> None:
    assert holds(None, {})
    assert holds(Condition(), {})


@pytest.mark.parametrize("value", [True, 1, -1, 0.5, "x", "0", "false", " ", [], {}, [0], {"a": None}])
def test_a_variable_alone_holds_for_what_counts_as_true(value: object) -> None:
    assert holds(Condition(var="a"), {"a": value})


@pytest.mark.parametrize("value", [False, None, 0, 0.0, -0.0, ""])
def test_a_variable_alone_does_not_hold_for_what_counts_as_false(value: object) -> None:
    assert not holds(Condition(var="a"), {"a": value})


def test_a_missing_variable_alone_does_not_hold() -> None:
    assert not holds(Condition(var="a"), {"b": 1})


@pytest.mark.parametrize("operator", ["equals", "gt", "gte", "lt", "lte"])
def test_a_comparison_with_a_missing_variable_does_not_hold(operator: str) -> None:
    assert not holds(condition({"var": "a", operator: 0}), {})


def test_a_missing_variable_is_not_equal_to_anything() -> None:
    assert holds(Condition(var="a", not_equals=None), {})
    assert holds(Condition(var="a", not_equals=1), {})


def test_null_is_a_value_and_not_the_same_as_missing() -> None:
    assert holds(Condition(var="a", equals=None), {"a": None})
    assert not holds(Condition(var="a", equals=None), {})
    assert not holds(Condition(var="a", not_equals=None), {"a": None})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (0, -0.0),
        ("a", "a"),
        (True, True),
        ([1, [2.0]], [1.0, [2]]),
        ({"a": 1, "b": [None]}, {"b": [None], "a": 1.0}),
        (2**70, 2**70),
        ([], []),
        ({}, {}),
    ],
)
def test_json_values_that_are_equal(left: object, right: object) -> None:
    assert holds(Condition(var="a", equals=left), {"a": right})
    assert not holds(Condition(var="a", not_equals=left), {"a": right})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (False, 0),
        (False, None),
        ("1", 1),
        ("a", "A"),
        ("true", True),
        ([True], [1]),
        ({"a": False}, {"a": 0}),
        ([1], [1, 1]),
        ({"a": 1}, {"a": 1, "b": 1}),
        ([], {}),
        ("", None),
        (None, False),
        ([1, 2], [2, 1]),
        (2**53 + 1, float(2**53)),
    ],
)
def test_json_values_that_are_not_equal(left: object, right: object) -> None:
    for one, other in ((left, right), (right, left)):
        assert not holds(Condition(var="a", equals=one), {"a": other})
        assert holds(Condition(var="a", not_equals=one), {"a": other})


@pytest.mark.parametrize(
    ("operator", "below", "same", "above"),
    [("gt", False, False, True), ("gte", False, True, True), ("lt", True, False, False), ("lte", True, True, False)],
)
def test_numbers_are_compared(operator: str, below: bool, same: bool, above: bool) -> None:
    asked = condition({"var": "n", operator: 3})
    assert [holds(asked, {"n": n}) for n in (2, 2.999, 3, 3.0, 3.001, 4)] == [below, below, same, same, above, above]


@pytest.mark.parametrize("operator", ["gt", "gte", "lt", "lte"])
@pytest.mark.parametrize(
    ("value", "kind"),
    [("5", "text"), (True, "a boolean"), (None, "null"), ([3], "a list"), ({"a": 1}, "an object"), ("", "text")],
)
def test_what_is_no_number_cannot_be_compared_and_is_named(operator: str, value: object, kind: str) -> None:
    with pytest.raises(Incomparable) as caught:
        holds(condition({"var": "files", operator: 3}), {"files": value})
    found = caught.value
    assert (found.variable, found.value, found.operator, found.operand) == ("files", value, operator, 3)
    assert str(found) == (
        f'variable "files" is {value_text(value)} ({kind}) and cannot be compared by {operator} with 3'
    )


def test_an_incomparable_value_becomes_a_refusal_that_names_the_asker() -> None:
    refusal = Incomparable("files", "many", "gt", 3).as_refusal('step "plan"')
    assert isinstance(refusal, InvalidParams)
    assert refusal.message == (
        'The condition of step "plan" cannot be read: '
        'variable "files" is "many" (text) and cannot be compared by gt with 3.'
    )
    assert refusal.hint == 'Give "files" a number in context, or leave it out.'
    assert refusal.details == {"variable": "files", "value": '"many"', "operator": "gt", "operand": 3}


def test_all_operators_of_one_object_must_hold() -> None:
    between = condition({"var": "n", "gt": 1, "lt": 5, "not_equals": 3})
    assert [holds(between, {"n": n}) for n in (1, 2, 3, 4, 5)] == [False, True, False, True, False]


def test_a_variable_beside_and_or_not_must_hold_with_them() -> None:
    both = condition({"var": "a", "and": [{"var": "b"}]})
    assert holds(both, {"a": 1, "b": 1})
    assert not holds(both, {"b": 1})
    assert not holds(both, {"a": 1})
    all_three = condition({"and": [{"var": "a"}], "or": [{"var": "b"}, {"var": "c"}], "not": {"var": "d"}})
    assert holds(all_three, {"a": 1, "c": 1})
    assert not holds(all_three, {"a": 1, "c": 1, "d": 1})
    assert not holds(all_three, {"a": 1})


def test_an_empty_and_holds_and_an_empty_or_does_not() -> None:
    assert holds(condition({"and": []}), {})
    assert not holds(condition({"or": []}), {})


def test_a_dotted_name_is_a_key_and_not_a_path() -> None:
    assert not holds(Condition(var="a.b"), {"a": {"b": 1}})
    assert holds(Condition(var="a.b"), {"a.b": 1})


def test_reading_stops_when_the_answer_is_known() -> None:
    assert not holds(condition({"and": [{"var": "a", "equals": 1}, {"var": "n", "gt": 3}]}), {"n": "many"})
    assert holds(condition({"or": [{"var": "a"}, {"var": "n", "gt": 3}]}), {"a": 1, "n": "many"})


def test_variables_are_named_once_in_reading_order() -> None:
    asked = condition(
        {"var": "b", "and": [{"var": "a"}, {"var": "b"}], "or": [{"not": {"var": "d"}}], "not": {"var": "c", "gt": 1}}
    )
    assert variables(asked) == ("b", "a", "d", "c")
    assert variables(None) == ()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "always"),
        ({"var": "complexity", "equals": "large"}, 'complexity equals "large"'),
        (
            {"and": [{"var": "complexity", "equals": "large"}, {"var": "files", "gt": 3}]},
            'complexity equals "large" and files is more than 3',
        ),
        ({"var": "n", "gte": 1, "lte": 2.5}, "n is at least 1 and n is at most 2.5"),
        ({"var": "n", "lt": 1, "not_equals": None}, "n does not equal null and n is less than 1"),
        ({"var": "a"}, 'a is set (and not false, null, 0 or "")'),
        ({"or": [{"var": "a", "equals": 1}, {"var": "b", "equals": 2}]}, "a equals 1 or b equals 2"),
        (
            {"var": "c", "equals": 3, "or": [{"var": "a", "equals": 1}, {"var": "b", "gt": 2, "lt": 4}]},
            "c equals 3 and (a equals 1 or (b is more than 2 and b is less than 4))",
        ),
        ({"not": {"or": [{"var": "a", "equals": 1}, {"var": "b", "equals": 2}]}}, "not (a equals 1 or b equals 2)"),
        ({"or": [{"var": "a", "equals": [1]}]}, "a equals [1]"),
        ({"or": []}, "never"),
        ({"and": []}, "always"),
        ({"or": [{}, {"var": "a", "equals": 1}]}, "always or a equals 1"),
    ],
)
def test_a_condition_in_words(data: dict[str, Any], words: str) -> None:
    assert describe(condition(data)) == words


def test_no_condition_in_words() -> None:
    assert describe(None) == "always"


def test_a_long_value_is_cut_in_a_sentence() -> None:
    assert value_text("x" * 500) == '"' + "x" * 79 + "…"


# -- the same rules, written another way ------------------------------------------------------------------------------

SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, 2, -1.5, "", "a", "1"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["k", "l"]), inner, max_size=2),
    max_leaves=4,
)
NUMBERS = st.sampled_from([-1.5, 0, 1, 1.0, 2, 10])
NAMES = st.sampled_from(["a", "b", "c"])
CONTEXTS = st.dictionaries(NAMES, VALUES, max_size=3)
OPERATORS = {
    "equals": VALUES,
    "not_equals": VALUES,
    "gt": NUMBERS,
    "gte": NUMBERS,
    "lt": NUMBERS,
    "lte": NUMBERS,
}
LEAVES: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.fixed_dictionaries({"var": NAMES}, optional=OPERATORS)


def combined(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    extras = {"and": st.lists(inner, max_size=3), "or": st.lists(inner, max_size=3), "not": inner}
    return st.fixed_dictionaries({}, optional=extras) | st.builds(
        lambda leaf, rest: {**leaf, **rest}, LEAVES, st.fixed_dictionaries({}, optional=extras)
    )


CONDITIONS = st.recursive(LEAVES, combined, max_leaves=8)


def canonical(value: object) -> object:
    """A hashable form in which equal JSON values, and only these, are equal in Python."""
    if isinstance(value, bool) or value is None:
        return ("word", str(value))
    if isinstance(value, int | float):
        return ("number", value)
    if isinstance(value, list):
        return ("list", tuple(canonical(one) for one in value))
    if isinstance(value, dict):
        return ("object", frozenset((key, canonical(one)) for key, one in value.items()))
    return ("text", value)


def brute_force(data: dict[str, Any], context: dict[str, Any]) -> bool:
    """Every clause of the raw document, in order, as the docs state them."""
    clauses: list[Any] = []
    if "var" in data:
        there = data["var"] in context
        value = context.get(data["var"])
        if "equals" in data:
            clauses.append(lambda: there and canonical(value) == canonical(data["equals"]))
        if "not_equals" in data:
            clauses.append(lambda: not there or canonical(value) != canonical(data["not_equals"]))
        for operator, sign in (("gt", "__gt__"), ("gte", "__ge__"), ("lt", "__lt__"), ("lte", "__le__")):
            if operator in data:
                clauses.append(lambda sign=sign, bound=data[operator]: there and ordered(value, sign, bound))
        if set(data).isdisjoint(OPERATORS):
            clauses.append(lambda: there and canonical(value) not in FALSE_LIKE)
    for entry in data.get("and", []):
        clauses.append(lambda entry=entry: brute_force(entry, context))
    if "or" in data:
        clauses.append(lambda: next((True for entry in data["or"] if brute_force(entry, context)), False))
    if "not" in data:
        clauses.append(lambda: not brute_force(data["not"], context))
    return all(clause() for clause in clauses)


FALSE_LIKE = {canonical(value) for value in (False, None, 0, "")}


def ordered(value: object, sign: str, bound: float) -> bool:
    if type(value) not in (int, float):
        raise ZeroDivisionError
    return bool(getattr(float(value), sign)(float(bound)))  # type: ignore[arg-type]


@given(CONDITIONS, CONTEXTS)
def test_evaluation_agrees_with_the_brute_force_one(data: dict[str, Any], context: dict[str, Any]) -> None:
    try:
        expected: object = brute_force(data, context)
    except ZeroDivisionError:
        expected = Incomparable
    try:
        found: object = holds(condition(data), context)
    except Incomparable:
        found = Incomparable
    assert found == expected


@given(CONDITIONS, CONTEXTS, VALUES)
def test_only_the_named_variables_matter(data: dict[str, Any], context: dict[str, Any], other: object) -> None:
    asked = condition(data)
    named = variables(asked)
    relevant = {name: value for name, value in context.items() if name in named}
    try:
        expected = holds(asked, context)
    except Incomparable:
        return
    assert holds(asked, {**relevant, "unrelated": other}) is expected
    assert describe(asked)
