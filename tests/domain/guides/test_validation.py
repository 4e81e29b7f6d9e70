"""Whether an output passes, what is said when it does not, and what a skipped rule means."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.domain.guides.definition import Step, parse_guide
from handrail.domain.guides.validation import Verdict, check_output
from handrail.kernel.errors import InvalidParams
from handrail.outside.linear_matcher import LinearMatcher

Data = dict[str, Any]
MATCHER = LinearMatcher()


def step_with(criteria: object) -> Step:
    step: Data = {"id": "check-me", "title": "T", "prompt": "P", "validationCriteria": criteria}
    if criteria is None:
        del step["validationCriteria"]
    data = {"id": "a-guide", "name": "N", "description": "D", "version": "1.0.0", "steps": [step]}
    return parse_guide(data, matcher=MATCHER, server_version="1.0.0").steps[0]


def check(criteria: object, output: str, **context: Any) -> Verdict:
    return check_output(step_with(criteria), output, context, MATCHER)


def contains(value: str, message: str = "", **more: Any) -> Data:
    return {"type": "contains", "value": value, "message": message or f"Say {value}.", **more}


SKIPPED: Data = {"condition": {"var": "never-set"}}


@pytest.mark.parametrize("criteria", [None, []])
def test_without_criteria_any_output_passes_that_is_not_blank(criteria: object) -> None:
    assert check(criteria, "x") == Verdict(valid=True)
    blank = check(criteria, " \n\t")
    assert not blank.valid
    assert blank.issues == ("the output is blank",)
    assert blank.suggestions == ("write what this step produced",)


def test_contains_looks_for_the_text_as_written() -> None:
    assert check([contains("Plan")], "My Plan is").valid
    assert check([contains("Plan")], "my plan is") == Verdict(
        valid=False, issues=("Say Plan.",), suggestions=('include the text "Plan"',)
    )


@pytest.mark.parametrize(
    ("pattern", "flags", "output", "valid"),
    [
        (r"\d+", "", "there are 12", True),
        (r"^\d+$", "", "there are 12", False),
        ("done", "", "DONE", False),
        ("done", "i", "DONE", True),
        ("^b$", "", "a\nb\nc", False),
        ("^b$", "m", "a\nb\nc", True),
        ("a.b", "", "a\nb", False),
        ("a.b", "s", "a\nb", True),
        ("^A.B$", "gimsuy", "x\na\nb\ny", True),
        ("b", "g", "B", False),
        ("^.é.$", "", "aéb", True),
    ],
)
def test_a_regex_is_searched_for_with_its_flags(pattern: str, flags: str, output: str, valid: bool) -> None:
    verdict = check([{"type": "regex", "pattern": pattern, "flags": flags, "message": "No match."}], output)
    assert verdict.valid is valid
    if not valid:
        assert verdict.issues == ("No match.",)
        assert verdict.suggestions == (f"make it match the pattern /{pattern}/{flags}",)


def test_length_counts_characters_and_says_how_many_there_are() -> None:
    rule = {"type": "length", "min": 3, "max": 5, "message": "Three to five."}
    assert check([rule], "añb").valid
    assert check([rule], "👩‍🚀ab").valid
    assert check([rule], "ab") == Verdict(
        valid=False, issues=("Three to five.",), suggestions=("write at least 3 characters (now 2)",)
    )
    assert check([rule], "abcdef").suggestions == ("write at most 5 characters (now 6)",)


SCHEMA_RULE = {
    "type": "schema",
    "message": "Send the report.",
    "schema": {"type": "object", "required": ["title"], "properties": {"count": {"type": "integer"}}},
}


def test_a_schema_rule_reads_the_output_as_json() -> None:
    assert check([SCHEMA_RULE], '{"title": "x", "count": 3}').valid
    verdict = check([SCHEMA_RULE], '{"count": "three"}')
    assert verdict.issues == ("Send the report.",)
    assert len(verdict.suggestions) == 1
    assert verdict.suggestions[0].startswith("make it fit the schema: ")
    assert 'count: "three" is not of type "integer"' in verdict.suggestions[0]
    assert 'top level: "title" is a required property' in verdict.suggestions[0]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("The report.", "make it valid JSON: invalid character (byte 0)"),
        ('{"title": ', "make it valid JSON: it ends too early"),
        ('```json\n{"title": "x"}\n```', "send the JSON alone, without the ``` fence around it"),
        ("[" * 100_000, "it is nested too deep"),
        ('{"title": "\ud800"}', "it has half a surrogate pair in it"),
        ('{"count": 1e999}', "make it valid JSON: Number out of range"),
    ],
)
def test_output_that_is_no_json_is_told_why(output: str, words: str) -> None:
    verdict = check([SCHEMA_RULE], output)
    assert verdict.issues == ("Send the report.",)
    assert words in verdict.suggestions[0]


def test_a_list_of_rules_names_every_failing_one_in_order() -> None:
    rules = [contains("a"), contains("b"), {"type": "length", "min": 40, "message": "Too short."}, contains("x")]
    assert check(rules, "x") == Verdict(
        valid=False,
        issues=("Say a.", "Say b.", "Too short."),
        suggestions=('include the text "a"', 'include the text "b"', "write at least 40 characters (now 1)"),
    )


def test_the_same_message_and_move_are_said_once() -> None:
    verdict = check([contains("a", "Same."), contains("a", "Same.")], "x")
    assert verdict == Verdict(valid=False, issues=("Same.",), suggestions=('include the text "a"',))


def test_and_names_every_failing_branch() -> None:
    verdict = check({"and": [contains("a"), contains("x"), contains("b")]}, "x")
    assert verdict.issues == ("Say a.", "Say b.")


def test_or_passes_with_one_and_otherwise_lists_every_alternative() -> None:
    either = {"or": [contains("a"), contains("b")]}
    assert check(either, "b").valid
    assert check(either, "x") == Verdict(
        valid=False,
        issues=("at least one of these must hold: (1) Say a.; (2) Say b.",),
        suggestions=('include the text "a"', 'include the text "b"'),
    )


def test_an_alternative_with_several_failures_names_them_together() -> None:
    verdict = check({"or": [{"and": [contains("a"), contains("b")]}, contains("c")]}, "x")
    assert verdict.issues == ("at least one of these must hold: (1) Say a. and Say b.; (2) Say c.",)
    assert verdict.suggestions == ('include the text "a"', 'include the text "b"', 'include the text "c"')


def test_not_says_what_must_not_hold_and_how_to_avoid_it() -> None:
    verdict = check({"not": contains("TODO", "Has a TODO")}, "TODO: all")
    assert verdict == Verdict(
        valid=False, issues=('must not hold: "Has a TODO"',), suggestions=('leave out the text "TODO"',)
    )
    assert check({"not": contains("TODO")}, "all done").valid


@pytest.mark.parametrize(
    ("rule", "output", "move"),
    [
        (
            {"type": "regex", "pattern": "x+", "flags": "i", "message": "m"},
            "x",
            "make sure that it does not match the pattern /x+/i",
        ),
        ({"type": "length", "min": 2, "message": "m"}, "abc", "write fewer than 2 characters (now 3)"),
        ({"type": "length", "max": 5, "message": "m"}, "abc", "write more than 5 characters (now 3)"),
        (
            {"type": "length", "min": 2, "max": 5, "message": "m"},
            "abc",
            "write fewer than 2 or more than 5 characters (now 3)",
        ),
        ({"type": "schema", "schema": {}, "message": "m"}, "1", 'make sure that it does not fit the schema of "m"'),
    ],
)
def test_every_kind_of_rule_can_be_avoided(rule: Data, output: str, move: str) -> None:
    verdict = check({"not": rule}, output)
    assert verdict.issues == ('must not hold: "m"',)
    assert verdict.suggestions == (move,)


def test_not_of_a_composition_names_all_of_it() -> None:
    verdict = check(
        {"not": {"or": [contains("a", "A"), {"and": [contains("b", "B"), {"not": contains("c", "C")}]}]}}, "ab"
    )
    assert verdict.issues == ('must not hold: ("A" or ("B" and not "C"))',)
    assert verdict.suggestions == ('leave out the text "a"', 'leave out the text "b"', 'include the text "c"')


def test_a_double_not_asks_for_the_thing_itself() -> None:
    twice = {"not": {"not": contains("a", "A")}}
    assert check(twice, "a").valid
    verdict = check(twice, "x")
    assert verdict.issues == ('must not hold: not "A"',)
    assert verdict.suggestions == ('include the text "a"',)


def test_nested_alternatives_stay_readable() -> None:
    verdict = check({"and": [{"or": [contains("a"), {"not": contains("x", "X")}]}, contains("b")]}, "x")
    assert verdict.issues == ('at least one of these must hold: (1) Say a.; (2) must not hold: "X"', "Say b.")
    assert verdict.suggestions == ('include the text "a"', 'leave out the text "x"', 'include the text "b"')


def test_a_rule_applies_only_where_its_condition_holds() -> None:
    rules = [contains("a", condition={"var": "size", "equals": "large"})]
    assert check(rules, "x").valid
    assert check(rules, "x", size="small").valid
    assert not check(rules, "x", size="large").valid


def test_where_every_rule_is_skipped_blank_output_still_fails() -> None:
    for criteria in ([contains("a", **SKIPPED)], {"or": [contains("a", **SKIPPED)]}, {"not": contains("a", **SKIPPED)}):
        assert check(criteria, "x").valid
        assert check(criteria, " ").issues == ("the output is blank",)


def test_a_skipped_alternative_neither_passes_nor_fails_an_or() -> None:
    assert check({"or": [contains("a", **SKIPPED), contains("b")]}, "b").valid
    verdict = check({"or": [contains("a", **SKIPPED), contains("b")]}, "x")
    assert verdict == Verdict(valid=False, issues=("Say b.",), suggestions=('include the text "b"',))


def test_a_skipped_branch_holds_nothing_against_a_not() -> None:
    assert check({"not": contains("a", **SKIPPED)}, "a").valid
    assert check({"not": {"and": [contains("a", **SKIPPED), contains("b")]}}, "a").valid
    verdict = check({"not": {"and": [contains("a", **SKIPPED), contains("b", "B")]}}, "ab")
    assert verdict.issues == ('must not hold: "B"',)


def test_a_skipped_branch_leaves_an_and_to_the_others() -> None:
    assert check({"and": [contains("a", **SKIPPED), contains("b")]}, "b").valid
    assert not check({"and": [contains("a", **SKIPPED), contains("b")]}, "a").valid


def test_a_condition_that_cannot_be_read_is_refused_by_name() -> None:
    with pytest.raises(InvalidParams, match=r'a rule of step "check-me".*"files" is "many"'):
        check([contains("a", condition={"var": "files", "gt": 3})], "x", files="many")


def test_a_long_text_is_cut_in_a_suggestion() -> None:
    assert len(check([contains("a" * 1000)], "x").suggestions[0]) < 120
