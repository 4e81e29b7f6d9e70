"""The questions of a run to people, as rows: asked, withdrawn, answered. What an answer does to the run is
`answering.py`'s. An answer is to what was shown and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from handrail.domain.gates.gate import GATE_MACHINE, Gate, answered_gate
from handrail.domain.pipeline.answering import ABANDON, split_answer
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.run import PipelineRun
from handrail.kernel.errors import IllegalTransition, NotAllowed
from handrail.kernel.ledger import Actor
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

DECISION = "decision"
HASH_DIGITS = 32


class Answer(NamedTuple):
    """What was answered, and to which gate, where that is said."""

    text: str
    gate_id: str | None = None


class Decided(NamedTuple):
    """The option that was chosen, and what was said with it."""

    word: str
    feedback: str | None
    known: str = ""
    """For an answer that is on record already: by whom and when. Then nothing is left to do."""


def open_gate(unit: UnitOfWork, workflow_id: str) -> Gate | None:
    """The question this run waits for."""
    conditions = (("workflow_id", workflow_id), ("status", GATE_MACHINE.initial), ("kind", DECISION))
    found = next(iter(unit.select(Gate, Query(conditions, ("-created_at", "-id"), 1))), None)
    now = unit.get(Gate, found.id) if found is not None else None  # a selection does not show what this unit has put
    return now if now is not None and now.status == GATE_MACHINE.initial else None


def asked_gate(unit: UnitOfWork, run: PipelineRun, action: Action, files: Mapping[str, str]) -> Gate:
    """The gate of an action, open. One that shows what has changed since is withdrawn, and asked anew."""
    question = action.gate or action.phase
    content = _content(action, files)
    known = open_gate(unit, run.id)
    if known is not None and (known.question, known.content_hash) == (question, content):
        return known
    if known is not None:
        withdraw(unit, known)
    gate = Gate(
        id=unit.new_id("gate"),
        workflow_id=run.id,
        task_id=None,
        status=GATE_MACHINE.initial,
        question=question,
        options=list(dict.fromkeys((*action.options, ABANDON))),
        content_hash=content,
        answer=None,
        feedback=None,
        answered_by=None,
        channel=None,
        created_at=unit.now_ms(),
        answered_at=None,
        kind=DECISION,
    )
    unit.record("gate.opened", gate)
    return gate


def withdraw(unit: UnitOfWork, gate: Gate) -> None:
    unit.record("gate.withdrawn", msgspec.structs.replace(gate, status="withdrawn"))


def withdraw_open(unit: UnitOfWork, workflow_id: str) -> None:
    """Takes back the question that this run waits for, where there is one: it is not asked any more."""
    if (gate := open_gate(unit, workflow_id)) is not None:
        withdraw(unit, gate)


def settle(unit: UnitOfWork, gate: Gate, word: str, feedback: str | None, actor: Actor) -> None:
    unit.record("gate.answered", answered_gate(gate, actor, word, feedback, unit.now_ms()))


def answer_of(
    unit: UnitOfWork,
    run: PipelineRun,
    handed_out: Action | None,
    answer: Answer,
    files: Mapping[str, str],
    *,
    humans_decide: bool,
) -> Decided:
    """What an orchestrator brings from its person; the gate is settled by it."""
    gate = open_gate(unit, run.id)
    if (known := _on_record(unit, run, answer)) is not None:
        return known
    if handed_out is None or gate is None:
        raise IllegalTransition("nothing was asked that could be answered", hint="call again without user_response")
    if humans_decide:
        raise NotAllowed(
            "here only a person decides, not an agent for them",
            hint="the person runs: handrail approve, or handrail reject with what is to change",
            gate_id=gate.id,
        )
    if answer.gate_id not in (None, gate.id):
        raise IllegalTransition(
            f"{answer.gate_id} is not asked any more; {gate.question} is",
            hint="call without user_response to see it",
            gate_id=gate.id,
        )
    word, feedback = split_answer(answer.text, gate.options)
    _check_new(gate, handed_out, word, answer)
    check_shown(gate, handed_out, files)
    settle(unit, gate, word, feedback, unit.actor)
    return Decided(word, feedback)


def _on_record(unit: UnitOfWork, run: PipelineRun, answer: Answer) -> Decided | None:
    """The answer that its gate was given before, where this is the same one again. Raises where it is another."""
    gate = unit.get(Gate, answer.gate_id) if answer.gate_id is not None else None
    if gate is None or gate.workflow_id != run.id or gate.answer is None or gate.answered_at is None:
        return None
    word, feedback = split_answer(answer.text, gate.options)
    at = datetime.fromtimestamp(gate.answered_at / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    known = f"{gate.question} was answered: {gate.answer}, by {gate.answered_by} at {at}"
    if word != gate.answer:
        raise IllegalTransition(
            f"{known}; it cannot be answered {word} now",
            hint="call again without user_response to go on from there",
            gate_id=gate.id,
        )
    lost = "; what was said with it now was not taken" if feedback not in (None, gate.feedback) else ""
    return Decided(word, feedback, known + lost)


def _check_new(gate: Gate, handed_out: Action, word: str, answer: Answer) -> None:
    """Refuses what looks like the answer before, sent again because its reply was lost: this gate was opened by it."""
    if answer.gate_id is None and handed_out.opened_by == word:
        raise IllegalTransition(
            f"{gate.question} was opened by your last answer, which was {word} too; it may be the same one again",
            hint="send the gate_id of the gate you mean",
            gate_id=gate.id,
        )


def check_shown(gate: Gate, handed_out: Action, files: Mapping[str, str]) -> None:
    """Refuses an answer to what is not there any more."""
    if _content(handed_out, files) != gate.content_hash:
        raise IllegalTransition(
            f"{handed_out.shows or gate.question} was changed since it was shown",
            hint="call pipeline_next_action without user_response to see it as it is now",
            gate_id=gate.id,
        )


def _content(action: Action, files: Mapping[str, str]) -> str:
    """What an answer is to. Longer than the hashes that only tell texts apart: whoever writes the document may be the
    one who wants another approved in its place."""
    shown = f"{action.why or ''}\n{files.get(action.shows or '', '')}"
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]
