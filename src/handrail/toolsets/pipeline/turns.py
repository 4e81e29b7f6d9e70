"""Toolset `pipeline`, its turns: what is next, the result of what was done, where a run is. Loaded when a pipeline
runs; the tools are declared in `tools.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.crew.presence import is_present
from handrail.domain.pipeline.answers import meanings
from handrail.domain.pipeline.budget import check_budget, spent
from handrail.domain.pipeline.controls import with_until
from handrail.domain.pipeline.documents import ReviewFinding
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.lessons import Lessons, lines_for
from handrail.domain.pipeline.ownership import (
    RunDriver,
    held_by_another,
    holder_of,
    is_same,
    refuse_second,
    shown_holder,
    still_holding,
)
from handrail.domain.pipeline.past_index import RUNS, IndexedRun, improvement_text, index_text, indexed
from handrail.domain.pipeline.placeholders import filled
from handrail.domain.pipeline.prompt import Parts, assemble
from handrail.domain.pipeline.results import Reported
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import GateAnswer, open_gate
from handrail.domain.pipeline.run_status import stop_told
from handrail.domain.pipeline.start import finished_runs
from handrail.domain.pipeline.state import is_left_out
from handrail.domain.pipeline.state_import import Destination, commands_in, import_run, run_from
from handrail.domain.pipeline.turns import (
    Previous,
    RunRules,
    Turn,
    action_id,
    find_run,
    limits_of,
    report_phase,
    run_at,
    take_turn,
    why_stopped,
)
from handrail.kernel.errors import NotAllowed
from handrail.kernel.ledger import HANDRAIL
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call
from handrail.toolsets.pipeline.start import request_md, wrote_request
from handrail.toolsets.pipeline.tools import InitWithContext, NextAction, ReportResult, ResumeInfo

STATE_FILE = "state.json"
NOTES = "improvement.md"
REQUEST_FILE = "request.md"
SHOWN_FINDINGS = 20
ONLY_HERE = ("repository_path", "holder")


class Documents(NamedTuple):
    """A run's workspace as it was on disk before the unit of work."""

    files: Mapping[str, str]
    profile: Sequence[str] = ()
    """A description of the repository, for an agent that is new to it."""
    state: str | None = None
    """The `state.json` in it: a run that the store does not know is taken over from it."""


def documents_read(call: Call, request: NextAction | ReportResult | ResumeInfo) -> Documents:
    specs = call.world.specs(call.here.repository)
    files = specs.texts(request.workspace)
    profile = call.world.profile(call.here.repository) if isinstance(request, NextAction) else ()
    return Documents(files, profile, specs.state(request.workspace))


def pipeline_next_action(call: Call, request: NextAction) -> dict[str, Any]:
    documents: Documents = call.prepared
    run = run_at(call.work, call.here.repository, request.workspace)
    taken_over = run is None and documents.state is not None
    if run is None:
        run = _find_or_import(call, request.workspace, documents)
    run = _take_hold(call, run, take_over=request.take_over)
    if request.until is not None:
        facts = run.facts(humans_decide=call.humans_decide)
        limits = with_until(run.flow_followed(), run.limits, request.until, facts, run.run_state())
        run = msgspec.structs.replace(run, limits=limits)
    previous = Previous(
        request.previous_action_complete,
        request.previous_tokens,
        request.previous_duration_ms,
        request.previous_model,
        request.previous_action_id,
        request.previous_setup_only,
        (request.previous_error or "").strip(),
    )
    turn = take_turn(call.work, run, documents.files, previous, answer=_answer(request), rules=rules_of(call))
    shown = _shown(call, turn, documents)
    return {**shown, "taken_over_from": STATE_FILE} if taken_over else shown


def rules_of(call: Call) -> RunRules:
    check_budget(call.budget)
    return RunRules(call.humans_decide, call.budget.prices, call.budget.limits)


