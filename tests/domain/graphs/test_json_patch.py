"""JSON Patch: every example of RFC 6902's appendix A and of RFC 6901, and what must hold beside them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.graphs.json_patch import MOST_OPERATIONS, parts_of, patched, pointer_to
from handrail.kernel.errors import PatchFailed

FITTING: dict[str, tuple[Any, list[dict[str, Any]], Any]] = {
    "A.1 adding an object member": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux"}],
        {"baz": "qux", "foo": "bar"},
    ),
    "A.2 adding an array element": (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    "A.3 removing an object member": (
        {"baz": "qux", "foo": "bar"},
        [{"op": "remove", "path": "/baz"}],
        {"foo": "bar"},
    ),
    "A.4 removing an array element": (
        {"foo": ["bar", "qux", "baz"]},
        [{"op": "remove", "path": "/foo/1"}],
        {"foo": ["bar", "baz"]},
    ),
    "A.5 replacing a value": (
        {"baz": "qux", "foo": "bar"},
        [{"op": "replace", "path": "/baz", "value": "boo"}],
        {"baz": "boo", "foo": "bar"},
    ),
    "A.6 moving a value": (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    "A.7 moving an array element": (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    "A.8 testing a value: success": (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    "A.10 adding a nested member object": (
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    "A.11 ignoring unrecognized elements": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}],
        {"foo": "bar", "baz": "qux"},
    ),
    "A.14 ~ escape ordering": (
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": 10}],
        {"/": 9, "~1": 10},
    ),
    "A.16 adding an array value": (
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
        {"foo": ["bar", ["abc", "def"]]},
    ),
    "add replaces a member that is there": ({"a": 1}, [{"op": "add", "path": "/a", "value": 2}], {"a": 2}),
    "add with no path replaces everything": ({"a": 1}, [{"op": "add", "path": "", "value": [1]}], [1]),
    "replace with no path replaces everything": ({"a": 1}, [{"op": "replace", "path": "", "value": 7}], 7),
    "copy": (
        {"a": {"b": [1]}},
        [{"op": "copy", "from": "/a", "path": "/c"}, {"op": "add", "path": "/c/b/-", "value": 2}],
        {"a": {"b": [1]}, "c": {"b": [1, 2]}},
    ),
    "a copy and its original change apart": (
        {"a": {"b": 1}},
        [
            {"op": "add", "path": "/a/x", "value": 1},
            {"op": "copy", "from": "/a", "path": "/c"},
            {"op": "add", "path": "/a/y", "value": 2},
        ],
        {"a": {"b": 1, "x": 1, "y": 2}, "c": {"b": 1, "x": 1}},
    ),
    "moving something onto itself changes nothing": ({"a": 1}, [{"op": "move", "from": "/a", "path": "/a"}], {"a": 1}),
    "null is a value": ({}, [{"op": "add", "path": "/a", "value": None}], {"a": None}),
}
FAILING: dict[str, tuple[Any, list[dict[str, Any]], str]] = {
    "A.9 testing a value: error": ({"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "bar"}], "/baz is 'qux'"),
    "A.12 adding to a nonexistent target": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz/bat", "value": "qux"}],
        "there is nothing at /baz",
    ),
    "A.15 comparing strings and numbers": (
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": "10"}],
        "is 10, not '10'",
    ),
    "A.13 of a name twice only one is there": ({"foo": "bar"}, [{"op": "remove", "path": "/baz"}], "/baz"),
    "an index beyond the end": (
        {"a": [1]},
        [{"op": "add", "path": "/a/2", "value": 0}],
        "not a place in an array of 2",
    ),
    "the place after the end holds nothing": ({"a": [1]}, [{"op": "remove", "path": "/a/-"}], "not a place"),
    "a leading zero": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/01"}], "not a place"),
    "a negative index": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], "not a place"),
    "into itself": ({"a": {"b": 1}}, [{"op": "move", "from": "/a", "path": "/a/b/c"}], "moved into itself"),
    "below a text": ({"a": "b"}, [{"op": "add", "path": "/a/b", "value": 1}], "neither object nor array"),
    "no operation of this name": ({}, [{"op": "spam", "path": "/a"}], "op is 'spam'"),
    "no operation at all": ({}, [{"path": "/a"}], "op is None"),
    "no value": ({}, [{"op": "add", "path": "/a"}], "value is missing"),
    "no path": ({}, [{"op": "remove"}], "path is missing"),
    "no from": ({}, [{"op": "move", "path": "/a"}], "from is missing"),
    "a pointer without a slash": ({"a": 1}, [{"op": "remove", "path": "a"}], "does not begin with /"),
    "a ~ that stands for nothing": ({"a": 1}, [{"op": "remove", "path": "/~2"}], "stands for nothing"),
}


@pytest.mark.parametrize("name", FITTING)
def test_what_fits_is_done(name: str) -> None:
    value, operations, wanted = FITTING[name]
    before = copy.deepcopy(value)
    assert patched(value, operations) == wanted
    assert value == before, "what was given is never touched"


@pytest.mark.parametrize("name", FAILING)
def test_what_does_not_fit_is_refused_and_nothing_is_done(name: str) -> None:
    value, operations, why = FAILING[name]
    before = copy.deepcopy(value)
    with pytest.raises(PatchFailed) as refused:
        patched(value, [{"op": "test", "path": "", "value": before}, *operations])
    assert why in refused.value.message
    assert refused.value.details["index"] == 1
    assert value == before


def test_one_patch_has_so_many_operations() -> None:
    with pytest.raises(PatchFailed, match="1001 operations"):
        patched({}, [{"op": "test", "path": "", "value": {}}] * (MOST_OPERATIONS + 1))


POINTED = {
    "": [],
    "/foo": ["foo"],
    "/foo/0": ["foo", "0"],
    "/": [""],
    "/a~1b": ["a/b"],
    "/c%d": ["c%d"],
    "/e^f": ["e^f"],
    "/g|h": ["g|h"],
    "/i\\j": ["i\\j"],
    '/k"l': ['k"l'],
    "/ ": [" "],
    "/m~0n": ["m~n"],
}


@pytest.mark.parametrize("pointer", POINTED)
def test_pointers_of_rfc_6901(pointer: str) -> None:
    assert parts_of(pointer) == POINTED[pointer]
    assert pointer_to(POINTED[pointer]) == pointer


@given(st.lists(st.text(max_size=10), max_size=6))
def test_any_way_has_a_pointer_that_leads_back(parts: list[str]) -> None:
    assert parts_of(pointer_to(parts)) == parts


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, st.text(max_size=2), JSON)
def test_what_was_added_can_be_moved_tested_and_taken_away(value: Any, name: str, new: Any) -> None:
    whole = {"old": value}
    path = pointer_to(["x", name])
    operations = [
        {"op": "add", "path": "/x", "value": {}},
        {"op": "add", "path": path, "value": new},
        {"op": "move", "from": path, "path": "/y"},
        {"op": "test", "path": "/y", "value": new},
        {"op": "remove", "path": "/y"},
        {"op": "remove", "path": "/x"},
    ]
    assert patched(whole, operations) == {"old": value}
