"""A run of a pipeline as a row of phases: which are over, which is now, who let each pass, how long it took and what
was spent. Reads only.

When a phase was at work is told by the run's own events: one is under way from the turn that hands it out until the
next turn. A run that came from elsewhere has no such events; then what its agents reported counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from handrail.domain.gates.gate import Gate
from handrail.domain.overview.rows import agent_names
from handrail.domain.pipeline.budget import UNITS, Spent, exceeded, spent, warning_about
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.flow import Flow, Phase
from handrail.domain.pipeline.gatekeeping import DECISION
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.running import Rules, limits_of
from handrail.domain.pipeline.standing import Standing, said_of, standing
from handrail.domain.pipeline.state import RunState, is_left_out
from handrail.domain.pipeline.stopping import stop_told
from handrail.kernel.ledger import Event, Only
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

TURNS = 2000
"""Turns of one run, the newest, that are looked through for when each phase was at work."""
ANSWERS = 500
"""Answers to the gates of one run that are looked through."""


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent, as agents reported it."""

    tokens: int | None
    minutes: float | None
    money: float | None
    """None where no prices are set; each is None where nobody reported any."""


class Span(msgspec.Struct, frozen=True, kw_only=True, rename={"since": "from", "until": "to"}):
    """From one moment to another; without an end it goes on."""

    since: int
    until: int | None
    by: str = ""
    """Who drove the run at its beginning."""