def _find_or_import(call: Call, workspace: str, documents: Documents) -> PipelineRun:
    """Records the run of a workspace that was copied here. If only people open gates, only people may import: the file
    says which were opened, and anybody can write it."""
    if documents.state is None:
        return find_run(call.work, call.here.repository, workspace)
    if call.humans_decide:
        raise NotAllowed(
            f"{workspace} was copied here, and only a person may take it over here",
            hint=f"the person runs: handrail pipeline import {workspace}",
        )
    return import_run(call.work, documents.state, documents.files, destination(call, workspace))


def destination(call: Call, workspace: str) -> Destination:
    """Where a run is taken over, with what is allowed here."""
    flows = call.world.flows()
    known = commands_in(flows.find(name) for name in flows.names())
    check_budget(call.budget)
    return Destination(call.here.repository, workspace, known, call.budget.limits)


def _take_hold(call: Call, run: PipelineRun, *, take_over: bool = False) -> PipelineRun:
    """The run with its caller as the one who drives it. Raises WorkspaceHeld if another does."""
    now = call.work.now_ms()
    caller = RunDriver(call.work.actor.name, call.writer.agent_id, call.session)
    if run.holder is not None and is_same(run.holder, caller):
        return msgspec.structs.replace(run, holder=dict(still_holding(run.holder, caller)))
    other = held_by_another(run.holder, run.updated_at, caller, lambda holder: _is_there(call, holder), now)
    if other and not take_over and run.run_state().ended is None:
        assert run.holder is not None
        raise refuse_second(run.workspace, run.holder, run.updated_at, now)
    return msgspec.structs.replace(run, holder=holder_of(caller, now))


def _is_there(call: Call, holder: Mapping[str, Any]) -> bool | None:
    """An agent that is silent while its subagents work is still present, as long as its process is."""
    known = holder.get("agent_id") is not None
    if known and is_present(call.work, str(holder["agent_id"])):
        return True
    alive = call.world.is_alive(str(holder["session"])) if holder.get("session") is not None else None
    return False if known and alive is None else alive


def _answer(request: NextAction) -> GateAnswer | None:
    return GateAnswer(request.user_response, request.gate_id) if request.user_response is not None else None


def write_request(call: Call, request: InitWithContext, answer: dict[str, Any]) -> None:
    """Writes `request.md` and `state.json`, once the run exists."""
    wrote_request(call, request, answer)
    if answer.get("ready"):
        mirror(call, answer["workspace"])


def mirror_state(call: Call, request: NextAction | ReportResult, _: dict[str, Any]) -> None:
    """Writes `state.json`, which mirrors the run for people and for other machines."""
    mirror(call, request.workspace)


def mirror(call: Call, workspace: str) -> None:
    """Writes what people and other machines read about a run: its state at every turn, its lessons at the end."""

    def current(unit: UnitOfWork) -> tuple[PipelineRun, list[IndexedRun]]:
        run = find_run(unit, call.here.repository, workspace)
        ended = run.run_state().ended is not None
        return run, [indexed(one) for one in finished_runs(unit, run.repository_path, RUNS)] if ended else []

    run, past = call.ledger.run(HANDRAIL, current)
    mirror_run(call, run, past)


def mirror_run(call: Call, run: PipelineRun, past: Sequence[IndexedRun] = ()) -> None:
    """Writes the current files of a run and, if it has ended, the index of `past` runs."""
    specs = call.world.specs(call.here.repository)
    there = specs.texts(run.workspace)
    if REQUEST_FILE not in there:  # the process that began the run may have died before it was written
        specs.write(run.workspace, REQUEST_FILE, request_md(run, run.request))
    if run.run_state().ended is not None:
        if NOTES not in there and (notes := improvement_text(run.friction)):
            specs.write(run.workspace, NOTES, notes)
        specs.write_index(index_text(past))
    specs.write(run.workspace, STATE_FILE, state_json(run))


def state_json(run: PipelineRun) -> str:
    """The run without what is true only of this machine: it is committed with the documents."""
    shown = {name: value for name, value in msgspec.to_builtins(run).items() if name not in ONLY_HERE}
    return msgspec.json.format(msgspec.json.encode({"version": 1, **shown}), indent=2).decode() + "\n"


