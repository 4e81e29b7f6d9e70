"""WorkRail's workflows, read: what comes out is a guide, loops are laid flat, and what cannot be said is said so."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.exchange.workrail import GuideTaken, read_guide
from handrail.domain.exchange.workrail_steps import parted, prompts
from handrail.domain.guides.definition import Guide, parse_guide
from handrail.domain.guides.progress import next_step
from handrail.kernel.errors import InvalidParams
from handrail.outside.linear_matcher import LinearMatcher
from handrail.surfaces.cli.main import cli
from tests.domain.exchange import samples
from tests.domain.exchange.made_up import json_values, records, texts, written


def taken(data: Any) -> GuideTaken:
    return read_guide(json.dumps(data), "review", LinearMatcher())


def with_steps(*steps: dict[str, Any]) -> GuideTaken:
    return taken({"id": "some-guide", "name": "G", "description": "D", "version": "1.0.0", "steps": list(steps)})


def step(**fields: Any) -> dict[str, Any]:
    return {"id": "one", "title": "One", "prompt": "Do it.", **fields}


def by_id(found: GuideTaken) -> dict[str, dict[str, Any]]:
    return {entry["id"]: entry for entry in found.guide["steps"]}


def as_guide(found: GuideTaken) -> Guide:
    return parse_guide(found.guide, matcher=LinearMatcher(), server_version="0.0.0")


def test_the_sample_becomes_a_guide_that_handrail_accepts(tmp_path: Path) -> None:
    found = taken(samples.workrail_workflow())
    as_guide(found)
    file = tmp_path / "review.json"
    file.write_text(json.dumps(found.guide), encoding="utf-8")
    runner = CliRunner(env={"HOME": str(tmp_path / "home")})
    checked = runner.invoke(cli, ["guide", "validate", str(file), "--root", str(tmp_path)])
    assert checked.exit_code == 0, checked.output


def test_what_both_have_is_taken_as_it_is() -> None:
    found = taken(samples.workrail_workflow())
    source = samples.workrail_workflow()
    assert found.guide["name"] == source["name"]
    assert found.guide["description"] == source["description"]
    assert found.guide["version"] == "2.1.0"
    assert found.guide["preconditions"] == source["preconditions"]
    assert found.guide["clarificationPrompts"] == source["clarificationPrompts"]
    plan = by_id(found)["plan"]
    assert plan["runCondition"] == source["steps"][1]["runCondition"]
    assert plan["validationCriteria"] == source["steps"][1]["validationCriteria"]
    assert by_id(found)["understand"]["askForFiles"] is True


def test_everything_beside_the_prompt_is_guidance() -> None:
    found = by_id(taken(samples.workrail_workflow()))
    assert found["understand"]["guidance"] == [
        "Role: You are a careful reader of other people's code.",
        "Start with the tests",
        "Do lookUp().",
        (
            "The output must also pass this, which is not checked here: "
            '{"type": "regex", "pattern": "(?=.*why)", "flags": "iv", "message": "Say why"}'
        ),
        'Confirmation is meant for when this holds: risk equals "high" or files is more than 20',
        (
            "lookUp(): Search the code for who calls it. "
            'Parameters: [{"name": "symbol", "type": "string", "required": true}]'
        ),
    ]
    assert found["plan"]["guidance"] == ['When lang equals "go": Look at the goroutines.']
    assert found["hand-over"]["guidance"] == [
        "Before you go on, judge: The review can be handed over.\n- evidence (low, high): Lines are named.",
        "If you judged anything low: Look again.",
    ]
    assert found["odd"]["guidance"] == [
        'newThing: {"a": 1}',
        'Do this only when this holds, and otherwise add it to completedSteps: {"var": "name", "startsWith": "x"}',
    ]


def test_blocks_and_templates_become_prompts() -> None:
    found = by_id(taken(samples.workrail_workflow()))
    assert found["plan"]["prompt"] == (
        "Decide how deep to look.\n\nConstraints:\n- [wr.refs.notes] first\n- Be brief\n\n"
        "Procedure:\n1. List the risks\n2. Order them\n\nOutput required:\n- plan: a list\n\n"
        "Verify:\n- Each risk has an owner"
    )
    assert found["probe"]["prompt"] == 'Carry out wr.templates.probe with {"deep": true}.'


def test_notes_about_the_whole_are_short_and_complete() -> None:
    notes = taken(samples.workrail_workflow()).guide["metaGuidance"]
    assert notes == [
        "Read before you judge.",
        "x" * 200,
        "y" * 200,
        "unused(): Nobody calls this.",
        "Read docs/style.md (House style): what we like. Follow it strictly.",
        "{{wr.bindings.deep_review}} stands for routine-review: a second look",
    ]


def test_what_was_changed_or_has_no_place_is_said() -> None:
    remarks = taken(samples.workrail_workflow()).remarks
    assert 'the guide is called wr-review-changes here, not "wr.review_changes"' in remarks
    assert "1 rule of understand cannot be checked here; the guidance has it" in remarks
    assert "the prompt of hand-over is too long for one step and became 2" in remarks
    assert "a guide here has no place for: about, examples, recommendedPreferences, features" in remarks
    assert any("wr.refs.notes, wr.templates.probe, wr.contracts.loop_control" in remark for remark in remarks)
    assert any(remark.startswith("understand always asks for confirmation") for remark in remarks)
    assert sum("was flattened" in remark for remark in remarks) == 4


def test_a_loop_says_where_it_begins_and_how_to_go_round_again() -> None:
    found = by_id(taken(samples.workrail_workflow()))
    assert found["ask"]["guidance"] == [
        (
            'This is the loop "Doubts". Its steps (ask, settle) are done as long as this holds: doubts is more than '
            "0, 3 rounds at most. If nothing is to be done in it now, add their ids to completedSteps and go on. Keep "
            "in context: n (the number of the round)."
        )
    ]
    assert found["settle"]["guidance"][-1] == (
        'When a round of the loop "Doubts" is done: to go round again, take ask, settle out of completedSteps and ask '
        "for the next step. Go on when this no longer holds: doubts is more than 0."
    )
    assert found["ask"]["requireConfirmation"] is True
    assert "requireConfirmation" not in found["settle"]


def test_a_loop_is_told_whichever_of_its_steps_are_left_out() -> None:
    """Its first and last step may be left out by conditions of their own: then the next one has to say it."""
    when = {"var": "deep", "equals": True}
    body = [step(runCondition=when), step(id="two"), step(id="three"), step(id="four", runCondition=when)]
    looped = {"id": "round", "type": "loop", "title": "R", "loop": {"type": "for", "count": 2}, "body": body}
    found = by_id(with_steps({**looped, "requireConfirmation": True, "runCondition": {"var": "on", "equals": 1}}))

    def telling(words: str) -> list[str]:
        return [key for key, made in found.items() if any(words in text for text in made.get("guidance", ()))]

    assert telling("Its steps (one, two, three, four) are done 2 times") == ["one", "two"]
    assert telling("to go round again, take one, two, three, four out of completedSteps") == ["three", "four"]
    assert [key for key, made in found.items() if made.get("requireConfirmation")] == ["one", "two"]


def test_a_loop_whose_steps_all_have_conditions_is_told_in_each() -> None:
    when = {"var": "deep", "equals": True}
    body = [step(runCondition=when), step(id="two", runCondition={"not": when})]
    found = by_id(with_steps({"id": "round", "type": "loop", "title": "R", "loop": {"type": "for"}, "body": body}))
    assert all(len(made["guidance"]) == 2 for made in found.values())


@pytest.mark.parametrize(
    ("loop", "said"),
    [
        ({"type": "forEach", "items": "files"}, "once for each entry of the variable files"),
        ({"type": "for", "count": 3}, "3 times"),
        ({"type": "for", "count": "rounds"}, "as often as the variable rounds says"),
        ({"type": "until", "condition": {"var": "ok", "equals": True}}, "until this holds: ok equals true"),
        ({"type": "while", "condition": {"var": "open", "gt": 0}}, "as long as this holds: open is more than 0"),
        (
            {"type": "while", "conditionSource": {"kind": "context_variable", "condition": {"var": "x", "lt": 2}}},
            "as long as this holds: x is less than 2",
        ),
        ({"type": "while", "conditionSource": {"kind": "artifact_contract"}}, "until they decide to stop"),
        ({"type": "while", "condition": {"odd": 1}}, 'as long as this holds: {"odd": 1}'),
    ],
)
def test_every_kind_of_loop_has_words(loop: dict[str, Any], said: str) -> None:
    found = with_steps({"id": "round", "type": "loop", "title": "R", "loop": loop, "body": [step()]})
    assert f"Its steps (one) are done {said}. " in by_id(found)["one"]["guidance"][0]


def test_following_the_guidance_goes_round_the_loop() -> None:
    guide = as_guide(taken(samples.workrail_workflow()))
    before = [entry.id for entry in guide.steps][: [entry.id for entry in guide.steps].index("ask")]

    def after(*done: str) -> str | None:
        progress = next_step(guide, completed=[*before, *done], current=None, context={"files": 3, "name": "x"})
        return None if progress.step is None else progress.step.id

    assert after() == "ask"
    assert after("ask") == "settle"
    assert after("ask", "settle") == "polish-once"
    assert after() == "ask"  # with both taken out again


def test_a_body_that_is_named_stands_where_its_loop_stood() -> None:
    found = taken(samples.workrail_workflow())
    ids = [entry["id"] for entry in found.guide["steps"]]
    assert ids.count("read-file") == 1
    assert ids.index("odd") + 1 == ids.index("read-file")
    assert by_id(found)["read-file"]["runCondition"] == {"var": "files", "gte": 1}


def test_the_condition_of_a_loop_holds_for_its_steps_beside_their_own() -> None:
    own, outer = {"var": "a", "equals": 1}, {"var": "b", "equals": None}
    inner = step(runCondition=own)
    found = with_steps(
        {"id": "round", "type": "loop", "title": "R", "runCondition": outer, "loop": {}, "body": [inner]}
    )
    assert by_id(found)["one"]["runCondition"] == {"and": [outer, own]}
    as_guide(found)


def test_a_body_that_is_not_there_is_said() -> None:
    found = with_steps({"id": "round", "type": "loop", "title": "R", "loop": {}, "body": "nowhere"}, step())
    assert list(by_id(found)) == ["nowhere", "one"]
    assert found.remarks[0] == 'loop "R" repeats "nowhere", which is no step of the file'


def test_a_prompt_too_long_becomes_steps_that_lose_nothing() -> None:
    source = samples.workrail_workflow()["steps"][-1]
    found = by_id(taken(samples.workrail_workflow()))
    first, second = found["hand-over"], found["hand-over-part-2"]
    assert (first["title"], second["title"]) == ("Hand over (1 of 2)", "Hand over (2 of 2)")
    assert [*first["prompt"].split(), *second["prompt"].split()] == source["prompt"].split()
    assert "validationCriteria" not in first
    assert second["validationCriteria"] == source["validationCriteria"]
    assert "requireConfirmation" not in first
    assert second["requireConfirmation"] is True


@given(st.text(max_size=300), st.integers(2, 40))
@settings(max_examples=2 * settings().max_examples)
def test_a_text_that_is_parted_loses_only_blanks(text: str, room: int) -> None:
    pieces = parted(text, room)
    assert all(0 < len(piece) <= room for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_a_text_without_a_place_to_part_is_parted_all_the_same() -> None:
    assert [len(piece) for piece in prompts("x" * 20_000)] == [8192, 8192, 3616]


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ({"type": "contains", "value": "x", "message": "m"}, True),
        ({"type": "contains", "value": "x", "message": "m", "pattern": "left from before"}, True),
        ({"type": "contains", "value": "", "message": "m"}, False),
        ({"type": "regex", "pattern": "a+", "flags": "gid", "message": "m"}, True),
        ({"type": "regex", "pattern": "(?!a)b", "message": "m"}, False),
        ({"type": "length", "min": 5, "message": "m"}, True),
        ({"type": "length", "min": 5, "max": 1, "message": "m"}, False),
        ({"type": "length", "min": 1.5, "message": "m"}, False),
        ({"type": "schema", "schema": {"type": "nothing"}, "message": "m"}, False),
        ({"type": "contains", "value": "x", "message": "m", "condition": {"var": "a", "matches": "b"}}, False),
        ({"type": "magic", "message": "m"}, False),
        ("a sentence", False),
        (
            {
                "and": [
                    {"type": "length", "max": 9, "message": "m"},
                    {"not": {"type": "contains", "value": "x", "message": "m"}},
                ]
            },
            True,
        ),
        ({"and": [{"type": "length", "max": 9, "message": "m"}, {"type": "magic"}]}, False),
        ({"and": [], "or": []}, False),
    ],
)
def test_rules_are_kept_or_become_guidance(rule: Any, kept: bool) -> None:
    is_composed = isinstance(rule, dict) and "type" not in rule
    found = by_id(with_steps(step(validationCriteria=rule if is_composed else [rule])))["one"]
    assert ("validationCriteria" in found) is kept
    assert ("guidance" in found) is not kept
    if not kept:
        assert json.dumps(rule) in found["guidance"][0]


def test_a_rule_without_a_matcher_stays_for_the_guide_s_own_check() -> None:
    rule = {"type": "regex", "pattern": "(?!a)b", "message": "m"}
    data = {
        "id": "abc",
        "name": "G",
        "description": "D",
        "version": "1.0.0",
        "steps": [step(validationCriteria=[rule])],
    }
    found = read_guide(json.dumps(data), "n")
    assert by_id(found)["one"]["validationCriteria"] == [rule]


def test_ids_that_are_none_here_are_mended() -> None:
    found = with_steps(step(id="Step_One"), step(id="x"), step(id="Step One"), step(id=7), step(id="--- "))
    assert list(by_id(found)) == ["step-one", "step-x", "step-one-2", "step", "step-2"]
    assert found.remarks[0] == 'step "Step_One" is called step-one here'
    as_guide(found)


def test_a_workflow_that_lacks_its_head_gets_one() -> None:
    found = read_guide(json.dumps({"steps": [step()]}), "My Review")
    assert (found.guide["id"], found.guide["name"], found.guide["version"]) == ("my-review", "My Review", "1.0.0")


def test_a_guide_of_ours_comes_through_unchanged() -> None:
    ours = {
        "id": "release-notes",
        "name": "Release notes",
        "description": "Writes them.",
        "version": "1.2.3",
        "category": "docs",
        "metaGuidance": ["Short sentences."],
        "steps": [step(guidance=["a"], requireConfirmation=True, validationCriteria=[])],
    }
    found = taken(ours)
    expected = copy.deepcopy(ours)
    del expected["steps"][0]["validationCriteria"]  # type: ignore[attr-defined] # no rules and none are the same
    assert found.guide == expected
    assert found.remarks == []


def test_a_nested_loop_is_laid_flat_too_and_an_endless_one_refused() -> None:
    inner = {
        "id": "in",
        "type": "loop",
        "title": "I",
        "loop": {"type": "for", "count": 2},
        "body": [step(), step(id="two")],
    }
    found = with_steps(
        {"id": "out", "type": "loop", "title": "O", "loop": {"type": "for", "count": 3}, "body": [inner]}
    )
    assert list(by_id(found)) == ["one", "two"]
    said = [text.split(".")[0] for text in by_id(found)["one"]["guidance"]]
    assert said == ['This is the loop "O"', 'This is the loop "I"']
    for _ in range(12):
        inner = {"id": "in", "type": "loop", "title": "I", "loop": {}, "body": [inner]}
    with pytest.raises(InvalidParams, match="nested more than 8 deep"):
        with_steps(inner)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("[]", "it holds a list"),
        ("{}", "it has no steps"),
        ('{"steps": []}', "it has no steps"),
        ('{"steps": [7]}', r"steps\[0\] is a number"),
        ('{"steps": [{"type": "loop", "body": [null]}]}', r"steps\[0\].body\[0\] is null"),
        ('{"steps": [{"type": "loop", "body": 3}]}', r"steps\[0\].body is a number"),
        ('{"steps": [{"type": "loop", "body": []}]}', "no step that can be done"),
        ('{"steps": [{"id": "abc", "body": "abc"}]}', "no step that can be done"),
        ('{"steps": [', "this is not JSON"),
    ],
)
def test_a_file_that_is_none_is_refused_with_what_and_where(text: str, said: str) -> None:
    with pytest.raises(InvalidParams, match=said) as refusal:
        read_guide(text, "review")
    assert refusal.value.hint


conditions = st.recursive(
    st.fixed_dictionaries(
        {"var": st.sampled_from(["a", "", "b"])}, optional={"equals": json_values, "gt": st.integers(), "odd": texts}
    ),
    lambda inner: st.fixed_dictionaries({"and": st.lists(inner, max_size=2)}) | st.fixed_dictionaries({"not": inner}),
    max_leaves=4,
)
rules = records(
    {
        "value": texts,
        "pattern": texts,
        "flags": texts,
        "min": st.integers(0, 9),
        "schema": json_values,
        "condition": conditions,
    },
    type=st.sampled_from(["contains", "regex", "length", "schema", "?"]),
)
step_fields: dict[str, st.SearchStrategy[Any]] = {
    "title": texts,
    "prompt": texts | st.just("word " * 3000),
    "promptBlocks": records(
        {"goal": texts, "constraints": st.lists(texts), "outputRequired": st.dictionaries(texts, texts)}
    ),
    "templateCall": records({"templateId": texts, "args": json_values}),
    "guidance": st.lists(texts, max_size=2),
    "agentRole": texts,
    "requireConfirmation": st.booleans() | conditions,
    "runCondition": conditions,
    "validationCriteria": st.lists(rules, max_size=2) | st.fixed_dictionaries({"or": st.lists(rules, max_size=2)}),
    "promptFragments": st.lists(records({"when": conditions, "text": texts}), max_size=2),
    "functionDefinitions": st.lists(records({"name": texts, "definition": texts}), max_size=2),
    "functionCalls": st.lists(records({"name": texts, "args": json_values}), max_size=2),
    "assessmentRefs": st.lists(texts, max_size=2),
    "assessmentConsequences": json_values,
    "outputContract": records({"contractRef": texts}),
}
step_ids = st.sampled_from(["one", "two", "x", "A_b", "", 7]) | texts
made_up_steps = st.lists(records(step_fields, id=step_ids), max_size=3)
loops = records(
    {
        "loop": records(
            {"type": st.sampled_from(["while", "for", "forEach"]), "condition": conditions, "count": json_values}
        ),
        **step_fields,
    },
    id=step_ids,
    body=made_up_steps | step_ids,
)
workflows = records(
    {
        "id": texts,
        "name": texts,
        "description": texts,
        "version": st.sampled_from(["1.0.0", "v1", ""]),
        "metaGuidance": st.lists(texts, max_size=3),
        "preconditions": st.lists(texts, max_size=3),
        "functionDefinitions": st.lists(
            records({"name": texts, "definition": texts, "parameters": json_values}), max_size=2
        ),
        "references": st.lists(records({"source": texts, "title": texts}), max_size=2),
        "assessments": st.lists(records({"dimensions": json_values, "id": texts}), max_size=2),
        "anything": json_values,
    },
    steps=st.lists(records(step_fields, id=step_ids) | loops, max_size=4),
)


@given(workflows | json_values)
@settings(max_examples=2 * settings().max_examples)
def test_whatever_is_in_the_file_a_guide_comes_out_or_a_refusal(value: Any) -> None:
    try:
        found = read_guide(written(value), "review", LinearMatcher())
    except InvalidParams as refusal:
        assert refusal.hint  # noqa: PT017 - either answer is right
    else:
        as_guide(found)
        assert json.loads(json.dumps(found.guide)) == found.guide
        assert "\\u0000" not in json.dumps(found.guide)
