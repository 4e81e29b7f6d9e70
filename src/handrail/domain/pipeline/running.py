"""Running a pipeline over the store: begin a run, take its next turn, answer its gates. One unit of work each; the
documents are handed in.

The engine decides; here its decisions become rows: the run's state, the gate that waits, the tasks of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.gates.gate import GATE_MACHINE, Gate
from handrail.domain.pipeline import handing_out
from handrail.domain.pipeline.answering import ABANDON, answered, split_answer
from handrail.domain.pipeline.engine import Action, decide
from handrail.domain.pipeline.flow import Flow
from handrail.domain.pipeline.learning import Lessons, Noted, PastRun, friction_in, learn
from handrail.domain.pipeline.reporting import Reported, report, text_hash
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.state import RunState
from handrail.domain.pipeline.tasking import mirror_tasks
from handrail.domain.work.editing import PlanEdit
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.errors import (
    ArtefactMissing,
    IllegalTransition,
    InvalidPlan,
    NotAllowed,
    RunNotFound,
    WorkflowClosed,
)
from handrail.kernel.ledger import Actor
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

DECISION = "decision"
AUTO = Actor("handrail", "auto")
QUESTIONS = ("checkpoint", "human_gate")
NOTES = "improvement.md"
KEPT_FINDINGS = 200
LEARNT_FROM = 200
"""Runs, the newest, that a new one learns from."""
MOST_TURNS = 60
"""Gates that may open by themselves in one turn: far more than any flow has."""


class Previous(NamedTuple):
    """What is reported of the action before."""

    complete: bool = False
    tokens: int = 0
    duration_ms: int = 0
    model: str = ""
    action_id: str | None = None
    """Which action is meant, where that is said: one that was reported before is not taken for the next."""


class Turn(NamedTuple):
    """One turn of a run: what is to be done now, and what came of what was done before."""

    run: PipelineRun
    action: Action
    reported: Reported | None
    warning: str
    gate: Gate | None


def action_id(run: PipelineRun) -> str | None:
    """A name for the action that was handed out last: another one after each report."""
    return f"{run.dispatched['phase']}/{len(run.log)}" if run.dispatched is not None else None


def find_run(unit: UnitOfWork, repository: str, workspace: str) -> PipelineRun:
    """The run whose documents lie there, or a refusal that names the newest."""
    found = run_at(unit, repository, workspace)
    if found is None:
        newest = unit.select(PipelineRun, Query((("repository_path", repository),), ("-updated_at", "-id"), 5))
        known = ", ".join(run.workspace for run in newest) or "there is none yet: pipeline_init begins one"
        raise RunNotFound(f"no run has the workspace {workspace}", hint=f"newest: {known}", workspace=workspace)
    return found


def run_at(unit: UnitOfWork, repository: str, workspace: str) -> PipelineRun | None:
    conditions = (("repository_path", repository), ("workspace", workspace.rstrip("/")))
    return next(iter(unit.select(PipelineRun, Query(conditions, ("-created_at", "-id"), 1))), None)


def take_turn(
    unit: UnitOfWork,
    run: PipelineRun,
    files: Mapping[str, str],
    previous: Previous,
    *,
    answer: Answer | None,
    humans_decide: bool,
) -> Turn:
    """Reports what was done, answers what was asked, and says what is next."""
    _check_goes_on(unit, run)
    flow, state = run.flow_followed(), run.run_state()
    facts = run.facts(humans_decide=humans_decide)
    reported: Reported | None = None
    warning = ""
    handed_out = msgspec.convert(run.dispatched, Action) if run.dispatched is not None else None
    log = run.log
    meant = previous.action_id in (None, action_id(run))
    if previous.complete and meant and handed_out is not None and handed_out.type not in (*QUESTIONS, "done"):
        log = [*log, {"phase": handed_out.phase, **_cost(previous), "at": unit.now_ms()}]
        try:
            reported = report(flow, state, facts, files, handed_out.phase)
            state, warning = reported.state, reported.warning
        except (ArtefactMissing, InvalidPlan, IllegalTransition) as refusal:
            warning = f"{refusal.message}; {refusal.hint}"
    if answer is not None:
        state = _answer_given(unit, run, state, handed_out, answer, files, humans_decide=humans_decide)
    run = _learnt(unit, run, reported, files)
    action, state = _open_gates(unit, run, flow, state, files, humans_decide=humans_decide)
    if action.phase:
        state = handing_out.handed_out(flow, state, files, action.phase, action.tasks)
    gate = _gate(unit, run, action, files) if action.type in ("checkpoint", "human_gate") else None
    if answer is not None and gate is not None:
        action = msgspec.structs.replace(action, opened_by=answer.text.split()[0].strip(":,.!").lower())
    kept = _keep(unit, run, state, action, log)
    return Turn(kept, action, reported, warning, gate)


def _learnt(unit: UnitOfWork, run: PipelineRun, reported: Reported | None, files: Mapping[str, str]) -> PipelineRun:
    """The run with what its reviews found and its notes complain about, for those that come after it."""
    if reported is None:
        return run
    found = [{**finding._asdict(), "at": unit.now_ms()} for finding in reported.findings]
    friction = friction_in(files.get(NOTES, "")) or run.friction
    return msgspec.structs.replace(run, findings=[*run.findings, *found][-KEPT_FINDINGS:], friction=friction)


def earlier_lessons(unit: UnitOfWork, repository: str, request: str) -> Lessons:
    """What the runs before teach about a request."""
    newest = Query((("repository_path", repository),), ("-updated_at", "-id"), LEARNT_FROM)
    runs = [run for run in unit.select(PipelineRun, newest) if run.run_state().ended == "completed"]
    past = [
        PastRun(
            spec_name=run.spec_name,
            effort=run.effort,
            one_liner=run.title,
            request=run.request,
            outcome=run.run_state().ended or "",
            tokens=sum(entry["tokens"] for entry in run.log),
            duration_ms=sum(entry["duration_ms"] for entry in run.log),
        )
        for run in runs
    ]
    findings = [
        Noted(text=one["description"], severity=one["severity"], run=run.id, at=one["at"])
        for run in runs
        for one in run.findings
    ]
    friction = [Noted(text=text, run=run.id, at=run.updated_at) for run in runs for text in run.friction]
    return learn(request, runs=past, findings=findings, friction=friction)


def report_phase(
    unit: UnitOfWork,
    run: PipelineRun,
    files: Mapping[str, str],
    phase_id: str,
    previous: Previous,
    *,
    humans_decide: bool,
) -> Reported:
    """Reports one phase by name, without asking what is next."""
    flow, state = run.flow_followed(), run.run_state()
    handed_out = msgspec.convert(run.dispatched, Action) if run.dispatched is not None else None
    _check_goes_on(unit, run)
    if handed_out is None or handed_out.phase != phase_id or handed_out.type in QUESTIONS:
        raise IllegalTransition(
            f"{phase_id} was not handed out, so there is nothing to report of it",
            hint="pipeline_next_action says what is to be done",
            phase=phase_id,
        )
    done = report(flow, state, run.facts(humans_decide=humans_decide), files, phase_id)
    log = [*run.log, {"phase": phase_id, **_cost(previous), "at": unit.now_ms()}]
    _keep(unit, _learnt(unit, run, done, files), done.state, None, log)
    return done


def _cost(previous: Previous) -> dict[str, Any]:
    return {"tokens": previous.tokens, "duration_ms": previous.duration_ms, "model": previous.model}


class Answer(NamedTuple):
    """What was answered, and to which gate, where that is said."""

    text: str
    gate_id: str | None = None


def _answer_given(
    unit: UnitOfWork,
    run: PipelineRun,
    state: RunState,
    handed_out: Action | None,
    answer: Answer,
    files: Mapping[str, str],
    *,
    humans_decide: bool,
) -> RunState:
    gate = open_gate(unit, run.id)
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
    _check_shown(gate, handed_out, files)
    settle(unit, gate, word, feedback, unit.actor)
    return answered(run.flow_followed(), state, handed_out, word, feedback)


def _check_new(gate: Gate, handed_out: Action, word: str, answer: Answer) -> None:
    """Refuses what looks like the answer before, sent again because its reply was lost: this gate was opened by it."""
    if answer.gate_id is None and handed_out.opened_by == word:
        raise IllegalTransition(
            f"{gate.question} was opened by your last answer, which was {word} too; it may be the same one again",
            hint="send the gate_id of the gate you mean",
            gate_id=gate.id,
        )


def _check_shown(gate: Gate, handed_out: Action, files: Mapping[str, str]) -> None:
    """An answer is to what was shown and nothing else."""
    if _content(handed_out, files) != gate.content_hash:
        raise IllegalTransition(
            f"{handed_out.shows or gate.question} was changed since it was shown",
            hint="call pipeline_next_action without user_response to see it as it is now",
            gate_id=gate.id,
        )


def _content(action: Action, files: Mapping[str, str]) -> str:
    return text_hash(f"{action.why or ''}\n{files.get(action.shows or '', '')}")


def _check_goes_on(unit: UnitOfWork, run: PipelineRun) -> None:
    """Raises WorkflowClosed where the workflow was ended and the run was not."""
    workflow = unit.get(Workflow, run.id)
    if workflow is not None and workflow.status in CLOSED and run.run_state().ended is None:
        raise WorkflowClosed(
            f"the workflow of {run.workspace} is {workflow.status}, so its run does not go on",
            hint="`handrail pipeline abandon` closes it; pipeline_init begins another",
            status=workflow.status,
        )


def answer_gate(unit: UnitOfWork, gate: Gate, word: str, feedback: str | None, files: Mapping[str, str]) -> PipelineRun:
    """A person's answer, given outside the run's own loop: what it does is done at once."""
    run = unit.get(PipelineRun, gate.workflow_id)
    if run is None or run.dispatched is None:
        raise IllegalTransition(
            f"gate {gate.id} belongs to no run that waits", hint="`handrail status` shows what waits"
        )
    _check_goes_on(unit, run)
    answer, _ = split_answer(word, gate.options)
    handed_out = msgspec.convert(run.dispatched, Action)
    _check_shown(gate, handed_out, files)
    settle(unit, gate, answer, feedback, unit.actor)
    state = answered(run.flow_followed(), run.run_state(), handed_out, answer, feedback)
    return _keep(unit, run, state, None, run.log)


def abandon_run(unit: UnitOfWork, run: PipelineRun) -> PipelineRun:
    """Gives a run up for good. The question it waited for is withdrawn."""
    state = run.run_state()
    if state.ended is not None:
        raise IllegalTransition(f"{run.workspace} is {state.ended} already", hint="`handrail pipeline` lists runs")
    if (gate := open_gate(unit, run.id)) is not None:
        unit.record("gate.withdrawn", msgspec.structs.replace(gate, status="withdrawn"))
    return _keep(unit, run, state.but(ended="abandoned"), None, run.log)


def settle(unit: UnitOfWork, gate: Gate, word: str, feedback: str | None, actor: Actor) -> Gate:
    GATE_MACHINE.check(f"gate {gate.id}", gate.status, "answered")
    closed = msgspec.structs.replace(
        gate,
        status="answered",
        answer=word,
        feedback=feedback,
        answered_by=actor.name,
        channel=actor.channel,
        answered_at=unit.now_ms(),
    )
    unit.record("gate.answered", closed)
    return closed


def open_gate(unit: UnitOfWork, workflow_id: str) -> Gate | None:
    """The question this run waits for."""
    conditions = (("workflow_id", workflow_id), ("status", GATE_MACHINE.initial), ("kind", DECISION))
    return next(iter(unit.select(Gate, Query(conditions, ("-created_at", "-id"), 1))), None)


def _open_gates(
    unit: UnitOfWork, run: PipelineRun, flow: Flow, state: RunState, files: Mapping[str, str], *, humans_decide: bool
) -> tuple[Action, RunState]:
    """The next action somebody has to do. Gates that open by themselves are recorded as opened so."""
    facts = run.facts(humans_decide=humans_decide)
    for _ in range(MOST_TURNS):
        action = decide(flow, state, facts, files)
        if not action.automatic:
            return action, state
        gate = _gate(unit, run, action, files)
        settle(unit, gate, action.options[0], None, AUTO)
        state = answered(flow, state, action, action.options[0], None)
    raise AssertionError("more gates open by themselves than any flow has")


def _gate(unit: UnitOfWork, run: PipelineRun, action: Action, files: Mapping[str, str]) -> Gate:
    """The gate of an action, open. One that shows what has changed since is withdrawn, and asked anew."""
    question = action.gate or action.phase
    content = _content(action, files)
    known = open_gate(unit, run.id)
    if known is not None and (known.question, known.content_hash) == (question, content):
        return known
    if known is not None:
        unit.record("gate.withdrawn", msgspec.structs.replace(known, status="withdrawn"))
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


def _keep(
    unit: UnitOfWork, run: PipelineRun, state: RunState, action: Action | None, log: list[dict[str, Any]]
) -> PipelineRun:
    """The run as it stands now, recorded where something changed; its workflow and its tasks follow."""
    if action is not None and action.type == "done" and state.ended is None:
        state = state.but(ended="completed")
    handed_out = msgspec.to_builtins(action) if action is not None and action.type != "done" else None
    changed = msgspec.structs.replace(run, state=msgspec.to_builtins(state), dispatched=handed_out, log=log)
    if changed == unit.get(PipelineRun, run.id):
        return changed
    workflow = unit.get(Workflow, run.id)
    assert workflow is not None, "a run is a workflow"
    edit = PlanEdit(unit, workflow)
    task_ids = mirror_tasks(unit, edit, changed, state, action)
    kept = msgspec.structs.replace(changed, task_ids=task_ids, updated_at=edit.now)
    status = {"completed": "completed", "abandoned": "abandoned"}.get(state.ended or "", "in_progress")
    moved = {"status": status} if workflow.status != status else {}
    edit.record("pipeline.moved", kept, data={"phase": action.phase if action is not None else None}, **moved)
    return kept