def _shown(call: Call, turn: Turn, documents: Documents) -> dict[str, Any]:
    """The action in the document's form: what wraps every action, then its own fields."""
    action, files = turn.action, documents.files
    shown: dict[str, Any] = {
        "type": action.type,
        "warning": turn.warning,
        "display_message": _heading(turn.run, action),
        "report_result": shown_report(turn.reported) if turn.reported is not None else None,
    }
    match action.type:
        case "spawn_agent":
            shown |= _spawn_fields(call, turn, documents.profile)
        case "checkpoint":
            shown |= {"name": action.gate, "present_to_user": _gate_text(turn, files), "options": action.options}
        case "human_gate":
            shown |= {
                "phase": action.phase,
                "name": action.gate,
                "present_to_user": _gate_text(turn, files),
                "options": action.options,
            }
        case "exec":
            shown |= {
                "phase": action.phase,
                "commands": [filled(turn.run, word) for word in action.command],
                "setup_only": action.setup_only,
            }
        case "write_file":
            path = f"{turn.run.workspace}/{action.path}"
            shown |= {"phase": action.phase, "path": path, "content": action.content}
        case "done" if action.stopped is not None:
            shown |= _stop_fields(turn.run, action, rules_of(call))
        case "done":
            shown |= _done_fields(turn.run, action)
    if action.type in ("spawn_agent", "exec", "write_file"):
        shown["action_id"] = action_id(turn.run)
    if turn.gate is not None:
        shown["gate_id"] = turn.gate.id
        shown["still_waiting"] = True
    return shown


def _spawn_fields(call: Call, turn: Turn, profile: Sequence[str]) -> dict[str, Any]:
    action, run, state = turn.action, turn.run, turn.run.run_state()
    phase = run.flow_followed().phase(action.phase)
    several = len(action.tasks) > 1
    tasks = [state.task(number) for number in action.tasks]
    about = " ".join((run.title, *(f"{task.title} {' '.join(task.files)}" for task in tasks)))
    learnt = lines_for(action.agent or "", msgspec.convert(run.lessons, Lessons), about)
    prompt = assemble(
        Parts(
            role=call.world.role(action.agent or ""),
            workspace=run.workspace,
            spec_name=run.spec_name,
            branch=run.branch,
            inputs=action.inputs,
            numbered=(*phase.inputs, *phase.if_there),
            output=phase.output,
            contains=phase.contains,
            verdicts=(*phase.passes, *phase.fails),
            tasks=tasks,
            profile=profile,
            similar=learnt.similar,
            patterns=learnt.patterns,
            friction=learnt.friction,
            again=state.again.get(action.phase, ""),
            feedback=state.feedback,
        )
    )
    return {
        "agent": action.agent,
        "prompt": prompt,
        "model": action.model,
        "phase": action.phase,
        "input_files": action.inputs,
        "output_file": action.output,
        "parallel_task_ids": [str(number) for number in action.tasks] if several else None,
        **({"task_id": str(action.tasks[0])} if len(action.tasks) == 1 else {}),
    }


def _gate_text(turn: Turn, files: Mapping[str, str]) -> str:
    action = turn.action
    flow = turn.run.flow_followed()
    means = meanings(flow, turn.run.run_state(), action)
    answers = "\n".join(f"- {option}: {does}" for option, does in means.items())
    parts = [f"## {flow.phase(action.phase).label}", action.why or "", answers, files.get(action.shows or "", "")]
    return "\n\n".join(part for part in parts if part)


def _heading(run: PipelineRun, action: Action) -> str:
    if action.type == "done":
        return "Abandoned" if action.abandoned else "Stopped" if action.stopped is not None else "Completed"
    phase = run.flow_followed().phase(action.phase)
    number = phase.id.removeprefix("phase-")
    return f"Phase {number}: {phase.label}" if phase.id.startswith("phase-") else phase.label


