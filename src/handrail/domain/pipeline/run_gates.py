"""A run's questions to people, as rows: asked, withdrawn, answered. `answers.py` decides what an answer does to the
run. An answer applies only to what was shown."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from handrail.domain.gates.gate import GATE_MACHINE, Gate, answered_gate, new_gate
from handrail.domain.pipeline.answers import ABANDON, REJECT, split_answer
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.workspace_texts import UNREAD, fingerprint
from handrail.kernel.clock import iso_time
from handrail.kernel.errors import IllegalTransition, NotAllowed
from handrail.kernel.ledger import Actor
from handrail.kernel.records import Query, UnitOfWork

DECISION = "decision"


class GateAnswer(NamedTuple):
    """An answer, and the gate it is for if the caller names one."""

    text: str
    gate_id: str | None = None


class DecidedOption(NamedTuple):
    """The chosen option and the words that came with it."""

    word: str
    feedback: str | None
    known: str = ""
    """Set if this answer is already recorded: by whom and when. Then there is nothing left to do."""


def open_gate(unit: UnitOfWork, workflow_id: str) -> Gate | None:
    """The question this run is waiting for."""
    conditions = (("workflow_id", workflow_id), ("status", GATE_MACHINE.initial), ("kind", DECISION))
    found = next(iter(unit.select(Gate, Query(conditions, ("-created_at", "-id"), 1))), None)
    now = unit.get(Gate, found.id) if found is not None else None  # a select does not see what this unit has written
    return now if now is not None and now.status == GATE_MACHINE.initial else None


def asked_gate(unit: UnitOfWork, run: PipelineRun, action: Action, files: Mapping[str, str]) -> Gate:
    """The open gate for an action. If the open one shows outdated content, it is withdrawn and asked anew."""
    question = action.gate or action.phase
    content = _content(action, files)
    known = open_gate(unit, run.id)
    if known is not None and (known.question, known.content_hash) == (question, content):
        return known
    if known is not None:
        withdraw(unit, known)
    options = dict.fromkeys((*action.options, ABANDON))
    gate = new_gate(unit, run.id, DECISION, question, options=tuple(options), content_hash=content)
    unit.record("gate.opened", gate)
    return gate


def withdraw(unit: UnitOfWork, gate: Gate) -> None:
    unit.record("gate.withdrawn", msgspec.structs.replace(gate, status="withdrawn"))


def withdraw_open(unit: UnitOfWork, workflow_id: str) -> None:
    """Withdraws the question this run is waiting for, if any: it is no longer asked."""
    if (gate := open_gate(unit, workflow_id)) is not None:
        withdraw(unit, gate)


def settle(unit: UnitOfWork, gate: Gate, word: str, feedback: str | None, actor: Actor) -> None:
    unit.record("gate.answered", answered_gate(gate, actor, word, feedback, unit.now_ms()))


def answer_of(
    unit: UnitOfWork,
    run: PipelineRun,
    handed_out: Action | None,
    answer: GateAnswer,
    files: Mapping[str, str],
    *,
    humans_decide: bool,
) -> DecidedOption:
    """Takes a person's answer that an orchestrator passes on, and settles the gate with it."""
    gate = open_gate(unit, run.id)
    if (known := _recorded_answer(unit, run, answer)) is not None:
        return known
    if handed_out is None or gate is None:
        raise IllegalTransition("no question is open", hint="call again without user_response")
    if humans_decide:
        raise NotAllowed(
            "only a person decides here; an agent cannot answer for them",
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
    check_readable(handed_out, files, word)
    settle(unit, gate, word, feedback, unit.actor)
    return DecidedOption(word, feedback)


def _recorded_answer(unit: UnitOfWork, run: PipelineRun, answer: GateAnswer) -> DecidedOption | None:
    """The recorded answer, if its gate already has one and this repeats it. Raises if this one differs."""
    gate = unit.get(Gate, answer.gate_id) if answer.gate_id is not None else None
    if gate is None or gate.workflow_id != run.id or gate.answer is None or gate.answered_at is None:
        return None
    word, feedback = split_answer(answer.text, gate.options)
    known = f"{gate.question} was answered: {gate.answer}, by {gate.answered_by} at {iso_time(gate.answered_at)}"
    if word != gate.answer:
        raise IllegalTransition(
            f"{known}; it cannot be answered {word} now",
            hint="call again without user_response to go on from there",
            gate_id=gate.id,
        )
    lost = "; what was said with it now was not taken" if feedback not in (None, gate.feedback) else ""
    return DecidedOption(word, feedback, known + lost)


def _check_new(gate: Gate, handed_out: Action, word: str, answer: GateAnswer) -> None:
    """Refuses a likely resend of the previous answer after a lost reply: that same answer opened this gate."""
    if answer.gate_id is None and handed_out.opened_by == word:
        raise IllegalTransition(
            f"{gate.question} was opened by your last answer, which was {word} too; it may be the same one again",
            hint="send the gate_id of the gate you mean",
            gate_id=gate.id,
        )


def check_shown(gate: Gate, handed_out: Action, files: Mapping[str, str]) -> None:
    """Refuses an answer if what was shown has changed since."""
    if _content(handed_out, files) != gate.content_hash:
        raise IllegalTransition(
            f"{' or '.join((handed_out.shows or gate.question, *handed_out.about))} was changed since it was shown",
            hint="call pipeline_next_action without user_response to see it as it is now",
            gate_id=gate.id,
        )


def check_readable(handed_out: Action, files: Mapping[str, str], word: str) -> None:
    """Refuses to go on with a document that nobody can have read."""
    name = handed_out.shows
    if name is not None and word not in (REJECT, ABANDON) and fingerprint(files, name) == UNREAD:
        raise IllegalTransition(
            f"{name} cannot be read whole, so there is nothing to answer {word} to",
            hint="`reject` has it written again; a document is a file that can be read, with at most 2 MiB",
        )


def _content(action: Action, files: Mapping[str, str]) -> str:
    """A hash of what an answer applies to: the reason, and the bytes of the document and of what that is about. The
    author of the document may be the one trying to get a different one approved."""
    named = [name for name in (action.shows, *action.about) if name is not None]
    parts = (action.why or "", *(part for name in named for part in (name, fingerprint(files, name))))
    hashed = hashlib.sha256()
    for part in parts:  # each with its length: no two lists of parts are the same bytes
        raw = part.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(raw) + raw)
    return hashed.hexdigest()