class PhaseView(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of the flow."""

    id: str
    label: str
    kind: str
    state: str
    """done, now, waits (for a person to answer, or to let the run go on), next, skipped, or failed: given up there."""
    gate: bool
    tries: int
    """How often it was tried; of phases with tasks the most that one task was."""
    sent_back: int
    """How often it sent the work back, as a review."""
    turns: int
    """How often it was reported."""
    started_at: int | None
    ended_at: int | None
    elapsed_ms: int | None
    """Time at work, or that it took until a person had answered; what the run stood still in between does not count.
    None for a question that still waits."""
    waiting_ms: int | None
    """How long it has waited for a person, while it does."""
    tokens: int
    answer: str | None
    """What was answered last at its gate, or where agents had tried it often enough."""
    answered_by: str | None
    channel: str | None
    feedback: str | None
    again: str | None
    """Why it is handed out again, while it is."""
    given: bool
    """True where it was over before the run began."""
    agent: str | None
    """The role that does it."""
    output: str | None


class DocumentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One document of a run."""

    name: str
    path: str
    """From the repository on."""
    size: int
    """Bytes."""


class PipelineView(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    workflow_id: str
    title: str
    flow: str
    effort: str
    branch: str | None
    workspace: str
    phase: str | None
    """The phase it is at, or that comes next."""
    under_way: bool
    ended: str | None
    stopped: str | None
    """Why it stands still, where it does: paused, until or budget."""
    sentence: str
    go_on_with: str | None
    """What a person runs to let it go on, where it stands still."""
    gate_id: str | None
    spent: Spending | None
    """None where nobody reported anything."""
    budget: dict[str, float] | None
    """How much of each unit may be spent: the limit that stops it, else the one that warns."""
    limits: dict[str, float]
    """The same as they were set: soft_tokens to hard_money."""
    until: str | None
    """The last phase to be done, where it stops before its end."""
    warning: str | None
    """What of the budget is reached."""
    driven_by: str | None
    phases: list[PhaseView]
    documents: list[DocumentRow] = []
    """Those in its workspace, where somebody looked: they are no part of the store."""


def pipeline_view(unit: UnitOfWork, workflow_id: str, rules: Rules) -> PipelineView | None:
    """The run of a workflow; None for one that is no run."""
    run = unit.get(PipelineRun, workflow_id)
    if run is None:
        return None
    one, have, limits = standing(unit, run), spent(run.log, rules.prices), limits_of(run, rules)
    over = exceeded(have, limits, "hard") or warning_about(have, limits)
    return PipelineView(
        workflow_id=run.id,
        title=run.title,
        flow=one.flow,
        effort=run.effort,
        branch=run.branch,
        workspace=run.workspace,
        phase=one.phase,
        under_way=one.under_way,
        ended=one.ended,
        stopped=one.stopped,
        sentence=said_of(one),
        go_on_with=_command(run, one, rules),
        gate_id=one.gate_id,
        spent=_spent(have, priced=bool(rules.prices)),
        budget=_budget(limits) or None,
        limits=limits,
        until=run.limits.get("until"),
        warning=over or None,
        driven_by=_driver(unit, run),
        phases=_phases(unit, run, one),
    )


def _spent(have: Spent, *, priced: bool) -> Spending | None:
    if not (have.tokens or have.minutes or have.money):
        return None
    return Spending(
        tokens=have.tokens or None,
        minutes=round(have.minutes, 1) or None,
        money=round(have.money, 2) if priced else None,
    )


def _budget(limits: Mapping[str, float]) -> dict[str, float]:
    named = {unit: limits.get(f"hard_{unit}", limits.get(f"soft_{unit}")) for unit in UNITS}
    return {unit: amount for unit, amount in named.items() if amount is not None}


def _command(run: PipelineRun, one: Standing, rules: Rules) -> str | None:
    if one.stopped is None:
        return None
    return stop_told(run, Action(type="done", phase=one.phase or "", stopped=one.stopped), rules).command


def _driver(unit: UnitOfWork, run: PipelineRun) -> str | None:
    holder = run.holder or {}
    agent_id = holder.get("agent_id")
    if isinstance(agent_id, str):
        return agent_names(unit, [agent_id])[agent_id]
    return str(holder["name"]) if holder.get("name") else None


# -- phases -----------------------------------------------------------------------------------------------------------


def _phases(unit: UnitOfWork, run: PipelineRun, one: Standing) -> list[PhaseView]:
    flow, state, facts = run.flow_followed(), run.run_state(), run.facts(humans_decide=False)
    at_work, answers, now = phase_spans(unit, run.id, flow), _answers(unit, run), unit.now_ms()
    names = agent_names(unit, (gate.answered_by for gate in answers.values()))
    left_out = {phase.id for phase in flow.phases if is_left_out(phase, state, flow, facts)}
    gave_up = _gave_up_at(flow, state, left_out)
    shown = []
    for phase in flow.phases:
        log = [entry for entry in run.log if entry["phase"] == phase.id]
        spans = at_work.get(phase.id) or _reported(log)
        done = phase.id in state.done
        answer = answers.get(phase.id)
        turns = sum(entry.get("times", 1) for entry in log)
        stands = "failed" if phase.id == gave_up else _state(phase, state, one, left_out)
        elapsed = sum((span.until or now) - span.since for span in spans) if spans else None
        waits = phase.kind == "gate" and stands == "waits"
        shown.append(
            PhaseView(
                id=phase.id,
                label=phase.label,
                kind=phase.kind,
                state=stands,
                gate=phase.kind == "gate",
                tries=_tries(phase, state, turns),
                sent_back=state.tries.get(phase.id, 0),
                turns=turns,
                started_at=min((span.since for span in spans), default=None),
                ended_at=max((span.until or now for span in spans), default=None) if done else None,
                elapsed_ms=None if waits else elapsed,
                waiting_ms=elapsed if waits else None,
                tokens=sum(entry["tokens"] for entry in log),
                answer=answer.answer if answer is not None else None,
                answered_by=names.get(answer.answered_by or "") if answer is not None else None,
                channel=answer.channel if answer is not None else None,
                feedback=answer.feedback if answer is not None else None,
                again=state.again.get(phase.id),
                given=phase.id in state.given,
                agent=phase.agent,
                output=phase.output,
            )
        )
    return shown


def _gave_up_at(flow: Flow, state: RunState, left_out: Collection[str]) -> str | None:
    """The phase at which a run was given up."""
    if state.ended != "abandoned":
        return None
    return next((phase.id for phase in flow.phases if phase.id not in state.done and phase.id not in left_out), None)


def _state(phase: Phase, state: RunState, one: Standing, left_out: Collection[str]) -> str:
    if phase.id in state.done:
        return "done"
    if phase.id in left_out or state.ended is not None:
        return "skipped"
    if phase.id != one.phase:
        return "next"
    return "waits" if one.gate_id is not None or one.stopped is not None else "now"


def _tries(phase: Phase, state: RunState, turns: int) -> int:
    if phase.kind in ("tasks", "task-reviews"):
        return 1 + max((task.retries for task in state.tasks), default=0) if turns else 0
    return min(turns, 1) if phase.kind == "exec" else turns  # several commands are one try


def _reported(log: Iterable[Mapping[str, Any]]) -> list[Span]:
    """When a phase was at work by what its agents reported: each report came at the end of what it took."""
    return [Span(since=entry["at"] - entry["duration_ms"], until=entry["at"]) for entry in log if "at" in entry]


def _answers(unit: UnitOfWork, run: PipelineRun) -> dict[str, Gate]:
    """The answer that was given last at the gate of each phase, or where agents had tried it often enough."""
    conditions = (("workflow_id", run.id), ("status", "answered"), ("kind", DECISION))
    newest = unit.select(Gate, Query(conditions, ("-created_at", "-id"), ANSWERS))
    found: dict[str, Gate] = {}
    for gate in reversed(newest):
        found[phase_asked_at(gate)] = gate
    return found


def phase_asked_at(gate: Gate) -> str:
    """The phase that a run's question is about: of what failed, or was tried too often, the phase itself."""
    return gate.question.removesuffix("-limit").removesuffix("-failed")


# -- when each was at work --------------------------------------------------------------------------------------------


def phase_spans(unit: UnitOfWork, workflow_id: str, flow: Flow) -> dict[str, list[Span]]:
    """For each phase when it was under way, in order."""
    found: dict[str, list[Span]] = {}
    phase, began, by = None, 0, ""
    for event in unit.newest(TURNS, Only(streams=(workflow_id,), kinds=("pipeline.moved",))):
        now = _handed_out(event)
        if now == phase:
            continue
        if phase is not None:
            found.setdefault(phase, []).append(Span(since=began, until=event.at_ms, by=by))
        phase, began, by = now if now is not None and flow.knows(now) else None, event.at_ms, event.actor
    if phase is not None:
        run = unit.get(PipelineRun, workflow_id)
        still = run is not None and (run.dispatched or {}).get("phase") == phase
        found.setdefault(phase, []).append(Span(since=began, until=None if still else began, by=by))
    return found


def _handed_out(event: Event) -> str | None:
    """The phase that a turn handed out; None where it handed out nothing: the run stands still, waits or is over."""
    phase = event.data.get("phase")
    if not isinstance(phase, str) or not phase:
        return None
    rows = (change.after for change in event.changes if change.table == "pipeline" and change.after is not None)
    row = next(rows, {})
    state = row.get("state")
    stopped = state.get("stopped") if isinstance(state, dict) else None
    return None if stopped else phase