def _stop_fields(run: PipelineRun, action: Action, rules: RunRules) -> dict[str, Any]:
    """Reported as `done`, so that the run's driver stops; that it can continue, and how, is added beside it."""
    stop = stop_told(run, action, rules)
    return {
        "summary": f"Pipeline stopped before {stop.before_phase}: {stop.why}; nothing is lost",
        "summary_path": None,
        "stopped": {"reason": stop.reason, "before_phase": stop.before_phase, "go_on_with": stop.go_on_with},
    }


def _done_fields(run: PipelineRun, action: Action) -> dict[str, Any]:
    flow, state = run.flow_followed(), run.run_state()
    facts = run.facts(humans_decide=False)
    skipped = sum(is_left_out(phase, state, flow, facts) for phase in flow.phases)
    said = "abandoned" if action.abandoned else "completed"
    return {
        "summary": f"Pipeline {said}: {len(state.done)} phases, {skipped} skipped",
        "summary_path": None if action.abandoned else f"{run.workspace}/summary.md",
    }


def pipeline_report_result(call: Call, request: ReportResult) -> dict[str, Any]:
    run = _take_hold(call, find_run(call.work, call.here.repository, request.workspace))
    documents: Documents = call.prepared
    error = (request.error or "").strip()
    previous = Previous(True, request.tokens_used, request.duration_ms, request.model, error=error)
    return shown_report(report_phase(call.work, run, documents.files, request.phase, previous, rules=rules_of(call)))


def shown_report(done: Reported) -> dict[str, Any]:
    return {
        "state_updated": True,
        "artifact_written": done.artefact,
        "verdict_parsed": done.verdict,
        "findings": [_finding(finding) for finding in done.findings[:SHOWN_FINDINGS]],
        "next_action_hint": done.hint,
        "warning": done.warning,
        "display_message": "",
    }


def _finding(finding: ReviewFinding) -> dict[str, str]:
    return {"severity": finding.severity, "description": finding.description}


def state_resume_info(call: Call, request: ResumeInfo) -> dict[str, Any]:
    documents: Documents = call.prepared
    run = run_at(call.work, call.here.repository, request.workspace)
    copied = run is None and documents.state is not None
    if run is None and documents.state is not None:
        run = run_from(documents.state, documents.files, destination(call, request.workspace), call.work.now_ms())
    elif run is None:
        run = find_run(call.work, call.here.repository, request.workspace)
    return {**_run_fields(call, run), **({"imported_from": STATE_FILE} if copied else {})}


def _run_fields(call: Call, run: PipelineRun) -> dict[str, Any]:
    state = run.run_state()
    stopped = why_stopped(call.work, run)
    gate = open_gate(call.work, run.id) if run.id else None
    have = spent(run.log, call.budget.prices)
    over = [task for task in state.tasks if task.is_over]
    limits = {**run.limits, **limits_of(run, rules_of(call))}
    status = state.ended or ("awaiting_human" if gate is not None else stopped and "paused") or "in_progress"
    return {
        "workspace": run.workspace,
        "workflow_id": run.id,
        "spec_name": run.spec_name,
        "effort": run.effort,
        "flow_template": run.flow["name"],
        "branch": run.branch,
        "current_phase": run.dispatched["phase"] if run.dispatched is not None else None,
        "status": status,
        "completed_phases": state.done,
        "skipped_phases": list(run.flow.get("skip", [])),
        "total_tasks": len(state.tasks),
        "completed_tasks": len(over),
        "pending_tasks": [task.number for task in state.tasks if task not in over],
        "tasks_with_retries": [task.number for task in state.tasks if task.retries],
        "total_tokens": have.tokens,
        "total_duration_ms": sum(entry["duration_ms"] for entry in run.log),
        "instruction": _instruction(run),
        **({"gate_id": gate.id, "options": gate.options} if gate is not None else {}),
        **({"limits": limits} if limits else {}),
        **({"stopped": stopped} if stopped is not None else {}),
        **({"held_by": shown_holder(run.holder)} if run.holder is not None else {}),
    }


def _instruction(run: PipelineRun) -> str:
    ended = run.run_state().ended
    if ended is None:
        return "call pipeline_next_action"
    return f"the run is {ended}: nothing is left to do; pipeline_init begins another"
