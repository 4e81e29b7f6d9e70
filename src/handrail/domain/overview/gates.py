"""Questions to people as the page shows them: rows in the history of a workflow, and single questions with everything
they are about. The current text of documents is passed in; nothing is read from disk and nothing answered here.

Reviews that a person was asked for in a workflow: open ones first, then closed ones. No work waits for them. Reads
only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.gates.gate import GATE_MACHINE, REVIEW, Gate, gates_of
from handrail.domain.journal.journal import resolutions
from handrail.domain.overview.pipeline import phase_asked_at
from handrail.domain.overview.rows import agent_names, task_names
from handrail.domain.pipeline.answers import meanings
from handrail.domain.pipeline.engine import QUESTIONS, Action
from handrail.domain.pipeline.flow import NUMBER
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import DECISION, check_shown
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import IllegalTransition, NotFound
from handrail.kernel.records import Query, UnitOfWork, found_by

SHOWN = 500
"""How many questions of one workflow are listed; the newest ones."""


class GateRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question in a history."""

    id: str
    kind: str
    status: str
    question: str
    task_id: str | None
    task_name: str | None
    options: list[str]
    answer: str | None
    feedback: str | None
    answered_by: str | None
    channel: str | None
    content_hash: str
    created_at: int
    answered_at: int | None
    waited_ms: int
    """How long it waited for its answer, or has waited until now. A withdrawn question counts as not having waited."""
    phase: str | None = None
    """In a run, the label of the phase it is asked at."""
    path: str | None = None
    """The document shown with it, relative to the repository."""
    withdrawn: str | None = None
    """Why it was withdrawn, if known."""


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """The questions of one workflow, newest first."""

    gates: list[GateRow]
    more: int


class GateView(msgspec.Struct, frozen=True, kw_only=True):
    """One question with everything it is about."""

    id: str
    kind: str
    workflow_id: str
    workflow_name: str
    task_id: str | None
    task_name: str | None
    question: str
    title: str
    phase: str | None
    why: str | None
    options: list[str]
    meanings: dict[str, str]
    """What each answer does, if that is not clear from the question."""
    path: str | None
    content_hash: str
    created_at: int
    status: str
    text: str | None
    """The whole document; None if there is none to show or it does not exist."""
    gone: bool
    """True if this run wrote the document and it no longer exists."""
    changed: bool
    """True if the document is no longer what was asked about."""
    changed_from: str | None
    """The question that was asked before the document changed."""
    answer: str | None
    feedback: str | None
    answered_by: str | None
    channel: str | None
    answered_at: int | None
    diff_task: str | None
    """The task whose changes are to be judged."""
    sender: str | None = None


class QuestionMaterial(msgspec.Struct, frozen=True, kw_only=True):
    """What a question is about, from the run that asks it."""

    title: str
    phase: str | None = None
    why: str | None = None
    shows: str | None = None
    path: str | None = None
    """The document, relative to the repository."""
    task_id: str | None = None
    meanings: dict[str, str] = {}


class AskedAt(NamedTuple):
    """Where in its flow a run asks a question."""

    phase: str | None = None
    path: str | None = None


def asked_at(run: PipelineRun | None, gate: Gate) -> AskedAt:
    """The phase and the document of a run's question, according to the flow; also for a question that is over."""
    flow = run.flow_followed() if run is not None and gate.kind == DECISION else None
    if run is None or flow is None or not flow.knows(phase_asked_at(gate)):
        return AskedAt()
    phase = flow.phase(phase_asked_at(gate))
    name = phase.shows if gate.question == phase.id else phase.output if gate.question.endswith("-limit") else None
    known = name is not None and NUMBER not in name
    return AskedAt(phase.label, f"{run.workspace}/{name}" if known else None)


def find_gate(unit: UnitOfWork, gate_id: str) -> Gate:
    gate = unit.get(Gate, gate_id)
    if gate is None:
        raise NotFound(f"there is no question {gate_id[:100]}", hint="everything that waits for you is under Needs you")
    return gate


def gate_rows(unit: UnitOfWork, gates: Sequence[Gate]) -> list[GateRow]:
    names = task_names(unit, (gate.task_id for gate in gates))
    now = unit.now_ms()
    runs = {run.id: run for run in found_by(unit, PipelineRun, "id", (gate.workflow_id for gate in gates))}
    places = {gate.id: asked_at(runs.get(gate.workflow_id), gate) for gate in gates}
    return [
        GateRow(
            id=gate.id,
            kind=gate.kind,
            status=gate.status,
            question=gate.question,
            task_id=gate.task_id,
            task_name=names.get(gate.task_id or ""),
            options=gate.options,
            answer=gate.answer,
            feedback=gate.feedback,
            answered_by=gate.answered_by,
            channel=gate.channel,
            content_hash=gate.content_hash,
            created_at=gate.created_at,
            answered_at=gate.answered_at,
            waited_ms=_waited(gate, now),
            phase=places[gate.id].phase,
            path=places[gate.id].path,
            withdrawn=_why_withdrawn(gate, gates, runs.get(gate.workflow_id)),
        )
        for gate in gates
    ]


def _why_withdrawn(gate: Gate, gates: Sequence[Gate], run: PipelineRun | None) -> str | None:
    """Why a question was withdrawn. If it was asked again about different content, its document had changed."""
    if gate.status != "withdrawn":
        return None
    for other in gates:
        same = (other.workflow_id, other.question) == (gate.workflow_id, gate.question)
        if same and other.content_hash != gate.content_hash and other.created_at >= gate.created_at:
            return "the document was changed"
    return "the run was ended" if run is not None and run.run_state().ended is not None else None


