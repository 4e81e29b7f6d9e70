"""Which step comes next, and that a guide is never called complete while a step is open."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.guides.definition import Guide, parse_guide
from handrail.domain.guides.progress import GuideProgress, next_step
from handrail.kernel.errors import InvalidParams, StepNotFound
from handrail.outside.linear_matcher import LinearMatcher

Data = dict[str, Any]


def guide(*steps: Data) -> Guide:
    data = {
        "id": "a-guide",
        "name": "A guide",
        "description": "For tests.",
        "version": "1.0.0",
        "steps": [{"title": step["id"], "prompt": f"Do {step['id']}.", **step} for step in steps],
    }
    return parse_guide(data, matcher=LinearMatcher(), server_version="1.0.0")


def ask(guide: Guide, *completed: str, current: str | None = None, **context: Any) -> GuideProgress:
    return next_step(guide, completed=completed, current=current, context=context)


THREE = guide({"id": "one"}, {"id": "two", "runCondition": {"var": "size", "equals": "large"}}, {"id": "three"})


def step_id(progress: GuideProgress) -> str | None:
    return None if progress.step is None else progress.step.id


def test_the_first_open_step_comes_first() -> None:
    found = ask(THREE)
    assert step_id(found) == "one"
    assert found.prompt == "Do one."
    assert not found.is_complete
    assert found.ignored == ()


def test_a_step_whose_condition_does_not_hold_is_passed_over() -> None:
    assert step_id(ask(THREE, "one")) == "three"
    assert step_id(ask(THREE, "one", size="large")) == "two"


def test_order_is_that_of_the_file_whatever_was_completed() -> None:
    assert step_id(ask(THREE, "three")) == "one"


def test_the_end_is_complete_and_says_so() -> None:
    assert ask(THREE, "one", "two", "three") == GuideProgress(
        step=None, prompt="All steps of this guide are done.", is_complete=True, ignored=()
    )


def test_guidance_comes_before_the_prompt_a_line_each() -> None:
    found = ask(guide({"id": "one", "guidance": ["PREP: a", "IMPLEMENT: b", "VERIFY: c"], "prompt": "Go."}))
    assert found.prompt == "PREP: a\nIMPLEMENT: b\nVERIFY: c\n\nGo."


def test_what_a_step_asks_for_is_one_line_each_after_the_prompt() -> None:
    found = ask(
        guide(
            {
                "id": "one",
                "askForFiles": True,
                "requireConfirmation": True,
                "validationCriteria": [{"type": "length", "min": 1, "message": "m"}],
            }
        )
    )
    assert found.prompt.splitlines() == [
        "Do one.",
        "",
        "Ask the user for the files this step needs before you start.",
        "When it is done, stop and ask the user to confirm before the next step.",
        'Check the output with workflow_validate (workflowId "a-guide", stepId "one") before going on.',
    ]


def test_an_empty_list_of_rules_asks_for_no_check() -> None:
    assert ask(guide({"id": "one", "validationCriteria": []})).prompt == "Do one."


def test_the_current_step_is_returned_again_while_it_is_open() -> None:
    found = ask(THREE, current="three")
    assert step_id(found) == "three"
    assert found.prompt == ('Do three.\n\nYou are still on this step: add "three" to completedSteps when it is done.')


def test_a_current_step_that_is_completed_gives_way_to_the_next() -> None:
    assert step_id(ask(THREE, "one", current="one")) == "three"


def test_a_current_step_whose_condition_no_longer_holds_gives_way() -> None:
    assert step_id(ask(THREE, "one", current="two", size="small")) == "three"


def test_an_unknown_current_step_is_refused_with_the_known_ones() -> None:
    with pytest.raises(StepNotFound) as caught:
        ask(THREE, current="thre")
    assert caught.value.message == "guide a-guide has no step thre; did you mean three?"
    assert caught.value.hint == "its steps: one, two, three"
    assert caught.value.details == {"stepId": "thre"}


def test_unknown_completed_steps_are_ignored_and_named() -> None:
    found = ask(THREE, "zero", "one", "nul", "zero")
    assert step_id(found) == "three"
    assert found.ignored == ("zero", "nul")
    assert 'Ignored in completedSteps, because this guide has no such steps: "zero", "nul".' in found.prompt
    assert '"zero"' in ask(THREE, "one", "two", "three", "zero").prompt


def test_where_no_open_steps_condition_holds_it_says_what_to_set_and_is_not_complete() -> None:
    found = ask(
        guide(
            {"id": "one"},
            {"id": "two", "runCondition": {"var": "size", "equals": "large"}},
            {
                "id": "three",
                "runCondition": {"and": [{"var": "size", "not_equals": "S"}, {"var": "files", "gt": 3}]},
            },
        ),
        "one",
        size="small",
    )
    assert found.step is None
    assert not found.is_complete
    assert found.prompt.splitlines() == [
        "Steps are open, but none of their conditions holds in this context:",
        '- "two" runs when size equals "large" (now size is "small")',
        '- "three" runs when size does not equal "S" and files is more than 3 (now size is "small", files is not set)',
        "To go on, set in context: size, files.",
        'To finish without these steps, add their ids to completedSteps: "two", "three".',
    ]


def test_a_condition_without_variables_that_never_holds_asks_for_none() -> None:
    found = ask(guide({"id": "one", "runCondition": {"or": []}}))
    assert not found.is_complete
    assert '- "one" runs when never' in found.prompt
    assert "set in context" not in found.prompt


def test_a_current_step_does_not_hide_that_nothing_applies() -> None:
    found = ask(THREE, "one", "three", current="two")
    assert (found.step, found.is_complete) == (None, False)
    assert "size is not set" in found.prompt


def test_a_value_that_cannot_be_compared_is_refused_by_step_and_variable() -> None:
    counted = guide({"id": "one", "runCondition": {"var": "files", "gt": 3}})
    with pytest.raises(InvalidParams) as caught:
        ask(counted, files="many")
    assert 'step "one"' in caught.value.message
    assert '"files" is "many" (text)' in caught.value.message
    assert caught.value.details["variable"] == "files"


IDS = ["one", "two", "three", "four"]
CONDITIONS: st.SearchStrategy[Data | None] = st.sampled_from(
    [None, {"var": "a"}, {"var": "b"}, {"not": {"var": "a"}}, {"or": []}]
)


@given(
    st.lists(CONDITIONS, min_size=1, max_size=4),
    st.lists(st.sampled_from([*IDS, "unknown"])),
    st.none() | st.sampled_from(IDS),
    st.dictionaries(st.sampled_from(["a", "b"]), st.booleans()),
)
def test_complete_means_that_every_step_was_completed(
    conditions: list[Data | None], completed: list[str], current: str | None, context: dict[str, bool]
) -> None:
    steps = [
        {"id": name} if c is None else {"id": name, "runCondition": c} for name, c in zip(IDS, conditions, strict=False)
    ]
    made = guide(*steps)
    known = {step.id for step in made.steps}
    if current is not None and current not in known:
        current = None
    found = next_step(made, completed=completed, current=current, context=context)
    assert found.is_complete == (known <= set(completed))
    assert not (found.is_complete and found.step is not None)
    assert found.step is None or found.step.id not in completed
    assert found.prompt


@given(st.permutations([0, 1, 2, 3]), st.dictionaries(st.sampled_from(["a", "b"]), st.booleans()))
def test_following_the_steps_and_then_the_way_out_always_ends(order: list[int], context: dict[str, bool]) -> None:
    conditions: list[Data] = [{}, {"var": "a"}, {"var": "b"}, {"not": {"var": "b"}}]
    made = guide(*({"id": IDS[n], "runCondition": conditions[n]} for n in order))
    completed: list[str] = []
    while (found := next_step(made, completed=completed, current=None, context=context)).step is not None:
        completed.append(found.step.id)
        assert len(completed) <= len(IDS)
    assert found.is_complete == (len(completed) == len(IDS))
    rest = [name for name in IDS if name not in completed]
    assert all(f'"{name}"' in found.prompt for name in rest)
    assert next_step(made, completed=[*completed, *rest], current=None, context=context).is_complete
