"""WorkRail's workflows with known fields where nobody expects them: nothing of them vanishes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.domain.exchange.test_workrail import as_guide, by_id, step, taken, with_steps


def test_what_a_loop_says_besides_its_steps_is_guidance_of_its_first() -> None:
    looped = {
        "id": "round",
        "type": "loop",
        "title": "R",
        "loop": {"type": "for", "count": 2},
        "prompt": "Go slowly.",
        "guidance": ["Mind the gap"],
        "agentRole": "A tester",
        "askForFiles": True,
        "validationCriteria": [{"type": "contains", "value": "x"}],
        "body": [step()],
    }
    guidance = by_id(with_steps(looped))["one"]["guidance"]
    assert guidance[1:-1] == [
        "Go slowly.",
        "Role: A tester",
        "Mind the gap",
        "askForFiles: true",
        'validationCriteria: [{"type": "contains", "value": "x"}]',
    ]


def test_texts_that_should_be_lists_are_read_all_the_same() -> None:
    whole = {
        "metaGuidance": "Be brief.",
        "preconditions": ["A branch", {"tool": "git"}],
        "clarificationPrompts": "Who?",
    }
    found = taken(
        {"id": "some-guide", "name": "G", "version": "1.0.0", "steps": [step(guidance="Look twice.")], **whole}
    )
    as_guide(found)
    assert found.guide["metaGuidance"] == ["Be brief."]
    assert found.guide["preconditions"] == ["A branch", '{"tool": "git"}']
    assert found.guide["clarificationPrompts"] == ["Who?"]
    assert by_id(found)["one"]["guidance"] == ["Look twice."]


def test_blocks_beside_a_prompt_are_added_to_it() -> None:
    found = by_id(with_steps(step(promptBlocks={"goal": "Understand it."})))
    assert found["one"]["prompt"] == "Do it.\n\nUnderstand it."


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": ["Do", "it"]},
        {"promptBlocks": ["goal"]},
        {"agentRole": {"name": "tester"}},
        {"assessmentRefs": "ready"},
        {"loop": {"type": "for"}},
        {"askForFiles": "yes"},
    ],
)
def test_a_field_of_another_kind_is_guidance_word_for_word(fields: dict[str, Any]) -> None:
    found = with_steps(step(**fields))
    ((key, value),) = fields.items()
    assert by_id(found)["one"]["guidance"] == [f"{key}: {value if isinstance(value, str) else json.dumps(value)}"]
    assert f"step one: {key} became guidance, word for word" in found.remarks


def test_what_is_said_of_the_whole_and_not_taken_is_said() -> None:
    guide = {"id": "some-guide", "name": "G", "description": "D", "version": "1.0.0", "steps": [step()]}
    judged = {"id": "ready", "purpose": "It is ready."}
    found = taken({**guide, "category": "c" * 65, "assessments": [judged, "odd"], "references": {"a": 1}})
    as_guide(found)
    assert found.guide["category"] == "c" * 63 + "…"
    assert found.guide["metaGuidance"] == ["Before you go on, judge: It is ready.", '"odd"']
    assert found.remarks == [
        'no step refers to these assessments; the notes about the whole have them: ready, "odd"',
        "the category was too long and was cut after 63 characters",
        "a guide here has no place for: references",
    ]
