"""Running a pipeline on the store: take the next turn, report a phase, answer a gate. Each is one unit of work; the
caller passes in the documents.

The engine decides; this module turns its decisions into rows: the run's state, the open gate, the tasks of the plan.
`start.py` starts runs, and `controls.py` holds what people do to a run under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.gates.gate import Gate
from handrail.domain.pipeline import dispatch
from handrail.domain.pipeline.answers import answered, split_answer
from handrail.domain.pipeline.budget import exceeded, spent, warning_about
from handrail.domain.pipeline.engine import PAUSED, QUESTIONS, Action, decide
from handrail.domain.pipeline.flow import Flow
from handrail.domain.pipeline.lessons import friction_of
from handrail.domain.pipeline.results import Reported, fail, refused, report
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import (
    GateAnswer,
    answer_of,
    asked_gate,
    check_readable,
    check_shown,
    settle,
    withdraw_open,
)
from handrail.domain.pipeline.state import Facts, RunState
from handrail.domain.pipeline.task_mirror import mirror_tasks
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.errors import ArtefactMissing, IllegalTransition, InvalidPlan, RunNotFound, WorkflowClosed
from handrail.kernel.ledger import HANDRAIL
from handrail.kernel.records import Query, UnitOfWork

KEPT_FINDINGS = 200
KEPT_LOG = 400
"""Entries in a run's log. Older ones are summed by phase and model, so totals stay correct."""
SHOWN_NAME = 100
"""Characters shown of an unknown action name."""
MOST_TURNS = 60
"""Gates that may open automatically in one turn: far more than any flow has."""


class RunRules(NamedTuple):
    """Settings that apply to every run."""

    humans_decide: bool = False
    prices: Mapping[str, float] = {}
    limits: Mapping[str, float] = {}
    """Spending limits for a run that has none of its own."""


class Previous(NamedTuple):
    """What the caller reports about the previous action."""

    complete: bool = False
    tokens: int = 0
    duration_ms: int = 0
    model: str = ""
    action_id: str | None = None
    """The action meant, if the caller names it: a resent report of an earlier one then does not count for this one."""
    setup_only: bool = False
    """True if it was a setup command that another command follows."""
    error: str = ""
    """What went wrong. If set, the action counts as failed, whatever else is reported."""


class Turn(NamedTuple):
    """One turn of a run: what to do now, and what came of the previous action."""

    run: PipelineRun
    action: Action
    reported: Reported | None
    warning: str
    gate: Gate | None


def action_id(run: PipelineRun) -> str | None:
    """An id for the action handed out last. It changes with every report."""
    return f"{run.dispatched['phase']}/{run.state.get('turns', 0)}" if run.dispatched is not None else None


def find_run(unit: UnitOfWork, repository: str, workspace: str) -> PipelineRun:
    """The run whose documents are in this workspace, or a refusal that names the newest runs."""
    found = run_at(unit, repository, workspace)
    if found is None:
        newest = unit.select(PipelineRun, Query((("repository_path", repository),), ("-updated_at", "-id"), 5))
        known = ", ".join(run.workspace for run in newest) or "there is none yet: pipeline_init begins one"
        raise RunNotFound(f"no run has the workspace {workspace}", hint=f"newest: {known}", workspace=workspace)
    return found


def run_at(unit: UnitOfWork, repository: str, workspace: str) -> PipelineRun | None:
    conditions = (("repository_path", repository), ("workspace", workspace.rstrip("/")))
    return next(iter(unit.select(PipelineRun, Query(conditions, ("-created_at", "-id"), 1))), None)


def limits_of(run: PipelineRun, rules: RunRules) -> dict[str, float]:
    """What a run may spend: the limits set here now, overridden by its own, set lower at its start or changed later by
    a person."""
    return {**rules.limits, **run.budget_limits()}


def facts_of(unit: UnitOfWork, run: PipelineRun, rules: RunRules) -> Facts:
    """What the engine needs besides the run's state: how far the run may go, and whether it may go on now."""
    over = exceeded(spent(run.log, rules.prices), limits_of(run, rules), "hard")
    return msgspec.structs.replace(
        run.facts(humans_decide=rules.humans_decide),
        until=run.limits.get("until"),
        paused=why_stopped(unit, run) == PAUSED,
        over=over,
    )


def why_stopped(unit: UnitOfWork, run: PipelineRun) -> str | None:
    """Why a run has stopped: paused, until or budget; None if it has not. Its workflow may have been paused or resumed
    since the run's last turn."""
    workflow, stopped = unit.get(Workflow, run.id), run.run_state().stopped
    if workflow is None or workflow.status == "in_progress":
        return None
    return stopped or PAUSED if workflow.status == "paused" else stopped


