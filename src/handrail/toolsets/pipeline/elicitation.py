"""Toolset `pipeline`, its questions to people: a gate's question as a form, and the form's answer as `user_response`.
Loaded when a pipeline runs; the tools are declared in `tools.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail.domain.pipeline.engine import QUESTIONS
from handrail.operation import Field, Question
from handrail.toolsets.pipeline.tools import NextAction

SHOWN = 4_000
"""How many characters of the subject are shown. A form is no place to read long texts: the whole text is among the
run's documents."""
SAID = 10_000
"""How many characters a person can add to an answer; `user_response` takes twice as many."""
ANSWER, FEEDBACK = "answer", "feedback"


def question(request: NextAction, shown: Mapping[str, Any]) -> Question | None:
    """The question of a waiting gate; None for every other action."""
    gate_id = shown.get("gate_id")
    if shown.get("type") not in QUESTIONS or gate_id is None:
        return None
    return Question(
        id=gate_id,
        message=_cut_to_shown(str(shown["present_to_user"]), request.workspace) or str(shown["name"]),
        form=(
            Field(name=ANSWER, title="Your decision", options=tuple(shown["options"]), required=True),
            Field(name=FEEDBACK, title="What the next agent is told", most=SAID),
        ),
    )


def answered(request: NextAction, question: Question, filled: Mapping[str, str]) -> NextAction:
    """The answer in the document's form: the option, then what was said. It applies to this gate and no other."""
    said = f"{filled[ANSWER]} {filled.get(FEEDBACK, '')}".strip()
    return NextAction(request.workspace, user_response=said, gate_id=question.id)


def _cut_to_shown(text: str, workspace: str) -> str:
    if len(text) <= SHOWN:
        return text
    beginning = text[:SHOWN]
    whole_lines, _, _ = beginning.rpartition("\n")
    beginning = whole_lines if len(whole_lines) > SHOWN // 2 else beginning
    left = len(text) - len(beginning)
    return f"{beginning.rstrip()}\n\n… {left} characters more: the whole text lies in {workspace.rstrip('/')}/"
