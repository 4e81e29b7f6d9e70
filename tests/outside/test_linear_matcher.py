"""The engines behind the Matcher: hostile patterns finish, nothing is fetched, and refusals say what to do instead."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.guides.definition import Matcher
from handrail.outside.linear_matcher import COMPILED_MAX, LinearMatcher, _compiled_pattern

MATCHER: Matcher = LinearMatcher()


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_an_evil_pattern_finishes_on_a_long_text(pattern: str) -> None:
    assert MATCHER.pattern_problem(pattern, "") is None
    assert MATCHER.matches(pattern, "", "a" * 100_000 + "!") is (pattern == "(.*)*$")


@pytest.mark.parametrize("pattern", ["a(?=b)", "(?!a)b", "(?<=a)b", "(?<!a)b", "(?>a)", r"(a)\1", r"(?P<n>a)\k<n>"])
def test_what_needs_backtracking_is_refused_with_a_way_out(pattern: str) -> None:
    problem = MATCHER.pattern_problem(pattern, "")
    assert problem is not None
    assert "there is no look-around and there are no back-references" in problem
    assert 'use several rules combined with "and" and "not" instead' in problem


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "the pattern does not compile: missing )"),
        ("[", "the pattern does not compile: missing ]"),
        ("*a", "the pattern does not compile"),
        ("a{1001}", "may be repeated at most 1000 times"),
        ("((a{100}){100}){100}", "may be repeated at most 1000 times"),
        (r"\pL{1000}", "too large when compiled"),
        (r"a\Z", r"write \z for the end"),
        (r"\u20AC", r"write \x{20AC}"),
        (r"\y", "means nothing in a pattern (RE2 syntax)"),
    ],
)
def test_a_pattern_that_cannot_be_used_says_why(pattern: str, words: str) -> None:
    problem = MATCHER.pattern_problem(pattern, "")
    assert problem is not None
    assert words in problem


@pytest.mark.parametrize(
    "pattern", ["a", r"\bword\b", "(?i)x", "(?P<name>a)", "(?<name>a)", r"\p{Greek}", "[^a-z]{1,5}?", "é"]
)
def test_ordinary_patterns_have_no_problem(pattern: str) -> None:
    assert MATCHER.pattern_problem(pattern, "gimsuy") is None


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "found"),
    [
        ("b", "", "abc", True),
        ("^b", "", "a\nb", False),
        ("^b", "m", "a\nb", True),
        ("a$", "", "a\n", False),
        ("A|B", "i", "xb", True),
        ("a.c", "", "a\nc", False),
        ("a.c", "s", "a\nc", True),
        ("^.$", "", "é", True),
        ("^.$", "", "🙂", True),
        ("É", "i", "é", True),
        ("a", "guy", "A", False),
        ("x", "", "", False),
        ("x", "", "half a pair \ud800 x", True),
    ],
)
def test_patterns_are_found_with_the_flags_that_act(pattern: str, flags: str, text: str, found: bool) -> None:
    assert MATCHER.matches(pattern, flags, text) is found


def test_compiled_patterns_are_kept_in_bounds() -> None:
    for number in range(COMPILED_MAX * 2):
        assert MATCHER.pattern_problem(f"bounded{number}", "") is None
    info = _compiled_pattern.cache_info()
    assert info.currsize == info.maxsize == COMPILED_MAX


@given(st.text(max_size=30), st.text(alphabet="gimsuy", max_size=6), st.text(max_size=30))
def test_no_pattern_raises(pattern: str, flags: str, text: str) -> None:
    if MATCHER.pattern_problem(pattern, flags) is None:
        assert MATCHER.matches(pattern, flags, text) in {True, False}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"pattern": "^(a+)+$"},
    ],
)
def test_ordinary_schemas_have_no_problem(schema: dict[str, Any]) -> None:
    assert MATCHER.schema_problem(schema) is None
    assert isinstance(MATCHER.schema_errors(schema, "x"), tuple)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "strin"}, 'this is not a JSON Schema at type: there is no type "strin"; types: string, number'),
        ({"properties": {"a": {"type": "objct"}}}, "at properties.a.type"),
        ({"type": "strin"}, "did you mean string?"),
        ({"properties": 5}, 'this is not a JSON Schema at properties: 5 is not of type "object"'),
        ({"minLength": -1}, "this is not a JSON Schema at minLength"),
        ({"$ref": "#/$defs/nowhere"}, "this is not a JSON Schema"),
        ({"pattern": "a(?=b)"}, "the pattern at pattern cannot be used"),
        ({"patternProperties": {r"(a)\1": {}}}, "there is no look-around and there are no back-references"),
        ({"$schema": "https://example.com/mine"}, "Unknown meta-schema"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why(schema: dict[str, Any], words: str) -> None:
    problem = MATCHER.schema_problem(schema)
    assert problem is not None
    assert words in problem


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/schema.json", "https://example.com/x", "file:///etc/hostname", "other.json"]
)
def test_a_reference_out_of_the_schema_is_a_problem_and_nothing_is_fetched(reference: str) -> None:
    problem = MATCHER.schema_problem({"properties": {"a": {"$ref": reference}}})
    assert problem is not None
    assert "is outside this schema and nothing is fetched: copy it under $defs and refer to that" in problem
    assert reference.rpartition("/")[2] in problem


def nested_schema(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def test_a_schema_nested_too_deep_is_a_problem() -> None:
    assert MATCHER.schema_problem(nested_schema(50)) is None
    assert MATCHER.schema_problem(nested_schema(5000)) is not None


def test_schema_errors_say_path_and_reason() -> None:
    schema = {"required": ["b"], "properties": {"a": {"items": {"type": "string"}}}}
    assert MATCHER.schema_errors(schema, {"a": ["x", 1], "b": 1}) == ('a[1]: 1 is not of type "string"',)
    assert MATCHER.schema_errors(schema, {}) == ('top level: "b" is a required property',)
    assert MATCHER.schema_errors(schema, {"b": None}) == ()


def test_at_most_five_errors_come_and_none_of_them_is_long() -> None:
    found = MATCHER.schema_errors({"items": {"type": "integer"}}, ["x" * 10_000] * 50)
    assert len(found) == 5
    assert all(len(error) < 300 for error in found)


def test_a_huge_output_gets_its_first_error_only() -> None:
    """The engine lists all errors or one; a hundred thousand of them took more than a second."""
    assert MATCHER.schema_errors({"items": {"type": "string"}}, list(range(100_000))) == (
        '[0]: 0 is not of type "string"',
    )
    assert MATCHER.schema_errors({"items": {"type": "integer"}}, list(range(100_000))) == ()


def test_an_output_nested_too_deep_is_an_error_and_no_crash() -> None:
    deep: Any = []
    for _ in range(600):
        deep = [deep]
    assert len(MATCHER.schema_errors({"type": "string"}, deep)) == 1


def test_an_evil_pattern_in_a_schema_finishes() -> None:
    schema = {"pattern": "^(a+)+$"}
    assert MATCHER.schema_problem(schema) is None
    assert len(MATCHER.schema_errors(schema, "a" * 100_000 + "!")) == 1


def test_the_engines_are_imported_when_first_used() -> None:
    code = (
        "import sys; from handrail.outside.linear_matcher import LinearMatcher; m = LinearMatcher(); "
        "assert not {'re2', 'jsonschema_rs'} & set(sys.modules); m.matches('a', '', 'a'); "
        "assert 're2' in sys.modules and 'jsonschema_rs' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
