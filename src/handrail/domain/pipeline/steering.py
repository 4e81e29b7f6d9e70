"""What people do to a run under way: pause it, let it go on, send it back to a phase, fork it, give it up. One unit of
work each. None of it opens a gate or passes a review."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.pipeline.asking import SPECS
from handrail.domain.pipeline.beginning import check_phase, check_until, new_workflow
from handrail.domain.pipeline.budget import check_limits
from handrail.domain.pipeline.engine import PAUSED
from handrail.domain.pipeline.flow import Flow
from handrail.domain.pipeline.gatekeeping import withdraw_open
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.running import check_goes_on, keep
from handrail.domain.pipeline.state import Facts, RunState, all_again, outputs_of, present_phase
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import IllegalTransition, InvalidParams
from handrail.kernel.records import UnitOfWork

TO_THE_END = "end"
"""In place of a phase: the run goes as far as its flow does."""
DAY = len("20260401")


def abandon_run(unit: UnitOfWork, run: PipelineRun) -> PipelineRun:
    """Gives a run up for good. The question it waited for is withdrawn."""
    state = _open_state(run)
    withdraw_open(unit, run.id)
    return keep(unit, run, state.but(ended="abandoned"), None)


def pause_run(unit: UnitOfWork, run: PipelineRun, reason: str | None = None) -> PipelineRun:
    """Stops a run at its next turn. What its agents do until then is still taken; nothing more is handed out."""
    check_goes_on(unit, run)
    state = _open_state(run).but(stopped=PAUSED)
    kept = msgspec.structs.replace(run, state=msgspec.to_builtins(state), updated_at=unit.now_ms())
    workflow = unit.get(Workflow, run.id)
    assert workflow is not None, "a run is a workflow"
    status = "paused" if workflow.status == "in_progress" else workflow.status
    paused = msgspec.structs.replace(workflow, status=status, updated_at=unit.now_ms())
    unit.record("pipeline.paused", kept, paused, data={"reason": reason} if reason else None)
    return kept


class Going(NamedTuple):
    """How a run goes on."""

    again_from: str | None = None
    """A phase it has done, to be done again with all that follow."""
    until: str | None = None
    """Where it stops next; `end` for nowhere."""
    limits: Mapping[str, Any] = {}
    """What it may spend, where that changes."""


def resume_run(unit: UnitOfWork, run: PipelineRun, going: Going, facts: Facts) -> PipelineRun:
    """Lets a run go on that stands still, further or with more to spend, or sends it back to a phase."""
    check_goes_on(unit, run)
    flow, state = run.flow_followed(), _open_state(run)
    check_limits(going.limits)
    limits = {**run.limits, **going.limits}
    if going.until is not None:
        limits = with_until(flow, limits, going.until)
    elif state.stopped == "until":
        limits.pop("until", None)
    if going.again_from is not None:
        state = _sent_back(flow, state, facts, going.again_from)
        withdraw_open(unit, run.id)
    changed = msgspec.structs.replace(run, limits=limits)
    handed_out = run.action_handed_out() if going.again_from is None else None
    return keep(unit, changed, state.but(stopped=None), handed_out, goes_on=True)


def with_until(
    flow: Flow, limits: Mapping[str, Any], until: str, facts: Facts | None = None, state: RunState | None = None
) -> dict[str, Any]:
    """The limits with another place to stop at. Where the run's facts are given, it is one that the run comes to."""
    if until == TO_THE_END:
        return {name: value for name, value in limits.items() if name != "until"}
    check_phase(flow, until)
    if facts is not None:
        check_until(flow, facts, until, state or RunState())
    return {**limits, "until": until}


def _open_state(run: PipelineRun) -> RunState:
    state = run.run_state()
    if state.ended is not None:
        raise IllegalTransition(
            f"{run.workspace} is {state.ended} already", hint="`handrail pipeline fork` goes on from one of its phases"
        )
    return state


