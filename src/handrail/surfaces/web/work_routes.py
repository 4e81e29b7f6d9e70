"""The page's routes about work, and a person's decisions: workflows, tasks, their changes, questions, answers.

Handlers parse a request and call the read models; `surfaces/gate_answers.py` has the rules for answers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.gates.gate import GATE_MACHINE, Gate
from handrail.domain.overview.gates import Gates, GateView, asked_at, find_gate, gate_view, is_shown, workflow_gates
from handrail.domain.overview.graph import GraphView, Layouts
from handrail.domain.overview.inbox_items import Needs, needs
from handrail.domain.overview.inspector import TaskDocument, task_document
from handrail.domain.overview.pipeline import pipeline_view
from handrail.domain.overview.workflows import Home, WorkflowDocument, home, workflow_document
from handrail.domain.pipeline.answers import ABANDON, REJECT
from handrail.domain.pipeline.engine import QUESTIONS, Action
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import DECISION, open_gate
from handrail.domain.pipeline.turns import RunRules
from handrail.kernel.errors import IllegalTransition, InvalidParams
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call
from handrail.surfaces.gate_answers import (
    REMARK,
    WORD,
    OpenGate,
    answer,
    asked_now,
    check_there,
    closed_review,
    documents_of,
)
from handrail.surfaces.runs import know_runs
from handrail.surfaces.web.diffs import TaskDiff, task_diff
from handrail.surfaces.web.route import PageRequest as Request
from handrail.surfaces.web.route import PageRoute, read, task_asked, workflow_asked, write

NEEDS_REASON = (REJECT, ABANDON)
"""Answers that say something is wrong, which need a reason: the one who has to fix it must know what."""
NAME = 200
"""The longest hash, answer or id, in characters."""
OPENED = 200
"""How many groups of a drawn plan can be open at once."""
LAYOUTS = Layouts()
"""The latest layouts, shared by all visitors: a plan is laid out once."""


class PersonDecision(NamedTuple):
    """What a person decided, about exactly what they were shown."""

    answer: str
    feedback: str | None
    content_hash: str


class _Waiting(NamedTuple):
    """A question, the run that asks it, and the action that run is waiting at."""

    gate: Gate
    run: PipelineRun | None
    asked: Action | None


# -- reading ----------------------------------------------------------------------------------------------------------


def get_home(call: Call, request: Request) -> Home:
    know_runs()
    return home(call.work, archived=request.query.get("archived") in ("1", "true"))


def get_needs(call: Call, request: Request) -> Needs:  # noqa: ARG001 - every handler is given the request
    know_runs()
    return needs(call.work)


def get_workflow(call: Call, request: Request) -> WorkflowDocument:
    know_runs()
    document = workflow_document(call.work, workflow_asked(call.work, request.path["workflow"]))
    rules = RunRules(call.humans_decide, call.budget.prices, call.budget.limits)
    return msgspec.structs.replace(document, pipeline=pipeline_view(call.work, document.workflow.id, rules))


def get_workflow_gates(call: Call, request: Request) -> Gates:
    return workflow_gates(call.work, workflow_asked(call.work, request.path["workflow"]))


def get_task(call: Call, request: Request) -> TaskDocument:
    know_runs()
    return task_document(call.work, task_asked(call.work, request.path["task"]))


def get_task_diff(call: Call, request: Request) -> TaskDiff:
    return task_diff(call, request.visitor.actor, request.path["task"], request.query.get("file"))


def get_graph(call: Call, request: Request) -> GraphView:
    """The plan, drawn. Whoever says neither `grouped=1` nor `grouped=0` gets what suits its size."""
    workflow = workflow_asked(call.work, request.path["workflow"])
    grouped = {"1": True, "0": False}.get(request.query.get("grouped", ""))
    opened = tuple(filter(None, request.query.get("open", "").split(",")))[:OPENED]
    return LAYOUTS.view(call.work, workflow.id, grouped, opened)


def get_gate(call: Call, request: Request) -> GateView:
    """The question as it is now. If its document has changed, a person who decides is asked anew; for anybody else, and
    if the work must be judged again first, the change is only reported."""
    know_runs()
    actor = request.visitor.actor
    waiting = call.ledger.run(actor, lambda unit: _waiting(unit, request.path["gate"]))
    files = documents_of(call, waiting.run) if waiting.asked is not None and waiting.run is not None else {}
    if waiting.asked is not None and request.visitor.decides:
        with contextlib.suppress(IllegalTransition):  # answered meanwhile, or not to be asked about as it is
            return call.ledger.run(actor, lambda unit: _asked_anew(unit, waiting.gate.id, files))

    def look(unit: UnitOfWork) -> GateView:
        now = _waiting(unit, waiting.gate.id)
        changed = now.asked is not None and not is_shown(now.gate, now.asked, files)
        return gate_view(unit, now.gate, files, changed=changed)

    return call.ledger.run(actor, look)


def _asked_anew(unit: UnitOfWork, gate_id: str, files: Mapping[str, str]) -> GateView:
    known = find_gate(unit, gate_id)
    _check_open(unit, known)
    asked = asked_now(unit, known, files)
    return gate_view(unit, asked.gate, files, changed_from=known.id if asked.changed else None)


# -- deciding ---------------------------------------------------------------------------------------------------------


def post_decision(call: Call, request: Request) -> dict[str, Any]:
    """A person's answer to a gate, recorded with their name and this page."""
    request.visitor.check_decides("decides")
    decision = _decision(request.body)
    know_runs()
    actor = request.visitor.actor
    waiting = call.ledger.run(actor, lambda unit: _waiting(unit, request.path["gate"]))
    if waiting.gate.kind != DECISION:
        raise InvalidParams(
            f"{waiting.gate.id} is a review; nothing waits for it", hint="close it with /api/reviews/{id}/close"
        )
    files = documents_of(call, waiting.run) if waiting.run is not None else {}

    def decide(unit: UnitOfWork) -> dict[str, Any] | OpenGate:
        known = find_gate(unit, waiting.gate.id)
        _check_open(unit, known)
        asked = asked_now(unit, known, files)
        if asked.changed:
            return asked
        if decision.content_hash != asked.gate.content_hash:
            raise _stale(asked.gate, asked.path)
        _check_option(decision.answer, asked.gate)
        check_there(asked, decision.answer)
        return answer(unit, asked, decision.answer, decision.feedback, files)

    done = call.ledger.run(actor, decide, writing=True)
    if isinstance(done, OpenGate):  # the new question is kept, and nothing is answered
        raise _stale(done.gate, done.path)
    return done


