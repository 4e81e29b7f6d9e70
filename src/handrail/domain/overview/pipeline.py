"""A run of a pipeline as a row of phases: which are done, which is current, who approved each, how long it took and
what it cost. Reads only.

The run's own events say when a phase was at work: from the turn that handed it out until the next turn. An imported run
has no such events; its agents' reports are used instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from handrail.domain.gates.gate import Gate
from handrail.domain.overview.rows import agent_names
from handrail.domain.pipeline.budget import UNITS, Spent, exceeded, spent, warning_about
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.flow import BY_TASK, Flow, Phase
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import DECISION
from handrail.domain.pipeline.run_status import RunPosition, said_of, standing, stop_told
from handrail.domain.pipeline.state import RunState, is_left_out
from handrail.domain.pipeline.turns import RunRules, limits_of
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import Query, UnitOfWork

TURNS = 2000
"""How many of a run's newest turns are examined for when each phase was at work."""
ANSWERS = 500
"""How many answers to the gates of one run are examined."""


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent, as reported by agents."""

    tokens: int | None
    minutes: float | None
    money: float | None
    """None if no prices are set. Each figure is None if nobody reported it."""


class TimeSpan(msgspec.Struct, frozen=True, kw_only=True, rename={"since": "from", "until": "to"}):
    """A span of time; without an end it continues."""

    since: int
    until: int | None
    by: str = ""
    """Who drove the run when it began."""


class PhaseView(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of the flow."""

    id: str
    label: str
    kind: str
    state: str
    """done, now, waits (for a person to answer or resume), next, skipped, or failed (the run was abandoned there)."""
    gate: bool
    tries: int
    """How often it was tried; for a phase with tasks, the highest count of any task."""
    sent_back: int
    """How often it, as a review, sent the work back."""
    turns: int
    """How often it was reported."""
    started_at: int | None
    ended_at: int | None
    elapsed_ms: int | None
    """The time at work, or the time until a person answered, not counting time that the run was stopped. None for a
    question that still waits."""
    waiting_ms: int | None
    """How long it has been waiting for a person, if it is."""
    tokens: int
    answer: str | None
    """The last answer given at its gate, or when agents had used up their tries."""
    answered_by: str | None
    channel: str | None
    feedback: str | None
    again: str | None
    """Why it is being handed out again, if it is."""
    given: bool
    """True if it was done before the run began."""
    agent: str | None
    """The role that does it."""
    output: str | None


class DocumentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One document of a run."""

    name: str
    path: str
    """Relative to the repository."""
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
    """Why it is stopped, if it is: paused, until or budget."""
    sentence: str
    go_on_with: str | None
    """The command that resumes it, if it is stopped."""
    gate_id: str | None
    spent: Spending | None
    """None if nobody reported anything."""
    budget: dict[str, float] | None
    """How much of each unit may be spent: the limit that stops the run, or else the one that warns."""
    limits: dict[str, float]
    """The limits as they were set: soft_tokens to hard_money."""
    until: str | None
    """The last phase to do, if the run stops before its end."""
    warning: str | None
    """Which limit of the budget has been reached."""
    driven_by: str | None
    phases: list[PhaseView]
    documents: list[DocumentRow] = []
    """Those in its workspace, if they were read: they are not part of the store."""


def pipeline_view(unit: UnitOfWork, workflow_id: str, rules: RunRules) -> PipelineView | None:
    """The run of a workflow; None for a workflow that is not a run."""
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
        go_on_with=command_to_go_on(run, one, rules),
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


def command_to_go_on(run: PipelineRun, one: RunPosition, rules: RunRules) -> str | None:
    """The command that resumes a stopped run; None if it is not stopped."""
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


def _phases(unit: UnitOfWork, run: PipelineRun, one: RunPosition) -> list[PhaseView]:
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
    """The phase at which a run was abandoned."""
    if state.ended != "abandoned":
        return None
    return next((phase.id for phase in flow.phases if phase.id not in state.done and phase.id not in left_out), None)


def _state(phase: Phase, state: RunState, one: RunPosition, left_out: Collection[str]) -> str:
    if phase.id in state.done:
        return "done"
    if phase.id in left_out or state.ended is not None:
        return "skipped"
    if phase.id != one.phase:
        return "next"
    return "waits" if one.gate_id is not None or one.stopped is not None else "now"


def _tries(phase: Phase, state: RunState, turns: int) -> int:
    if phase.kind in BY_TASK:
        return 1 + max((task.retries for task in state.tasks), default=0) if turns else 0
    return min(turns, 1) if phase.kind == "exec" else turns  # several commands count as one try


def _reported(log: Iterable[Mapping[str, Any]]) -> list[TimeSpan]:
    """When a phase was at work according to its agents' reports, each of which came at the end of the work."""
    return [TimeSpan(since=entry["at"] - entry["duration_ms"], until=entry["at"]) for entry in log if "at" in entry]


def _answers(unit: UnitOfWork, run: PipelineRun) -> dict[str, Gate]:
    """The last answer given at each phase's gate, or when agents had used up their tries."""
    conditions = (("workflow_id", run.id), ("status", "answered"), ("kind", DECISION))
    newest = unit.select(Gate, Query(conditions, ("-created_at", "-id"), ANSWERS))
    found: dict[str, Gate] = {}
    for gate in reversed(newest):
        found[phase_asked_at(gate)] = gate
    return found


def phase_asked_at(gate: Gate) -> str:
    """The phase that a run's question is about, also if it is about a phase that failed or was tried too often."""
    return gate.question.removesuffix("-limit").removesuffix("-failed")


# -- when each was at work --------------------------------------------------------------------------------------------


def phase_spans(unit: UnitOfWork, workflow_id: str, flow: Flow) -> dict[str, list[TimeSpan]]:
    """When each phase was under way, in order."""
    found: dict[str, list[TimeSpan]] = {}
    phase, began, by = None, 0, ""
    for event in unit.newest(TURNS, Only(streams=(workflow_id,), kinds=("pipeline.moved",))):
        now = _handed_out(event)
        if now == phase:
            continue
        if phase is not None:
            found.setdefault(phase, []).append(TimeSpan(since=began, until=event.at_ms, by=by))
        phase, began, by = now if now is not None and flow.knows(now) else None, event.at_ms, event.actor
    if phase is not None:
        run = unit.get(PipelineRun, workflow_id)
        still = run is not None and (run.dispatched or {}).get("phase") == phase
        found.setdefault(phase, []).append(TimeSpan(since=began, until=None if still else began, by=by))
    return found


def _handed_out(event: Event) -> str | None:
    """The phase that a turn handed out; None if it handed out nothing: the run is stopped, waits or is over."""
    phase = event.data.get("phase")
    if not isinstance(phase, str) or not phase:
        return None
    state = next(event.rows("pipeline"), {}).get("state")
    stopped = state.get("stopped") if isinstance(state, dict) else None
    return None if stopped else phase