def _sent_back(flow: Flow, state: RunState, facts: Facts, phase_id: str) -> RunState:
    """The state at a phase that has been reached. Further than the run has come, nobody is sent."""
    check_phase(flow, phase_id)
    present = present_phase(flow, state, facts)
    if present is not None and flow.position(phase_id) > flow.position(present.id):
        raise InvalidParams(
            f"the run has come to {present.id}, which is before {phase_id}; phases are not skipped",
            hint=f"{present.id} or an earlier one",
        )
    return all_again(flow, state, phase_id).but(tries={}, unread={})


class Forked(NamedTuple):
    """A new run, and the documents it takes along from the one it is a fork of."""

    run: PipelineRun
    documents: list[str]


def fork_run(unit: UnitOfWork, run: PipelineRun, files: Mapping[str, str], phase_id: str, workspace: str) -> Forked:
    """A run of its own that goes on from a phase of this one, which stays as it is."""
    flow = run.flow_followed()
    ended = run.run_state().but(ended=None, stopped=None)
    state = _sent_back(flow, ended, run.facts(humans_decide=False), phase_id)
    documents = _taken_along(flow, files, phase_id)
    _check_documents(flow, state, documents)
    state = state.but(
        answers={gate: answer for gate, answer in state.answers.items() if gate in state.done},
        # The same text again is no old one where nobody has seen it: what stays behind is forgotten.
        judged={name: hashes for name, hashes in state.judged.items() if name in documents},
        feedback=None,
        turns=0,
    )
    if not _has_list(flow, state):
        state = state.but(tasks=[], plan=None)
    name = name_in(workspace)
    workflow = new_workflow(unit, run.title, run.source_type, run.source_url, run.request, run.repository_path)
    forked = msgspec.structs.replace(
        run,
        id=workflow.id,
        workspace=workspace,
        spec_name=name,
        branch=f"feature/{name}" if run.branch is not None else None,
        state=msgspec.to_builtins(state),
        task_ids={},
        dispatched=None,
        log=[],
        findings=[],
        friction=[],
        created_at=workflow.created_at,
        updated_at=workflow.created_at,
        limits={limit: value for limit, value in run.limits.items() if limit != "until"},
        holder=None,
        forked_from=run.id,
    )
    unit.record("pipeline.begun", workflow, forked, data={"forked_from": run.id, "phase": phase_id})
    return Forked(forked, documents)


def name_in(workspace: str) -> str:
    """What a run is called by its folder: without the day, where that stands in front."""
    inner = workspace.removeprefix(f"{SPECS}/")
    day, _, rest = inner.partition("-")
    return rest if rest and len(day) == DAY and day.isdigit() else inner


def _has_list(flow: Flow, state: RunState) -> bool:
    """Whether the tasks are those of a list that stands: its writer is done, or the tasks themselves are."""
    doing = next((phase for phase in flow.phases if phase.kind == "tasks"), None)
    return doing is not None and any(
        phase.id in state.done for phase in flow.phases if phase is doing or phase.output == doing.plan
    )


def _taken_along(flow: Flow, files: Mapping[str, str], phase_id: str) -> list[str]:
    """All documents but those that only the phases write that are done again."""
    place = flow.position(phase_id)
    kept = {phase.output for phase in flow.phases[:place]}
    again = [
        re.escape(phase.output).replace(re.escape("{N}"), "[0-9]+")
        for phase in flow.phases[place:]
        if phase.output is not None and phase.output not in kept
    ]
    left_out = re.compile("|".join(again) or "(?!)")
    return [name for name in files if left_out.fullmatch(name) is None]


def _check_documents(flow: Flow, state: RunState, documents: Sequence[str]) -> None:
    """Refuses to go on from phases whose documents are gone."""
    for phase in flow.phases:
        missing = [name for name in outputs_of(phase, state) if name in state.judged and name not in documents]
        if phase.id in state.done and missing:
            raise InvalidParams(
                f"{missing[0]}, which {phase.id} wrote, is not there any more", hint=f"fork from {phase.id} or earlier"
            )
