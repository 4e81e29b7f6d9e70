"""What a guide file may say: every limit from both sides, and what an author is told about a mistake."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.guides.definition import (
    DEPTH_MAX,
    NESTING_MAX,
    Composition,
    Condition,
    Guide,
    GuideProblem,
    Path,
    Rule,
    guide_to_wire,
    parse_guide,
    path_text,
    step_to_wire,
    valid_id,
)
from handrail.outside.linear_matcher import LinearMatcher

Data = dict[str, Any]


def step(**changes: Any) -> Data:
    return {"id": "first", "title": "First", "prompt": "Do it.", **changes}


def guide(**changes: Any) -> Data:
    return {
        "id": "a-guide",
        "name": "A guide",
        "description": "For tests.",
        "version": "1.0.0",
        "steps": [step()],
        **changes,
    }


def parse(data: object, server_version: str = "1.0.0") -> Guide:
    return parse_guide(data, matcher=LinearMatcher(), server_version=server_version)


def problem(data: object, server_version: str = "1.0.0") -> tuple[Path, str]:
    with pytest.raises(GuideProblem) as caught:
        parse(data, server_version)
    return caught.value.path, caught.value.reason


def without(data: Data, key: str) -> Data:
    return {name: value for name, value in data.items() if name != key}


def with_rule(**rule: Any) -> Data:
    return guide(steps=[step(validationCriteria=[{"message": "No.", **rule}])])


def with_condition(condition: object) -> Data:
    return guide(steps=[step(runCondition=condition)])


def with_criteria(criteria: object) -> Data:
    return guide(steps=[step(validationCriteria=criteria)])


RULE = {"type": "contains", "message": "No.", "value": "x"}


def test_the_smallest_guide_has_the_defaults() -> None:
    found = parse(guide())
    assert (found.category, found.min_server_version, found.preconditions) == ("general", None, ())
    only = found.steps[0]
    assert (only.guidance, only.ask_for_files, only.require_confirmation) == ((), False, False)
    assert (only.run_condition, only.validation_criteria) == (None, None)


def test_everything_the_format_has_is_read_and_written_back_as_it_was() -> None:
    data = guide(
        category="review",
        minServerVersion="0.9.0",
        preconditions=["One", "Two"],
        clarificationPrompts=["What?"],
        metaGuidance=["Always."],
        steps=[
            step(
                guidance=["PREP: a", ""],
                askForFiles=True,
                requireConfirmation=True,
                runCondition={
                    "var": "size",
                    "not_equals": None,
                    "gt": 1,
                    "and": [{"var": "a", "equals": {"k": [1, None]}}],
                    "or": [],
                    "not": {"var": "b", "gte": 1, "lte": 2.5, "lt": 3},
                },
                validationCriteria={
                    "or": [
                        {"and": [RULE, {"type": "regex", "message": "m", "pattern": "a+", "flags": "gimsuy"}]},
                        {"not": {"type": "length", "message": "m", "min": 1, "max": 2}},
                        {"type": "schema", "message": "m", "schema": {"type": "object"}, "condition": {"var": "c"}},
                    ]
                },
            ),
            step(id="second", validationCriteria=[RULE]),
        ],
    )
    found = parse(data)
    assert guide_to_wire(found) == data
    assert step_to_wire(found.steps[1]) == data["steps"][1]
    criteria = found.steps[0].validation_criteria
    assert isinstance(criteria, Composition)
    assert criteria.or_ is not None
    assert [type(branch) for branch in criteria.or_] == [Composition, Composition, Rule]


def test_the_wire_form_always_has_a_category_and_no_other_default() -> None:
    assert guide_to_wire(parse(guide(preconditions=[], steps=[step(askForFiles=False, guidance=[])]))) == {
        **guide(),
        "category": "general",
    }


def test_an_editors_schema_key_is_accepted_and_forgotten() -> None:
    assert "$schema" not in guide_to_wire(parse(guide(**{"$schema": "workflow.schema.json"})))
    assert problem(guide(**{"$schema": 3})) == (("$schema",), "must be text, not a number")


@pytest.mark.parametrize("key", ["id", "name", "description", "version", "steps"])
def test_a_missing_key_of_the_guide_is_named(key: str) -> None:
    assert problem(without(guide(), key)) == ((), f'the key "{key}" is missing')


@pytest.mark.parametrize("key", ["id", "title", "prompt"])
def test_a_missing_key_of_a_step_is_named(key: str) -> None:
    assert problem(guide(steps=[without(step(), key)])) == (("steps", 0), f'the key "{key}" is missing')


@pytest.mark.parametrize(
    ("data", "path", "words"),
    [
        (guide(stepz=[]), ("stepz",), 'there is no key "stepz" here; did you mean steps?'),
        (guide(steps=[step(promt="x")]), ("steps", 0, "promt"), "did you mean prompt?"),
        (guide(qqq=1), ("qqq",), "allowed here: id, name, description, version, category"),
        (with_condition({"var": "a", "equal": 1}), ("steps", 0, "runCondition", "equal"), "did you mean equals?"),
        (
            with_condition({"and": [{"not": {"va": "a"}}]}),
            ("steps", 0, "runCondition", "and", 0, "not", "va"),
            "did you mean var?",
        ),
        (
            with_rule(type="contains", valu="x"),
            ("steps", 0, "validationCriteria", 0, "valu"),
            "did you mean value?",
        ),
        (
            with_rule(type="contains", value="x", condition={"vra": 1}),
            ("steps", 0, "validationCriteria", 0, "condition", "vra"),
            "did you mean var?",
        ),
        (
            with_criteria({"and": [RULE, {**RULE, "mesage": ""}]}),
            ("steps", 0, "validationCriteria", "and", 1, "mesage"),
            "did you mean message?",
        ),
        (
            with_criteria({"xor": [RULE]}),
            ("steps", 0, "validationCriteria", "xor"),
            "did you mean or?",
        ),
        (
            with_criteria([{"and": [RULE]}]),
            ("steps", 0, "validationCriteria", 0, "and"),
            'a list holds rules only; to combine them, write one object with "and" in place of the list',
        ),
    ],
)
def test_an_unknown_key_is_named_where_it_stands_with_a_guess(data: Data, path: Path, words: str) -> None:
    found_path, reason = problem(data)
    assert found_path == path
    assert words in reason


@pytest.mark.parametrize(
    ("data", "path", "reason"),
    [
        (guide(version=1.0), ("version",), "must be text, not a number: put it in quotes"),
        (guide(name=True), ("name",), "must be text, not a boolean: put it in quotes"),
        (guide(name=["x"]), ("name",), "must be text, not a list"),
        (guide(minServerVersion=2), ("minServerVersion",), "must be text, not a number: put it in quotes"),
        (guide(steps={}), ("steps",), "must be a list, not an object"),
        (guide(steps=["x"]), ("steps", 0), "must be an object, not text"),
        (guide(preconditions="x"), ("preconditions",), "must be a list, not text"),
        (guide(steps=[step(askForFiles="yes")]), ("steps", 0, "askForFiles"), "must be true or false, not text"),
        (
            guide(steps=[step(guidance=[1])]),
            ("steps", 0, "guidance", 0),
            "must be text, not a number: put it in quotes",
        ),
        (with_condition([]), ("steps", 0, "runCondition"), "must be an object, not a list"),
        (with_condition({"var": "a", "gt": "3"}), ("steps", 0, "runCondition", "gt"), "must be a number, not text"),
        (
            with_condition({"var": "a", "lte": True}),
            ("steps", 0, "runCondition", "lte"),
            "must be a number, not a boolean",
        ),
        (with_criteria("x"), ("steps", 0, "validationCriteria"), "must be an object or a list, not text"),
        (with_criteria({"not": "x"}), ("steps", 0, "validationCriteria", "not"), "must be an object, not text"),
        (with_criteria({"and": RULE}), ("steps", 0, "validationCriteria", "and"), "must be a list, not an object"),
        (with_criteria(["x"]), ("steps", 0, "validationCriteria", 0), "must be an object, not text"),
        (
            with_rule(type="length", min=1.5),
            ("steps", 0, "validationCriteria", 0, "min"),
            "must be a whole number, not a number",
        ),
        (
            with_rule(type="schema", schema=True),
            ("steps", 0, "validationCriteria", 0, "schema"),
            "must be an object, not a boolean",
        ),
        (with_rule(type="length", min=-1), ("steps", 0, "validationCriteria", 0, "min"), "must be 0 or more"),
        (
            with_rule(type="contain", value="x"),
            ("steps", 0, "validationCriteria", 0, "type"),
            "must be one of contains, regex, length, schema; did you mean contains?",
        ),
    ],
)
def test_a_value_of_the_wrong_kind_is_explained(data: Data, path: Path, reason: str) -> None:
    assert problem(data) == (path, reason)


@pytest.mark.parametrize(
    ("data", "said"),
    [(None, "the file is empty"), ([], "the file holds a list"), ("x", "the file holds text"), (3, "holds a number")],
)
def test_a_document_that_is_no_object_is_no_guide(data: object, said: str) -> None:
    path, reason = problem(data)
    assert path == ()
    assert said in reason
    assert "a guide is an object with id, name, description, version and steps" in reason


@pytest.mark.parametrize(
    ("make", "shortest", "longest", "path"),
    [
        (lambda text: guide(id=text), 3, 64, ("id",)),
        (lambda text: guide(name=text), 1, 128, ("name",)),
        (lambda text: guide(description=text), 1, 512, ("description",)),
        (lambda text: guide(category=text), 1, 64, ("category",)),
        (lambda text: guide(preconditions=[text]), 1, 256, ("preconditions", 0)),
        (lambda text: guide(clarificationPrompts=[text]), 1, 256, ("clarificationPrompts", 0)),
        (lambda text: guide(metaGuidance=[text]), 1, 256, ("metaGuidance", 0)),
        (lambda text: guide(steps=[step(id=text)]), 3, 64, ("steps", 0, "id")),
        (lambda text: guide(steps=[step(title=text)]), 1, 128, ("steps", 0, "title")),
        (lambda text: guide(steps=[step(prompt=text)]), 1, 8192, ("steps", 0, "prompt")),
    ],
)
def test_texts_have_a_shortest_and_a_longest_length(make: Any, shortest: int, longest: int, path: Path) -> None:
    parse(make("a" * shortest))
    parse(make("a" * longest))
    assert problem(make("a" * (longest + 1))) == (
        path,
        f"has {longest + 1} characters; at most {longest} are allowed",
    )
    too_short = (
        "must not be empty" if shortest == 1 else f"has {shortest - 1} characters; at least {shortest} are needed"
    )
    assert problem(make("a" * (shortest - 1))) == (path, too_short)


@pytest.mark.parametrize("bad", ["Abc", "a_b", "a b", "äbc", "abc\n", "a.b"])
def test_ids_have_small_letters_digits_and_hyphens_only(bad: str) -> None:
    reason = 'may only have the small letters a-z, digits and "-"'
    assert problem(guide(id=bad)) == (("id",), reason)
    assert problem(guide(steps=[step(id=bad)])) == (("steps", 0, "id"), reason)
    assert not valid_id(bad)


@given(st.text(alphabet="abcxyz019-", min_size=3, max_size=64))
def test_every_text_of_allowed_characters_is_an_id(text: str) -> None:
    assert parse(guide(id=text)).id == text
    assert valid_id(text)


@pytest.mark.parametrize("bad", [None, 3, "ab", "a" * 65, ""])
def test_what_is_no_id_is_not_valid_as_one(bad: object) -> None:
    assert not valid_id(bad)


@pytest.mark.parametrize(
    "good", ["0.0.0", "1.2.3", "10.20.30", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-0.3.7", "1.0.0+b.01", "1.0.0--1+x-y"]
)
def test_versions_are_semver(good: str) -> None:
    assert parse(guide(version=good)).version == good


@pytest.mark.parametrize(
    "bad", ["1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0-a..b", "1.0.0+", "1.0.0\n", "1.0.0 ", "١.0.0"]
)
def test_what_is_not_semver_is_no_version(bad: str) -> None:
    assert problem(guide(version=bad)) == (
        ("version",),
        'must be a version of three numbers such as "1.0.0" (SemVer 2)',
    )


@pytest.mark.parametrize(
    ("needed", "server"),
    [
        ("1.0.0", "1.0.0"),
        ("0.9.9", "1.0.0"),
        ("1.9.0", "1.10.0"),
        ("1.0.0-alpha", "1.0.0"),
        ("1.0.0-alpha.1", "1.0.0-alpha.beta"),
        ("1.0.0-2", "1.0.0-10"),
        ("1.0.0-rc", "1.0.0-rc.1"),
        ("1.0.0+other", "1.0.0"),
        ("0.1.0", "0.1.0.dev3"),
    ],
)
def test_a_guide_is_read_by_a_server_that_is_new_enough(needed: str, server: str) -> None:
    assert parse(guide(minServerVersion=needed), server).min_server_version == needed


@pytest.mark.parametrize(
    ("needed", "server"),
    [("1.0.1", "1.0.0"), ("2.0.0", "1.99.99"), ("1.0.0", "1.0.0-rc.1"), ("1.10.0", "1.9.0"), ("1.0.0-b", "1.0.0-a")],
)
def test_a_guide_for_a_newer_server_says_which_one_it_needs(needed: str, server: str) -> None:
    assert problem(guide(minServerVersion=needed), server) == (
        ("minServerVersion",),
        f"this guide needs Handrail {needed} or newer; this is {server}",
    )


def test_a_guide_has_at_least_one_step() -> None:
    assert problem(guide(steps=[])) == (("steps",), "must not be empty")


def test_step_ids_are_used_once() -> None:
    data = guide(steps=[step(), step(id="second"), step()])
    assert problem(data) == (("steps", 2, "id"), '"first" is already the id of steps[0]')


@pytest.mark.parametrize("key", ["preconditions", "clarificationPrompts", "metaGuidance"])
def test_the_same_note_twice_is_a_mistake(key: str) -> None:
    assert problem(guide(**{key: ["a", "b", "a"]})) == ((key, 2), f"says the same as {key}[0]; keep one")


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (guide(category=None), ("category",)),
        (guide(minServerVersion=None), ("minServerVersion",)),
        (guide(steps=[step(runCondition=None)]), ("steps", 0, "runCondition")),
        (guide(steps=[step(validationCriteria=None)]), ("steps", 0, "validationCriteria")),
        (with_condition({"and": [None]}), ("steps", 0, "runCondition", "and", 0)),
        (with_rule(type="schema", schema=None), ("steps", 0, "validationCriteria", 0, "schema")),
    ],
)
def test_null_is_no_value_outside_of_equality(data: Data, path: Path) -> None:
    assert problem(data) == (path, "has no value: give it one or leave the key out")


def test_null_is_a_value_to_compare_with() -> None:
    found = parse(with_condition({"var": "a", "equals": None})).steps[0].run_condition
    assert found == Condition(var="a", equals=None)
    assert parse(with_condition({"var": "a", "not_equals": {"schema": None}})).steps[0].run_condition is not None


@pytest.mark.parametrize("operator", ["equals", "not_equals", "gt", "gte", "lt", "lte"])
def test_an_operator_needs_a_variable(operator: str) -> None:
    path, reason = problem(with_condition({"and": [{operator: 1}]}))
    assert path == ("steps", 0, "runCondition", "and", 0, operator)
    assert reason == f'needs "var" beside "{operator}": the variable to compare'


def test_operators_may_be_combined() -> None:
    assert parse(with_condition({"var": "a", "gt": 1, "lt": 5, "or": [{"var": "b"}]})).steps[0].run_condition


def nested(levels: int, wrap: str, core: Data) -> Data:
    for _ in range(levels):
        core = {wrap: core} if wrap == "not" else {wrap: [core]}
    return core


@pytest.mark.parametrize("wrap", ["and", "or", "not"])
def test_conditions_nest_to_a_bound(wrap: str) -> None:
    parse(with_condition(nested(NESTING_MAX - 1, wrap, {"var": "a"})))
    _, reason = problem(with_condition(nested(NESTING_MAX, wrap, {"var": "a"})))
    assert reason == f"conditions are nested more than {NESTING_MAX} deep"


@pytest.mark.parametrize("wrap", ["and", "or", "not"])
def test_compositions_nest_to_a_bound(wrap: str) -> None:
    parse(with_criteria(nested(NESTING_MAX, wrap, RULE)))
    _, reason = problem(with_criteria(nested(NESTING_MAX + 1, wrap, RULE)))
    assert reason == f"compositions are nested more than {NESTING_MAX} deep"


def test_a_document_nested_without_end_is_refused_and_not_followed() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    path, reason = problem(with_condition({"var": "a", "equals": deep}))
    assert path == ("steps", 0, "runCondition")
    assert reason == f"is nested more than {DEPTH_MAX} levels deep"
    while deep:
        deep = deep.pop()


@pytest.mark.parametrize(
    ("rule", "at", "words"),
    [
        ({"type": "contains"}, (), 'a contains rule needs "value"'),
        ({"type": "contains", "value": ""}, ("value",), "must not be empty"),
        ({"type": "regex"}, (), 'a regex rule needs "pattern"'),
        ({"type": "regex", "pattern": ""}, ("pattern",), "must not be empty"),
        ({"type": "regex", "pattern": "("}, ("pattern",), "the pattern does not compile"),
        ({"type": "regex", "pattern": "a(?=b)"}, ("pattern",), "there is no look-around"),
        ({"type": "regex", "pattern": "a", "flags": "x"}, ("flags",), "may only have the letters g, i, m, s, u, y"),
        ({"type": "length"}, (), 'a length rule needs "min", "max" or both'),
        ({"type": "length", "min": 3, "max": 2}, ("min",), "min 3 is above max 2: no output could pass"),
        ({"type": "schema"}, (), 'a schema rule needs "schema"'),
        ({"type": "schema", "schema": {"type": "strin"}}, ("schema",), 'there is no type "strin"'),
        ({"type": "contains", "value": "x", "pattern": "y"}, ("pattern",), '"pattern" belongs to a rule of type regex'),
        ({"type": "regex", "pattern": "x", "min": 0}, ("min",), '"min" belongs to a rule of type length, not regex'),
        ({"type": "length", "min": 1, "value": "x"}, ("value",), '"value" belongs to a rule of type contains'),
        ({"type": "schema", "schema": {}, "flags": ""}, ("flags",), '"flags" belongs to a rule of type regex'),
        ({"type": "contains", "value": "x", "schema": {}}, ("schema",), '"schema" belongs to a rule of type schema'),
        ({"type": "contains", "value": "x", "message": ""}, ("message",), "must not be empty"),
        (
            {"type": "contains", "value": "x", "condition": {"gt": 1}},
            ("condition", "gt"),
            'needs "var" beside "gt"',
        ),
    ],
)
def test_a_rule_has_what_its_type_needs_and_nothing_of_another(rule: Data, at: Path, words: str) -> None:
    for data, place in (
        (with_rule(**rule), ("validationCriteria", 0)),
        (with_criteria({"not": {"message": "No.", **rule}}), ("validationCriteria", "not")),
    ):
        path, reason = problem(data)
        assert path == ("steps", 0, *place, *at)
        assert words in reason


@pytest.mark.parametrize(
    "rule", [{"type": "length", "min": 0}, {"type": "length", "max": 0}, {"type": "length", "min": 2, "max": 2}]
)
def test_a_length_rule_needs_one_bound(rule: Data) -> None:
    parse(with_rule(**rule))


@pytest.mark.parametrize(
    ("criteria", "at", "words"),
    [
        ({}, (), "is empty; a composition has exactly one of and, or, not"),
        ({"and": [RULE], "or": [RULE]}, (), "has and and or; a composition has exactly one of and, or, not"),
        ({"and": []}, ("and",), "must not be empty"),
        ({"or": []}, ("or",), "must not be empty"),
        ({"not": {}}, ("not",), 'the key "type" is missing'),
        ({"and": [{"or": [{"not": RULE, "and": [RULE]}]}]}, ("and", 0, "or", 0), "has and and not"),
    ],
)
def test_a_composition_is_exactly_one_of_three(criteria: Data, at: Path, words: str) -> None:
    path, reason = problem(with_criteria(criteria))
    assert path == ("steps", 0, "validationCriteria", *at)
    assert words in reason


def test_no_rules_at_all_are_allowed() -> None:
    assert parse(with_criteria([])).steps[0].validation_criteria == ()


def test_a_key_that_is_no_text_is_a_problem() -> None:
    data: dict[Any, Any] = {**guide(), 3: "x"}
    assert problem(data) == ((), "the key 3 must be text: put it in quotes")


@given(st.text(alphabet="`$.[]-at 0x", min_size=1))
def test_no_key_is_too_odd_to_be_named_as_unknown(key: str) -> None:
    with pytest.raises(GuideProblem, match="there is no key"):
        parse({key: 1, **guide()})


def test_a_problem_reads_as_place_and_reason() -> None:
    assert str(GuideProblem(("steps", 2, "prompt"), "must not be empty")) == "steps[2].prompt: must not be empty"
    assert str(GuideProblem((), "the file is empty")) == "the file is empty"
    assert path_text(()) == ""
    assert path_text((3, "a", 0, 1)) == "[3].a[0][1]"