def take_turn(
    unit: UnitOfWork,
    run: PipelineRun,
    files: Mapping[str, str],
    previous: Previous,
    *,
    answer: GateAnswer | None,
    rules: RunRules,
) -> Turn:
    """Reports what was done, answers the open gate, and returns the next action."""
    check_goes_on(unit, run)
    flow, state = run.flow_followed(), run.run_state()
    handed_out = run.action_handed_out()
    reported: Reported | None = None
    said = [_why_not_recorded(previous, run, handed_out)]
    if _is_report_of(previous, run, handed_out):
        assert handed_out is not None
        run, state = _with_cost_logged(unit, run, state, handed_out.phase, previous)
        try:
            reported = _report_or_fail(flow, state, facts_of(unit, run, rules), files, handed_out.phase, previous)
            state = reported.state
        except (ArtefactMissing, InvalidPlan) as refusal:
            state = refused(state, handed_out.phase, f"{refusal.message}; {refusal.hint}")
        except IllegalTransition as refusal:
            said.append(f"{refusal.message}; {refusal.hint}")
    word: str | None = None
    if answer is not None:
        decided = answer_of(unit, run, handed_out, answer, files, humans_decide=rules.humans_decide or run.for_people)
        said.append(decided.known)
        if not decided.known:
            assert handed_out is not None, "an answer was to something"
            word = decided.word
            state = answered(flow, state, handed_out, word, decided.feedback, files)
    run = _with_lessons(unit, run, reported, files)
    still = handed_out if reported is None and word is None else None
    action, state = _open_gates(unit, run, flow, state, facts_of(unit, run, rules), files)
    if action.phase and action.stopped is None:
        state = dispatch.handed_out(flow, state, files, action.phase, action.tasks)
    gate = asked_gate(unit, run, action, files) if action.type in QUESTIONS else None
    if word is not None and gate is not None:
        action = msgspec.structs.replace(action, opened_by=word)
    if gate is None and action.stopped is None and still is not None and still.type in QUESTIONS:
        withdraw_open(unit, run.id)
    said += [state.again.get(action.phase, ""), warning_about(spent(run.log, rules.prices), limits_of(run, rules))]
    kept = keep(unit, run, state, action, still=still)
    return Turn(kept, action, reported, "; ".join(part for part in said if part), gate)


def _report_or_fail(
    flow: Flow, state: RunState, facts: Facts, files: Mapping[str, str], phase_id: str, previous: Previous
) -> Reported:
    if previous.error:
        return fail(flow, state, facts, files, phase_id, previous.error)
    return report(flow, state, facts, files, phase_id)


def _why_not_recorded(previous: Previous, run: PipelineRun, handed_out: Action | None) -> str:
    """The remark about a report that names an action other than the current one. Naming the one just before is fine:
    its reply was lost, so the report was sent again."""
    named = previous.action_id
    if named is None or not (previous.complete or previous.error):
        return ""
    out = action_id(run) if handed_out is not None and handed_out.type not in QUESTIONS else None
    if named == out or (run.log and named == f"{run.log[-1]['phase']}/{run.state.get('turns', 0) - 1}"):
        return ""
    there = f"the action that is out is {out}" if out is not None else "no action is out"
    return f"reported {named[:SHOWN_NAME]}, but {there}; nothing was recorded"


def _is_report_of(previous: Previous, run: PipelineRun, handed_out: Action | None) -> bool:
    """Whether the report is about the action handed out last, as far as it says which one it means."""
    told = previous.complete or previous.error
    if not told or handed_out is None or handed_out.type in (*QUESTIONS, "done"):
        return False
    if previous.action_id is not None:
        return previous.action_id == action_id(run)
    return handed_out.setup_only or not previous.setup_only


def _with_cost_logged(
    unit: UnitOfWork, run: PipelineRun, state: RunState, phase: str, previous: Previous
) -> tuple[PipelineRun, RunState]:
    """The run with the action's cost logged, and its state with one more report counted."""
    entry = {
        "phase": phase,
        "tokens": previous.tokens,
        "duration_ms": previous.duration_ms,
        "model": previous.model,
        "at": unit.now_ms(),
    }
    log = _shortened([*run.log, entry])
    return msgspec.structs.replace(run, log=log), state.but(turns=state.turns + 1)


