"""Forms that were filled in, questions that were put before, waiting that is told, and what results told once."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.kernel.errors import InvalidParams
from handrail.operation import Field, Question
from handrail.surfaces.elicitation import REMEMBERED, OpenQuestions, Patience, Waited, filled, merge_told_once

QUESTION = Question(
    id="gate_1",
    message="Well?",
    form=(
        Field(name="answer", title="Your decision", options=("approve", "reject"), required=True),
        Field(name="feedback", title="What else", most=10),
    ),
)
KEY, OTHER = ("", "gate_1"), ("", "gate_2")


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ({"answer": "approve"}, {"answer": "approve"}),
        ({"answer": " approve ", "feedback": " too slow\n"}, {"answer": "approve", "feedback": "too slow"}),
        ({"answer": "reject", "feedback": ""}, {"answer": "reject"}),
        ({"answer": "reject", "feedback": None}, {"answer": "reject"}),
        ({"answer": "reject", "more": "ignored"}, {"answer": "reject"}),
        ({"answer": "reject", "feedback": "0123456789"}, {"answer": "reject", "feedback": "0123456789"}),
    ],
)
def test_a_form_that_was_filled_in(content: dict[str, Any], values: dict[str, str]) -> None:
    assert filled(QUESTION, content) == values


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (None, "answer was left empty"),
        ([], "answer was left empty"),
        ({}, "answer was left empty"),
        ({"answer": "  "}, "answer was left empty"),
        ({"answer": "Approve"}, "answer is Approve, which is none of the options"),
        ({"answer": "approve reject"}, "answer is approve reject, which is none of the options"),
        ({"answer": True}, "answer is not text"),
        ({"answer": ["approve"]}, "answer is not text"),
        ({"answer": "approve", "feedback": 5}, "feedback is not text"),
        ({"answer": "approve", "feedback": "01234567890"}, "feedback has 11 characters, and 10 are the most"),
    ],
)
def test_a_form_that_was_not_filled_in_as_it_says(content: object, wrong: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        filled(QUESTION, content)
    assert refused.value.message == wrong
    assert refused.value.hint


def test_a_question_is_open_for_one_at_a_time() -> None:
    asked = OpenQuestions()
    assert asked.begin(KEY)
    assert not asked.may_put(KEY)
    assert not asked.begin(KEY)
    assert asked.begin(OTHER), "another question is another matter"
    asked.end(KEY, declined=False)
    assert asked.begin(KEY), "nobody has declined"


def test_a_declined_question_is_put_no_more_and_another_one_is() -> None:
    asked = OpenQuestions()
    asked.begin(KEY)
    asked.end(KEY, declined=True)
    assert not asked.may_put(KEY)
    assert not asked.begin(KEY)
    assert asked.may_put(OTHER)


def test_a_question_that_nobody_answers_is_put_so_often() -> None:
    asked = OpenQuestions(most=2)
    for _ in range(2):
        assert asked.begin(KEY)
        asked.end(KEY, declined=False)
    assert not asked.may_put(KEY)


def test_only_the_latest_questions_are_remembered() -> None:
    asked = OpenQuestions()
    for number in range(REMEMBERED + 1):
        asked.begin(("", str(number)))
        asked.end(("", str(number)), declined=True)
    assert asked.may_put(("", "0"))
    assert not asked.may_put(("", "1"))


def test_who_waits_is_told_now_and_then() -> None:
    now = [100.0]
    told: list[tuple[float, float]] = []
    waited = Waited(Patience(most_s=25, tell_s=5, now_s=lambda: now[0]), lambda *times: told.append(times))
    for now[0] in (100.0, 104.9, 105.0, 106.0, 109.9, 112.0):
        waited.beat()
    assert told == [(5.0, 25), (12.0, 25)]
    assert (waited.so_far_s, waited.left_s) == (12.0, 13.0)


@pytest.mark.parametrize(
    ("earlier", "result", "together"),
    [
        ({}, {"report": None, "warning": ""}, {}),
        ({"report": {"n": 1}}, {"report": None, "warning": ""}, {"report": {"n": 1}}),
        ({"report": {"n": 1}}, {"report": {"n": 2}}, {"report": {"n": 2}}),
        ({"warning": "one"}, {"warning": "two"}, {"warning": "one; two"}),
        ({"warning": "one"}, {"warning": "one"}, {"warning": "one"}),
        ({"warning": "one; two"}, {"warning": "two"}, {"warning": "one; two"}),
        ({"warning": "one"}, {}, {"warning": "one"}),
        ({}, {"warning": "two", "other": "unnamed"}, {"warning": "two"}),
    ],
)
def test_what_is_told_once_is_not_lost(earlier: Any, result: Any, together: Any) -> None:
    assert merge_told_once(("report", "warning"), earlier, result) == together
