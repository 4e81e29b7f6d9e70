"""Where a pipeline run stands, as a record and in words: for the command line, the page and every list of runs.

Reads only; what can be done about it is in `controls.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from handrail.domain.pipeline.budget import exceeded, reached, spent
from handrail.domain.pipeline.engine import BUDGET, PAUSED, UNTIL, Action, decide
from handrail.domain.pipeline.request import SPECS
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import open_gate
from handrail.domain.pipeline.state import present_phase
from handrail.domain.pipeline.turns import RunRules, facts_of, limits_of, why_stopped
from handrail.kernel.records import UnitOfWork


class RunPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands."""

    workspace: str
    title: str
    flow: str
    phase: str | None
    """The current or next phase; None once the run is over."""
    label: str | None
    under_way: bool
    """Whether the phase was handed out."""
    ended: str | None
    stopped: str | None
    waits_at: str | None
    gate_id: str | None


def standing(unit: UnitOfWork, run: PipelineRun) -> RunPosition:
    flow, state, gate = run.flow_followed(), run.run_state(), open_gate(unit, run.id)
    handed_out = run.action_handed_out()
    present = present_phase(flow, state, run.facts(humans_decide=False)) if state.ended is None else None
    if state.ended is None and handed_out is not None and flow.knows(handed_out.phase):
        present = flow.phase(handed_out.phase)
    return RunPosition(
        workspace=run.workspace,
        title=run.title,
        flow=run.flow["name"],
        phase=present.id if present is not None else None,
        label=present.label if present is not None else None,
        under_way=handed_out is not None,
        ended=state.ended,
        stopped=why_stopped(unit, run) if state.ended is None else None,
        waits_at=gate.question if gate is not None else None,
        gate_id=gate.id if gate is not None else None,
    )


STOPPED = {PAUSED: "paused", UNTIL: "stopped where it was told to", BUDGET: "stopped by its budget"}


def spoken(one: RunPosition) -> str:
    """Where a run stands, as the end of a sentence about it."""
    if one.ended is not None:
        return one.ended
    if one.waits_at is not None:
        return f"waits for you at {one.waits_at}{f', {STOPPED[one.stopped]}' if one.stopped else ''}"
    if one.stopped is not None:
        return f"{STOPPED[one.stopped]}{f' before {one.phase}' if one.phase else ''}"
    if one.phase is None:
        return "at its end"
    return f"at {one.phase}" if one.under_way else f"before {one.phase}"


def sentence_about(one: RunPosition) -> str:
    """Where a run stands and what would move it."""
    words = f"The pipeline {one.flow} {_as_verb(one)}"
    if one.waits_at is not None:
        return f"{words}: `handrail approve {one.workspace.removeprefix(f'{SPECS}/')}` shows it and asks."
    if one.stopped is not None:
        more = " --limit …" if one.stopped == BUDGET else ""
        return f"{words}: `handrail pipeline resume {one.workspace}{more}`."
    return f"{words}." if one.ended else f"{words}; its agent goes on with pipeline_next_action."


def said_of(one: RunPosition) -> str:
    """The same without commands, for a page that has buttons."""
    words = f"The pipeline {one.flow} {_as_verb(one)}"
    return f"{words}; its agent goes on." if not (one.waits_at or one.stopped or one.ended) else f"{words}."


def run_sentence(unit: UnitOfWork, workflow_id: str) -> str | None:
    """`sentence_about` the run of a workflow; None for a workflow that is not a run."""
    run = unit.get(PipelineRun, workflow_id)
    return sentence_about(standing(unit, run)) if run is not None else None


def _as_verb(one: RunPosition) -> str:
    said = spoken(one)
    label = f" ({' '.join(one.label.split())})" if one.label and one.waits_at is None and one.stopped is None else ""
    return f"{said}{label}" if said.startswith("waits") else f"is {said}{label}"


_WHY = {
    PAUSED: "it is paused",
    UNTIL: "it has gone as far as it was to go",
    BUDGET: "it has spent what it may",
}


class Stop(NamedTuple):
    """Why one run has stopped."""

    reason: str
    """paused, until or budget."""
    before_phase: str
    why: str
    command: str
    """What a person runs to resume it."""

    @property
    def go_on_with(self) -> str:
        person = f"a person runs: {self.command}"
        return f"pipeline_next_action with until, or: {self.command}" if self.reason == UNTIL else person


def stop_told(run: PipelineRun, action: Action, rules: RunRules) -> Stop:
    """Puts an action that says the run has stopped into words."""
    reason = action.stopped or PAUSED
    why, command = _WHY[reason], f"handrail pipeline resume {run.workspace}"
    if reason == BUDGET:
        have, limits = spent(run.log, rules.prices), limits_of(run, rules)
        over = reached(have, limits, "hard")
        why = f"{why}: {exceeded(have, limits, 'hard')}"
        command = " ".join((command, *(f"--limit {name}=N" for name in over)))
        command += f" (N above {', '.join(_plain(amount) for amount in over.values())})"
    return Stop(reason, action.phase, why, command)


def stop_ahead(unit: UnitOfWork, run: PipelineRun, files: Mapping[str, str], rules: RunRules) -> Stop | None:
    """Why this run would stop again right away if asked for its next action; None if it would go on."""
    action = decide(run.flow_followed(), run.run_state(), facts_of(unit, run, rules), files)
    return stop_told(run, action, rules) if action.stopped is not None else None


def _plain(amount: float) -> str:
    """An amount in the form an option takes."""
    return f"{amount:.2f}".rstrip("0").rstrip(".")
