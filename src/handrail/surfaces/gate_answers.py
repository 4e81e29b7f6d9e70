"""A person's answer to a gate, for every surface a person uses: the gate as it is now, and the answer to it.

An answer applies to what was shown. If the document has changed since, a new question is asked about it in the same
unit of work, and nothing is answered. Documents are read before a unit of work and passed in; nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.domain.gates.gate import REVIEW, Gate, close_review
from handrail.domain.pipeline.answers import ABANDON, REJECT
from handrail.domain.pipeline.engine import QUESTIONS, Action, decide
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import asked_gate
from handrail.domain.pipeline.turns import answer_gate
from handrail.domain.pipeline.workspace_texts import WorkspaceTexts
from handrail.kernel.errors import IllegalTransition, InvalidParams
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call

WORD, REMARK = 200, 20_000
"""The longest word that closes a review, and the longest remark with any answer, in characters."""


class OpenGate(msgspec.Struct, frozen=True, kw_only=True):
    """A waiting gate, with what it is about."""

    gate: Gate
    run: PipelineRun
    label: str
    why: str | None
    path: str | None
    """The document's path within the repository; None if none is shown."""
    text: str | None
    """None if the document does not exist."""
    gone: bool
    """True if this run wrote the document and it no longer exists."""
    changed: bool
    """True if the document changed since the question was asked: this is then another gate, about what is there now."""


def documents_of(call: Call, run: PipelineRun) -> WorkspaceTexts:
    """What a run's documents say now, read from the run's own repository wherever the question is asked."""
    return call.world.specs(run.repository_path).texts(run.workspace)


def asked_now(unit: UnitOfWork, known: Gate, files: Mapping[str, str]) -> OpenGate:
    """The gate about the current document. Raises if its run is not waiting."""
    run = unit.get(PipelineRun, known.workflow_id)
    handed_out = run.action_handed_out() if run is not None else None
    if run is None or handed_out is None or handed_out.type not in QUESTIONS:
        raise IllegalTransition(
            f"gate {known.id} belongs to no run that waits", hint="`handrail status` shows what waits"
        )
    gate = asked_gate(unit, run, handed_out, files)
    if gate.id != known.id:
        _check_still_next(run, handed_out, files)
    shows = handed_out.shows
    return OpenGate(
        gate=gate,
        run=run,
        label=run.flow_followed().phase(handed_out.phase).label,
        why=handed_out.why,
        path=f"{run.workspace}/{shows}" if shows else None,
        text=files.get(shows) if shows else None,
        gone=shows is not None and shows in run.run_state().judged and shows not in files,
        changed=gate.id != known.id,
    )


def _check_still_next(run: PipelineRun, handed_out: Action, files: Mapping[str, str]) -> None:
    """Refuses to ask about a document that must be judged again first, such as a list of tasks that was changed."""
    comes = decide(run.flow_followed(), run.run_state(), run.facts(humans_decide=True), files)
    if comes.gate != handed_out.gate:
        raise IllegalTransition(
            f"{handed_out.shows or handed_out.gate} was changed since it was shown: {comes.phase} is done again first",
            hint="its agent goes on with pipeline_next_action; you are asked again after that",
        )


def check_there(asked: OpenGate, answer: str) -> None:
    """Raises if work would continue with a document that is gone, or that nobody can have read."""
    if answer in (REJECT, ABANDON):
        return
    if asked.text is not None and not asked.text.strip():
        raise IllegalTransition(
            f"{asked.path} is empty, or too long to be read as a document, so there is nothing to answer {answer} to",
            hint="`reject` has it written again; a document has at most 2 MiB",
        )
    if asked.gone:
        raise IllegalTransition(
            f"{asked.path} is not there any more, so there is nothing to answer {answer} to",
            hint="put it back; or `handrail reject` has it written again",
        )


def answer(unit: UnitOfWork, asked: OpenGate, word: str, said: str | None, files: Mapping[str, str]) -> dict[str, Any]:
    """Answers what was asked, and says what happens next."""
    run = answer_gate(unit, asked.gate, word, said, files)
    state = run.run_state()
    after = f"The run is {state.ended}." if state.ended else "The run continues at its agent's next call."
    return {
        "gate_id": asked.gate.id,
        "gate": asked.gate.question,
        "answer": word,
        "next": after,
        "title": asked.run.title,
        "workspace": asked.run.workspace,
        "shows": asked.path,
        "content_hash": asked.gate.content_hash,
    }


def closed_review(unit: UnitOfWork, gate: Gate, actor: Actor, word: str, remark: str | None) -> Gate:
    """The review, closed with a person's word."""
    if gate.kind != REVIEW:
        raise InvalidParams(
            f"{gate.id} is a decision that work waits for, not a review", hint="`handrail status` shows it"
        )
    for name, given, most in (("the word", word, WORD), ("the remark", remark or "", REMARK)):
        if len(given) > most:
            raise InvalidParams(f"{name} has {len(given)} characters, and {most} is the most", hint="make it shorter")
    if not word.strip():
        raise InvalidParams("the word that closes a review cannot be empty", hint="ok, fixed, rejected, …")
    return close_review(unit, gate, actor, word, remark)