def _shortened(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(log) <= KEPT_LOG:
        return log
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in log[: -KEPT_LOG // 2]:
        known = sums.get((entry["phase"], entry["model"]))
        if known is None:
            sums[entry["phase"], entry["model"]] = {**entry, "times": entry.get("times", 1)}
            continue
        known["tokens"] += entry["tokens"]
        known["duration_ms"] += entry["duration_ms"]
        known["times"] += entry.get("times", 1)
        known["at"] = entry["at"]
    return [*sums.values(), *log[-KEPT_LOG // 2 :]]


def _with_lessons(
    unit: UnitOfWork, run: PipelineRun, reported: Reported | None, files: Mapping[str, str]
) -> PipelineRun:
    """The run with what its reviews found and its notes complain about, kept for later runs."""
    if reported is None:
        return run
    found = [{**finding._asdict(), "at": unit.now_ms()} for finding in reported.findings]
    friction = friction_of(files) or run.friction
    return msgspec.structs.replace(run, findings=[*run.findings, *found][-KEPT_FINDINGS:], friction=friction)


def report_phase(
    unit: UnitOfWork,
    run: PipelineRun,
    files: Mapping[str, str],
    phase_id: str,
    previous: Previous,
    *,
    rules: RunRules,
) -> Reported:
    """Reports one phase by name without asking for the next action."""
    flow, state = run.flow_followed(), run.run_state()
    handed_out = run.action_handed_out()
    check_goes_on(unit, run)
    if handed_out is None or handed_out.phase != phase_id or handed_out.type in QUESTIONS:
        raise IllegalTransition(
            f"{phase_id} was not handed out, so there is nothing to report of it",
            hint="pipeline_next_action returns what to do now",
            phase=phase_id,
        )
    run, state = _with_cost_logged(unit, run, state, phase_id, previous)
    done = _report_or_fail(flow, state, facts_of(unit, run, rules), files, phase_id, previous)
    keep(unit, _with_lessons(unit, run, done, files), done.state, None)
    return done


def check_goes_on(unit: UnitOfWork, run: PipelineRun) -> None:
    """Raises WorkflowClosed if the workflow was ended but the run was not."""
    workflow = unit.get(Workflow, run.id)
    if workflow is not None and workflow.status in CLOSED and run.run_state().ended is None:
        raise WorkflowClosed(
            f"the workflow of {run.workspace} is {workflow.status}, so its run does not go on",
            hint="pipeline_init starts another; a person closes this one with `handrail pipeline`",
            status=workflow.status,
        )


def answer_gate(unit: UnitOfWork, gate: Gate, word: str, feedback: str | None, files: Mapping[str, str]) -> PipelineRun:
    """Applies a person's answer given outside the run's own loop. It takes effect at once."""
    run = unit.get(PipelineRun, gate.workflow_id)
    handed_out = run.action_handed_out() if run is not None else None
    if run is None or handed_out is None:
        raise IllegalTransition(
            f"gate {gate.id} belongs to no run that waits", hint="`handrail status` shows what waits"
        )
    check_goes_on(unit, run)
    answer, _ = split_answer(word, gate.options)
    check_shown(gate, handed_out, files)
    check_readable(handed_out, files, answer)
    settle(unit, gate, answer, feedback, unit.actor)
    state = answered(run.flow_followed(), run.run_state(), handed_out, answer, feedback, files)
    return keep(unit, run, state, None)


def _open_gates(
    unit: UnitOfWork, run: PipelineRun, flow: Flow, state: RunState, facts: Facts, files: Mapping[str, str]
) -> tuple[Action, RunState]:
    """The next action someone has to do. Gates that open automatically are answered and recorded on the way."""
    for _ in range(MOST_TURNS):
        action = decide(flow, state, facts, files)
        if not action.automatic:
            return action, state
        gate = asked_gate(unit, run, action, files)
        settle(unit, gate, action.options[0], None, HANDRAIL)
        state = answered(flow, state, action, action.options[0], None, files)
    raise AssertionError("more gates open by themselves than any flow has")


def keep(
    unit: UnitOfWork,
    run: PipelineRun,
    state: RunState,
    action: Action | None,
    *,
    still: Action | None = None,
    goes_on: bool = False,
) -> PipelineRun:
    """Records the run if anything changed, updates its workflow and tasks to match, and returns it.

    A run that stops keeps the action that is `still` out, so that it can be reported or answered meanwhile. Without an
    action, a stopped run remains stopped unless it now `goes_on`.
    """
    workflow = unit.get(Workflow, run.id)
    assert workflow is not None, "a run is a workflow"
    stands = workflow.status == "paused" and not goes_on
    if action is not None:
        over = action.type == "done" and action.stopped is None
        state = state.but(stopped=action.stopped, ended=state.ended or ("completed" if over else None))
        stands = state.stopped is not None
    if state.ended is not None:
        state = state.but(stopped=None)
    out = still if action is not None and action.stopped is not None else action
    changed = msgspec.structs.replace(
        run,
        state=msgspec.to_builtins(state),
        dispatched=msgspec.to_builtins(out) if out is not None and out.type != "done" else None,
        holder=run.holder if state.ended is None else None,
    )
    status = state.ended or ("paused" if stands else "in_progress")
    if changed == unit.get(PipelineRun, run.id) and workflow.status == status:
        return changed
    edit = PlanEdit(unit, workflow)
    task_ids = mirror_tasks(unit, edit, changed, state, action)
    kept = msgspec.structs.replace(changed, task_ids=task_ids, updated_at=edit.now)
    moved = {"status": status} if workflow.status != status else {}
    edit.record("pipeline.moved", kept, data={"phase": action.phase if action is not None else None}, **moved)
    return kept
