"""The published schema against the parser: where a schema can say it, both say the same."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.guides.definition import GuideProblem, parse_guide
from handrail.domain.guides.schema import guide_json_schema
from handrail.outside.linear_matcher import LinearMatcher

Data = dict[str, Any]
VALIDATOR = jsonschema_rs.validator_for(guide_json_schema())

ONLY_THE_PARSER_SEES = (
    "is already the id of",
    "is above max",
    "the pattern does not compile",
    "there is no look-around",
    "this is not a JSON Schema",
    "nested more than",
    "this guide needs Handrail",
)
"""Reasons that no schema can give. Every other mistake must be refused by both."""

SMALL: Data = {
    "id": "a-guide",
    "name": "A guide",
    "description": "For tests.",
    "version": "1.0.0",
    "steps": [{"id": "first", "title": "First", "prompt": "Do it."}],
}
CONTAINS: Data = {"type": "contains", "message": "m", "value": "x"}
FULL: Data = {
    "$schema": "workflow.schema.json",
    "id": "full-guide",
    "name": "Full",
    "description": "Everything.",
    "version": "2.1.0-rc.1+5",
    "category": "review",
    "minServerVersion": "0.1.0",
    "preconditions": ["p", "q"],
    "clarificationPrompts": ["c"],
    "metaGuidance": ["m"],
    "steps": [
        {
            "id": "first",
            "title": "First",
            "prompt": "Do it.",
            "guidance": ["g", "g"],
            "askForFiles": True,
            "requireConfirmation": False,
            "runCondition": {
                "var": "a",
                "equals": None,
                "gt": 1,
                "and": [{"var": "b", "lte": 2.5}],
                "or": [],
                "not": {"var": "c", "not_equals": [1]},
            },
            "validationCriteria": {"or": [{"and": [CONTAINS]}, {"not": {"type": "length", "message": "m", "max": 9}}]},
        },
        {
            "id": "second",
            "title": "Second",
            "prompt": "Go on.",
            "validationCriteria": [
                {"type": "regex", "message": "m", "pattern": "a+", "flags": "i", "condition": {"var": "d"}},
                {"type": "schema", "message": "m", "schema": {"type": "object"}},
                {"type": "length", "message": "m", "min": 1, "max": 2},
            ],
        },
    ],
}


def refused_by_parser(data: object) -> str | None:
    try:
        parse_guide(data, matcher=LinearMatcher(), server_version="1.0.0")
    except GuideProblem as problem:
        return str(problem)
    return None


def assert_they_agree(data: object) -> None:
    reason = refused_by_parser(data)
    if VALIDATOR.is_valid(data):
        assert reason is None or any(words in reason for words in ONLY_THE_PARSER_SEES), reason
    else:
        assert reason is not None, next(iter(VALIDATOR.iter_errors(data))).message


def test_the_schema_is_one_and_an_object_at_the_top() -> None:
    schema = guide_json_schema()
    jsonschema_rs.meta.validate(schema)
    assert schema["$id"] == "workflow.schema.json"
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf"} & schema.keys()


def properties(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(schema, dict):
        if "additionalProperties" in schema:
            for name, found in schema["properties"].items():
                yield f"{path}.{name}", found
        for key, inner in schema.items():
            yield from properties(inner, f"{path}.{key}")


def test_every_field_is_described() -> None:
    found = dict(properties(guide_json_schema()))
    assert len(found) > 35
    assert not [path for path, field in found.items() if not field.get("description")]


def test_a_caller_may_change_its_copy() -> None:
    guide_json_schema()["properties"].clear()
    assert guide_json_schema()["properties"]


@pytest.mark.parametrize("data", [SMALL, FULL])
def test_both_accept_good_guides(data: Data) -> None:
    assert refused_by_parser(data) is None
    assert VALIDATOR.is_valid(data)


def changed(base: Data, *path: str | int, to: Any) -> Data:
    data = copy.deepcopy(base)
    target: Any = data
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = to
    return data


def in_step(key: str, value: Any) -> Data:
    return changed(SMALL, "steps", 0, key, to=value)


BAD: list[object] = [
    None,
    [],
    {},
    changed(SMALL, "extra", to=1),
    changed(SMALL, "id", to="ab"),
    changed(SMALL, "id", to="a" * 65),
    changed(SMALL, "id", to="ABC"),
    changed(SMALL, "name", to=""),
    changed(SMALL, "name", to="a" * 129),
    changed(SMALL, "description", to="a" * 513),
    changed(SMALL, "version", to="1.0"),
    changed(SMALL, "version", to=1.0),
    changed(SMALL, "version", to="1.0.0\n"),
    changed(SMALL, "version", to="1.0.0-" + "a" * 260),
    changed(SMALL, "minServerVersion", to="x"),
    changed(SMALL, "minServerVersion", to=None),
    changed(SMALL, "category", to=""),
    changed(SMALL, "category", to="a" * 65),
    changed(SMALL, "preconditions", to=["a", "a"]),
    changed(SMALL, "clarificationPrompts", to=[""]),
    changed(SMALL, "metaGuidance", to=["a" * 257]),
    changed(SMALL, "metaGuidance", to=None),
    changed(SMALL, "steps", to=[]),
    changed(SMALL, "steps", to=[None]),
    changed(SMALL, "$schema", to=3),
    in_step("prompt", ""),
    in_step("prompt", "a" * 8193),
    in_step("title", "a" * 129),
    in_step("guidance", "x"),
    in_step("guidance", [None]),
    in_step("askForFiles", 1),
    in_step("requireConfirmation", None),
    in_step("other", 1),
    in_step("runCondition", {"equals": 1}),
    in_step("runCondition", {"gt": 1}),
    in_step("runCondition", {"var": "a", "gt": "1"}),
    in_step("runCondition", {"var": "a", "gt": True}),
    in_step("runCondition", {"var": ""}),
    in_step("runCondition", {"and": {}}),
    in_step("runCondition", {"not": []}),
    in_step("runCondition", {"or": [{"lt": 1}]}),
    in_step("runCondition", None),
    in_step("validationCriteria", None),
    in_step("validationCriteria", "x"),
    in_step("validationCriteria", {}),
    in_step("validationCriteria", {"and": []}),
    in_step("validationCriteria", {"or": []}),
    in_step("validationCriteria", {"and": [CONTAINS], "or": [CONTAINS]}),
    in_step("validationCriteria", {"not": [CONTAINS]}),
    in_step("validationCriteria", [{"and": [CONTAINS]}]),
    in_step("validationCriteria", {"not": {**CONTAINS, "and": [CONTAINS]}}),
    in_step("validationCriteria", [{"type": "contains", "message": "m"}]),
    in_step("validationCriteria", [{"type": "contains", "value": "x"}]),
    in_step("validationCriteria", [{"type": "contains", "message": "m", "value": ""}]),
    in_step("validationCriteria", [{"type": "other", "message": "m"}]),
    in_step("validationCriteria", [{"type": "regex", "message": "m"}]),
    in_step("validationCriteria", [{"type": "regex", "message": "m", "pattern": "a", "flags": "z"}]),
    in_step("validationCriteria", [{"type": "regex", "message": "m", "pattern": "a", "value": "b"}]),
    in_step("validationCriteria", [{"type": "length", "message": "m"}]),
    in_step("validationCriteria", [{"type": "length", "message": "m", "min": -1}]),
    in_step("validationCriteria", [{"type": "length", "message": "m", "min": 1.5}]),
    in_step("validationCriteria", [{"type": "length", "message": "m", "min": True}]),
    in_step("validationCriteria", [{"type": "length", "message": "m", "min": 1, "schema": {}}]),
    in_step("validationCriteria", [{"type": "schema", "message": "m"}]),
    in_step("validationCriteria", [{"type": "schema", "message": "m", "schema": True}]),
    in_step("validationCriteria", [{**CONTAINS, "condition": {"lt": 3}}]),
]


@pytest.mark.parametrize("data", BAD)
def test_both_refuse_bad_guides(data: object) -> None:
    assert refused_by_parser(data) is not None
    assert not VALIDATOR.is_valid(data)


GOOD: list[Data] = [
    changed(SMALL, "id", to="abc"),
    changed(SMALL, "id", to="-0-" + "a" * 61),
    changed(SMALL, "name", to="é" * 128),
    changed(SMALL, "preconditions", to=[]),
    in_step("prompt", "🙂" * 8192),
    in_step("runCondition", {}),
    in_step("runCondition", {"var": "a", "equals": {"x": None}}),
    in_step("runCondition", {"and": [], "or": [], "not": {}}),
    in_step("validationCriteria", []),
    in_step("validationCriteria", {"not": {"not": CONTAINS}}),
    in_step("validationCriteria", [{"type": "length", "message": "m", "max": 0}]),
    in_step("validationCriteria", [{"type": "regex", "message": "m", "pattern": "a", "flags": ""}]),
]


@pytest.mark.parametrize("data", GOOD)
def test_both_accept_what_is_just_allowed(data: Data) -> None:
    assert refused_by_parser(data) is None
    assert VALIDATOR.is_valid(data)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, found in inner:
        yield (*path, part)
        yield from places(found, (*path, part))


KEYS = sorted({part for path in places(FULL) for part in path if isinstance(part, str)} | {"gte", "lt", "typo"})
VALUES: list[Any] = [None, True, 0, -1, 2.5, "", "abc", "1.0.0", [], ["x"], {}, {"var": "v"}, CONTAINS, [CONTAINS], "i"]


@given(st.data())
def test_schema_and_parser_agree_on_a_guide_with_random_changes(data: st.DataObject) -> None:
    document = copy.deepcopy(FULL)
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, last = data.draw(st.sampled_from(list(places(document))))
        target: Any = document
        for part in parents:
            target = target[part]
        kind = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if kind == "remove":
            del target[last]
        elif kind == "replace" or isinstance(target, list):
            target[last] = copy.deepcopy(data.draw(st.sampled_from(VALUES)))
        else:
            target[data.draw(st.sampled_from(KEYS))] = copy.deepcopy(data.draw(st.sampled_from(VALUES)))
        if not document:
            break
    assert_they_agree(document)
