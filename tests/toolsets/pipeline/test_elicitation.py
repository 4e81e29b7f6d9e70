"""A gate as a question to a person, and their form as the answer the pipeline takes."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.toolsets.pipeline.elicitation import SHOWN, answered, question
from handrail.toolsets.pipeline.tools import NextAction

REQUEST = NextAction(".specs/20260401-work", previous_action_complete=True, previous_tokens=5, wait_ms=100)
GATE: dict[str, Any] = {
    "type": "checkpoint",
    "name": "checkpoint-a",
    "present_to_user": "## Design Review\n\nA design.",
    "options": ["approve", "reject"],
    "gate_id": "gate_7",
    "still_waiting": True,
}


def test_a_gate_asks_with_what_it_shows_and_its_options() -> None:
    asked = question(REQUEST, GATE)
    assert asked is not None
    assert (asked.id, asked.message) == ("gate_7", "## Design Review\n\nA design.")
    assert asked.form[0].options == ("approve", "reject")


@pytest.mark.parametrize(
    "shown",
    [
        {"type": "spawn_agent", "agent": "a"},
        {"type": "done"},
        {"type": "exec", "gate_id": "gate_7"},
        {key: value for key, value in GATE.items() if key != "gate_id"},
    ],
)
def test_whatever_is_no_open_gate_asks_nothing(shown: dict[str, Any]) -> None:
    assert question(REQUEST, shown) is None


def test_a_human_gate_asks_too() -> None:
    asked = question(REQUEST, {**GATE, "type": "human_gate", "options": ["done", "skip"]})
    assert asked is not None
    assert asked.form[0].options == ("done", "skip")


def test_a_gate_that_shows_nothing_is_asked_by_its_name() -> None:
    asked = question(REQUEST, {**GATE, "present_to_user": ""})
    assert asked is not None
    assert asked.message == "checkpoint-a"


@pytest.mark.parametrize("line", ["word " * 20 + "\n", "x" * 100_000])
def test_a_long_text_is_cut_and_says_where_the_rest_lies(line: str) -> None:
    text = (line * 10_000)[: SHOWN * 10]
    asked = question(REQUEST, {**GATE, "present_to_user": text})
    assert asked is not None
    shown, _, rest = asked.message.rpartition("\n\n… ")
    assert text.startswith(shown)
    assert SHOWN - 200 < len(shown) <= SHOWN
    more, _, where = rest.partition(" characters more: ")
    assert where == "the whole text lies in .specs/20260401-work/"
    assert len(text) - int(more) in range(len(shown), len(shown) + 3)


def test_a_text_that_just_fits_is_whole() -> None:
    asked = question(REQUEST, {**GATE, "present_to_user": "x" * SHOWN})
    assert asked is not None
    assert asked.message == "x" * SHOWN


def test_the_form_is_the_documents_answer_to_that_gate_and_reports_nothing_else() -> None:
    asked = question(REQUEST, GATE)
    assert asked is not None
    brought = answered(REQUEST, asked, {"answer": "reject", "feedback": "too slow"})
    assert brought == NextAction(".specs/20260401-work", user_response="reject too slow", gate_id="gate_7")
    assert answered(REQUEST, asked, {"answer": "approve"}).user_response == "approve"