def _waited(gate: Gate, now: int) -> int:
    if gate.status == "withdrawn":
        return 0
    return max(0, (gate.answered_at if gate.answered_at is not None else now) - gate.created_at)


def workflow_gates(unit: UnitOfWork, workflow: Workflow, most: int = SHOWN) -> Gates:
    """The questions of a workflow, the newest first."""
    newest = gates_of(unit, workflow.id, ("-created_at", "-id"), most)
    newest.sort(key=lambda gate: (gate.created_at, gate.id), reverse=True)
    there = unit.count(Gate, Query((("workflow_id", workflow.id),)))
    shown = newest[:most]
    return Gates(gates=gate_rows(unit, shown), more=there - len(shown))


def material_of(unit: UnitOfWork, gate: Gate) -> QuestionMaterial:
    """What a question is about. If its run has moved on, only the title is known."""
    run = unit.get(PipelineRun, gate.workflow_id) if gate.kind == DECISION else None
    if run is None:
        task = unit.get(Task, gate.task_id) if gate.task_id is not None else None
        return QuestionMaterial(title=task.name if task is not None else gate.question, task_id=gate.task_id)
    asks = run.action_handed_out()
    if asks is None or asks.type not in QUESTIONS or (asks.gate or asks.phase) != gate.question:
        return QuestionMaterial(title=run.title)
    flow = run.flow_followed()
    return QuestionMaterial(
        title=run.title,
        phase=flow.phase(asks.phase).label if flow.knows(asks.phase) else asks.phase,
        why=asks.why,
        shows=asks.shows,
        path=f"{run.workspace}/{asks.shows}" if asks.shows else None,
        task_id=next(iter(run.tasks_handed_out()), None),
        meanings=meanings(flow, run.run_state(), asks) if flow.knows(asks.phase) else {},
    )


def is_shown(gate: Gate, asks: Action, files: Mapping[str, str]) -> bool:
    """Whether the documents are still what the question was asked about."""
    try:
        check_shown(gate, asks, files)
    except IllegalTransition:
        return False
    return True


def gate_view(
    unit: UnitOfWork,
    gate: Gate,
    files: Mapping[str, str],
    *,
    changed: bool = False,
    changed_from: str | None = None,
) -> GateView:
    """A question with its document as found in `files`. An answered question shows no text, because the file may by now
    contain something else."""
    about = material_of(unit, gate)
    workflow, run = unit.get(Workflow, gate.workflow_id), unit.get(PipelineRun, gate.workflow_id)
    place = asked_at(run, gate)
    task_id = gate.task_id or about.task_id
    task = unit.get(Task, task_id) if task_id is not None else None
    is_open = gate.status == GATE_MACHINE.initial
    shows = about.shows if is_open else None
    gone = shows is not None and shows not in files and run is not None and shows in run.run_state().judged
    return GateView(
        id=gate.id,
        kind=gate.kind,
        workflow_id=gate.workflow_id,
        workflow_name=workflow.name if workflow is not None else "",
        task_id=task_id,
        task_name=task.name if task is not None else None,
        question=gate.question,
        title=about.title,
        phase=about.phase or place.phase,
        why=about.why,
        options=gate.options,
        meanings=about.meanings,
        path=about.path or place.path,
        content_hash=gate.content_hash,
        created_at=gate.created_at,
        status=gate.status,
        text=files.get(shows) if shows is not None else None,
        gone=gone,
        changed=changed,
        changed_from=changed_from,
        answer=gate.answer,
        feedback=gate.feedback,
        answered_by=gate.answered_by,
        channel=gate.channel,
        answered_at=gate.answered_at,
        diff_task=task_id,
    )


REVIEWS_SHOWN = 200


class ReviewRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question."""

    id: str
    question: str
    resolution: str | None
    """What the agent did about the issue, if the review is about one."""
    task_id: str | None
    task_name: str | None
    created_at: int
    status: str
    answer: str | None
    remark: str | None
    answered_by: str | None
    channel: str | None
    answered_at: int | None


class Reviews(msgspec.Struct, frozen=True, kw_only=True):
    """Open ones, oldest first; then closed ones, newest first."""

    reviews: list[ReviewRow]
    more: int


def reviews(unit: UnitOfWork, workflow: Workflow) -> Reviews:
    asked: list[Gate] = []
    total = 0
    for status in GATE_MACHINE.states:
        order = ("created_at",) if status == GATE_MACHINE.initial else ("-created_at", "-id")
        own = (("workflow_id", workflow.id), ("status", status), ("kind", REVIEW))
        asked += unit.select(Gate, Query(own, order, REVIEWS_SHOWN))
        total += unit.count(Gate, Query(own))
    shown = asked[:REVIEWS_SHOWN]
    tasks = task_names(unit, (gate.task_id for gate in shown))
    done = resolutions(unit, shown)
    names = agent_names(unit, (gate.answered_by for gate in shown))
    rows = [
        ReviewRow(
            id=gate.id,
            question=gate.question,
            resolution=done.get(gate.id),
            task_id=gate.task_id,
            task_name=tasks.get(gate.task_id or ""),
            created_at=gate.created_at,
            status=gate.status,
            answer=gate.answer,
            remark=gate.feedback,
            answered_by=names.get(gate.answered_by or ""),
            channel=gate.channel,
            answered_at=gate.answered_at,
        )
        for gate in shown
    ]
    return Reviews(reviews=rows, more=total - len(rows))