def post_review_closed(call: Call, request: Request) -> dict[str, Any]:
    """A person's word on what they were asked to look at."""
    request.visitor.check_decides("decides")
    word = _text(request.body, "word", WORD) or ""
    remark = _text(request.body, "remark", REMARK)
    gate = find_gate(call.work, request.path["gate"])
    closed = closed_review(call.work, gate, request.visitor.actor, word, remark)
    return {"gate_id": closed.id, "answer": closed.answer, "next": "It is closed; nothing waited for it."}


def _decision(body: Any) -> PersonDecision:
    word = _text(body, "answer", NAME)
    feedback = _text(body, "feedback", REMARK)
    shown = _text(body, "content_hash", NAME)
    if word is None or shown is None:
        raise InvalidParams(
            "a decision has an answer and the content_hash of what was shown",
            hint="GET /api/gates/{id} has both: options and content_hash",
        )
    if word in NEEDS_REASON and feedback is None:
        raise InvalidParams(f"{word} needs a reason", hint="say in `feedback` what is wrong; the next agent is told")
    return PersonDecision(word, feedback, shown)


def _text(body: Any, name: str, most: int) -> str | None:
    """A posted text; None if left out or blank."""
    value = body.get(name) if isinstance(body, dict) else None
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidParams(f"{name} is a text", hint="send a JSON object with texts")
    if len(value) > most:
        raise InvalidParams(f"{name} has {len(value)} characters, and {most} is the most", hint="make it shorter")
    return value if value.strip() else None


def _check_option(word: str, gate: Gate) -> None:
    options = dict.fromkeys((*gate.options, ABANDON))
    if word not in options:
        raise InvalidParams(
            f"{word} is not a possible answer", hint=f"one of {', '.join(options)}", options=list(options)
        )


def _check_open(unit: UnitOfWork, gate: Gate) -> None:
    """Raises if a question is no longer being asked, naming the one that is asked now."""
    if gate.status == GATE_MACHINE.initial:
        return
    place = asked_at(unit.get(PipelineRun, gate.workflow_id), gate)
    name = place.phase or gate.question
    if gate.answer is not None:
        raise IllegalTransition(
            f"{name} was already answered: {gate.answer}, by {gate.answered_by} via {gate.channel}",
            hint="the workflow shows what happened next",
            gate_id=gate.id,
            answer=gate.answer,
            path=place.path,
            phase=place.phase,
        )
    now = open_gate(unit, gate.workflow_id)
    if now is None:
        raise IllegalTransition(
            f"{name} is no longer being asked",
            hint="the run no longer needs an answer",
            gate_id=gate.id,
            path=place.path,
            phase=place.phase,
        )
    raise _stale(now, asked_at(unit.get(PipelineRun, now.workflow_id), now).path)


def _stale(gate: Gate, path: str | None) -> IllegalTransition:
    return IllegalTransition(
        f"{path or gate.question} has changed since you saw it; nothing was answered",
        hint="read the current version, then answer",
        gate_id=gate.id,
        content_hash=gate.content_hash,
        path=path,
    )


def _waiting(unit: UnitOfWork, gate_id: str) -> _Waiting:
    gate = find_gate(unit, gate_id)
    run = unit.get(PipelineRun, gate.workflow_id) if gate.kind == DECISION else None
    handed_out = run.action_handed_out() if run is not None and gate.status == GATE_MACHINE.initial else None
    asks = handed_out is not None and handed_out.type in QUESTIONS
    return _Waiting(gate, run, handed_out if asks else None)


WORK_ROUTES: tuple[PageRoute, ...] = (
    read("/api/home", get_home),
    read("/api/needs", get_needs),
    read("/api/gates/{gate}", get_gate, stored=False),
    write("/api/gates/{gate}/decision", post_decision, stored=False),
    write("/api/reviews/{gate}/close", post_review_closed),
    read("/api/workflows/{workflow}", get_workflow),
    read("/api/workflows/{workflow}/graph", get_graph),
    read("/api/workflows/{workflow}/gates", get_workflow_gates),
    read("/api/tasks/{task}", get_task),
    read("/api/tasks/{task}/diff", get_task_diff, stored=False),
)
