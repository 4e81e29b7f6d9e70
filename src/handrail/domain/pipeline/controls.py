"""What people do to a run under way: pause it, resume it, send it back to a phase, fork it, abandon it. Each is one
unit of work. None of it opens a gate or passes a review."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.pipeline.budget import check_limits
from handrail.domain.pipeline.engine import PAUSED
from handrail.domain.pipeline.flow import NUMBER, Flow
from handrail.domain.pipeline.request import SPECS
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import withdraw_open
from handrail.domain.pipeline.start import check_phase, check_until, new_workflow
from handrail.domain.pipeline.state import Facts, RunState, all_again, outputs_of, present_phase
from handrail.domain.pipeline.turns import check_goes_on, keep
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import IllegalTransition, InvalidParams
from handrail.kernel.records import UnitOfWork

TO_THE_END = "end"
"""In place of a phase: run to the end of the flow."""
DAY = len("20260401")


def abandon_run(unit: UnitOfWork, run: PipelineRun) -> PipelineRun:
    """Abandons a run for good and withdraws its open question."""
    state = _open_state(run)
    withdraw_open(unit, run.id)
    return keep(unit, run, state.but(ended="abandoned"), None)


def pause_run(unit: UnitOfWork, run: PipelineRun, reason: str | None = None) -> PipelineRun:
    """Stops a run at its next turn. Work its agents report until then is still accepted; nothing more is handed out."""
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
    """A phase already done, to be redone together with all later ones."""
    until: str | None = None
    """Where it stops next; `end` for nowhere."""
    limits: Mapping[str, Any] = {}
    """Spending limits that change."""


def resume_run(unit: UnitOfWork, run: PipelineRun, going: Going, facts: Facts) -> PipelineRun:
    """Resumes a stopped run, possibly with new limits, or sends it back to a phase."""
    check_goes_on(unit, run)
    flow, state = run.flow_followed(), _open_state(run)
    check_limits(going.limits)
    limits = {**run.limits, **going.limits}
    if going.until is not None:
        limits = with_until(flow, limits, going.until)
    elif state.stopped == "until":
        limits.pop("until", None)
    if going.again_from is not None:
        state = _state_back_at(flow, state, facts, going.again_from)
        withdraw_open(unit, run.id)
    changed = msgspec.structs.replace(run, limits=limits)
    handed_out = run.action_handed_out() if going.again_from is None else None
    return keep(unit, changed, state.but(stopped=None), handed_out, goes_on=True)


def with_until(
    flow: Flow, limits: Mapping[str, Any], until: str, facts: Facts | None = None, state: RunState | None = None
) -> dict[str, Any]:
    """The limits with a new place to stop at. If the run's facts are given, checks that the run reaches that place."""
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


def _state_back_at(flow: Flow, state: RunState, facts: Facts, phase_id: str) -> RunState:
    """The state back at a phase already reached. Refuses a phase the run has not reached yet."""
    check_phase(flow, phase_id)
    present = present_phase(flow, state, facts)
    if present is not None and flow.position(phase_id) > flow.position(present.id):
        raise InvalidParams(
            f"the run has come to {present.id}, which is before {phase_id}; phases are not skipped",
            hint=f"{present.id} or an earlier one",
        )
    return all_again(flow, state, phase_id).but(tries={}, unread={})


class Forked(NamedTuple):
    """A new run, and the documents copied from the run it was forked from."""

    run: PipelineRun
    documents: list[str]


def fork_run(unit: UnitOfWork, run: PipelineRun, files: Mapping[str, str], phase_id: str, workspace: str) -> Forked:
    """A separate run that continues from a phase of this one, which stays as it is."""
    flow = run.flow_followed()
    ended = run.run_state().but(ended=None, stopped=None)
    state = _state_back_at(flow, ended, run.facts(humans_decide=False), phase_id)
    documents = _documents_to_keep(flow, files, phase_id)
    _check_documents(flow, state, documents)
    state = state.but(
        answers={gate: answer for gate, answer in state.answers.items() if gate in state.done},
        # Forget the hashes of documents left behind: the fork has never seen them, so the same text would be new to it.
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
    """A run's name from its folder, without the leading date if there is one."""
    inner = workspace.removeprefix(f"{SPECS}/")
    day, _, rest = inner.partition("-")
    return rest if rest and len(day) == DAY and day.isdigit() else inner


def _has_list(flow: Flow, state: RunState) -> bool:
    """Whether the tasks come from a valid list: its writer is done, or the tasks themselves are."""
    doing = next((phase for phase in flow.phases if phase.kind == "tasks"), None)
    return doing is not None and any(
        phase.id in state.done for phase in flow.phases if phase is doing or phase.output == doing.plan
    )


def _documents_to_keep(flow: Flow, files: Mapping[str, str], phase_id: str) -> list[str]:
    """All documents except those written only by phases that are done again."""
    place = flow.position(phase_id)
    kept = {phase.output for phase in flow.phases[:place]}
    again = [
        re.escape(phase.output).replace(re.escape(NUMBER), "[0-9]+")
        for phase in flow.phases[place:]
        if phase.output is not None and phase.output not in kept
    ]
    left_out = re.compile("|".join(again) or "(?!)")
    return [name for name in files if left_out.fullmatch(name) is None]


def _check_documents(flow: Flow, state: RunState, documents: Sequence[str]) -> None:
    """Refuses to continue from phases whose documents are gone."""
    for phase in flow.phases:
        missing = [name for name in outputs_of(phase, state) if name in state.judged and name not in documents]
        if phase.id in state.done and missing:
            raise InvalidParams(
                f"{missing[0]}, which {phase.id} wrote, is not there any more", hint=f"fork from {phase.id} or earlier"
            )
