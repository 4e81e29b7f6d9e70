"""Toolset `pipeline`, its turns: what is next, what came of what was done, where a run stands. Loaded when a pipeline
runs; the tools are declared in `pipeline.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.pipeline.documents import Finding
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.learning import Lessons, lines_for
from handrail.domain.pipeline.prompt import Parts, assemble
from handrail.domain.pipeline.reporting import Reported
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.running import (
    Answer,
    Previous,
    Turn,
    action_id,
    find_run,
    open_gate,
    report_phase,
    take_turn,
)
from handrail.domain.pipeline.state import is_left_out
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call
from handrail.toolsets.pipeline_shapes import NextAction, ReportResult, ResumeInfo
from handrail.toolsets.pipeline_starting import request_md

STATE_FILE = "state.json"
REQUEST_FILE = "request.md"
SHOWN_FINDINGS = 20
_PLACE = re.compile(r"\{([a-z_-]+)\}")
MIRRORING = Actor("handrail", "auto")


class Documents(NamedTuple):
    """A run's workspace as it is on disk before the unit of work."""

    files: Mapping[str, str]
    profile: Sequence[str] = ()
    """What the repository is made of, for an agent that comes to it anew."""


def documents_read(call: Call, request: NextAction | ReportResult) -> Documents:
    files = call.specs(call.here.repository).texts(request.workspace)
    return Documents(files, call.profile(call.here.repository) if isinstance(request, NextAction) else ())


def next_action(call: Call, request: NextAction) -> dict[str, Any]:
    run = find_run(call.work, call.here.repository, request.workspace)
    documents: Documents = call.prepared
    previous = Previous(
        request.previous_action_complete,
        request.previous_tokens,
        request.previous_duration_ms,
        request.previous_model,
        request.previous_action_id,
    )
    turn = take_turn(
        call.work, run, documents.files, previous, answer=_answer(request), humans_decide=call.humans_decide
    )
    return _shown(call, turn, documents)


def _answer(request: NextAction) -> Answer | None:
    return Answer(request.user_response, request.gate_id) if request.user_response is not None else None


def mirror(call: Call, request: NextAction | ReportResult) -> None:
    def current(unit: UnitOfWork) -> PipelineRun:
        return find_run(unit, call.here.repository, request.workspace)

    run = call.ledger.run(MIRRORING, current)
    specs = call.specs(call.here.repository)
    if REQUEST_FILE not in specs.texts(run.workspace):  # whoever began the run may have died before it was written
        specs.write(run.workspace, REQUEST_FILE, request_md(run, run.request))
    specs.write(run.workspace, STATE_FILE, state_json(run))


def state_json(run: PipelineRun) -> str:
    shown = msgspec.to_builtins(run)
    return msgspec.json.format(msgspec.json.encode({"version": 1, **shown}), indent=2).decode() + "\n"


def _shown(call: Call, turn: Turn, documents: Documents) -> dict[str, Any]:
    """The action as the document has it: what wraps every action, then its own fields."""
    action, files = turn.action, documents.files
    shown: dict[str, Any] = {
        "type": action.type,
        "warning": turn.warning,
        "display_message": _heading(turn.run, action),
        "report_result": shown_report(turn.reported) if turn.reported is not None else None,
    }
    match action.type:
        case "spawn_agent":
            shown |= _spawned(call, turn, documents.profile)
        case "checkpoint":
            shown |= {"name": action.gate, "present_to_user": _presented(turn, files), "options": action.options}
        case "human_gate":
            shown |= {
                "phase": action.phase,
                "name": action.gate,
                "present_to_user": _presented(turn, files),
                "options": action.options,
            }
        case "exec":
            shown |= {
                "phase": action.phase,
                "commands": [_filled(turn.run, word) for word in action.command],
                "setup_only": action.setup_only,
            }
        case "write_file":
            path = f"{turn.run.workspace}/{action.path}"
            shown |= {"phase": action.phase, "path": path, "content": action.content}
        case "done":
            shown |= _done(turn.run, action)
    if action.type in ("spawn_agent", "exec", "write_file"):
        shown["action_id"] = action_id(turn.run)
    if turn.gate is not None:
        shown["gate_id"] = turn.gate.id
        shown["still_waiting"] = True
    return shown


def _spawned(call: Call, turn: Turn, profile: Sequence[str]) -> dict[str, Any]:
    action, run, state = turn.action, turn.run, turn.run.run_state()
    phase = run.flow_followed().phase(action.phase)
    several = len(action.tasks) > 1
    tasks = [state.task(number) for number in action.tasks]
    about = " ".join((run.title, *(f"{task.title} {' '.join(task.files)}" for task in tasks)))
    learnt = lines_for(action.agent or "", msgspec.convert(run.lessons, Lessons), about)
    prompt = assemble(
        Parts(
            role=call.roles(action.agent or ""),
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


def _presented(turn: Turn, files: Mapping[str, str]) -> str:
    action = turn.action
    phase = turn.run.flow_followed().phase(action.phase)
    parts = [f"## {phase.label}", action.why or "", files.get(action.shows or "", "")]
    return "\n\n".join(part for part in parts if part)


def _heading(run: PipelineRun, action: Action) -> str:
    if action.type == "done":
        return "Abandoned" if action.abandoned else "Completed"
    phase = run.flow_followed().phase(action.phase)
    number = phase.id.removeprefix("phase-")
    return f"Phase {number}: {phase.label}" if phase.id.startswith("phase-") else phase.label


def _filled(run: PipelineRun, word: str) -> str:
    """A command's word with what the run knows. Nothing is read by a shell."""
    closes = f"\n\nCloses #{run.source_id}" if run.source_type == "github_issue" else ""
    values = {
        "workspace": run.workspace,
        "branch": run.branch or "",
        "spec-name": run.spec_name,
        "title": f"feat: {run.title}",
        "body": f"{run.title}\n\nDocuments: {run.workspace}{closes}",
        "source_url": run.source_url or "",
    }
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), word)  # in one pass: what is put in stays as it is


def _done(run: PipelineRun, action: Action) -> dict[str, Any]:
    flow, state = run.flow_followed(), run.run_state()
    facts = run.facts(humans_decide=False)
    skipped = sum(is_left_out(phase, state, flow, facts) for phase in flow.phases)
    said = "abandoned" if action.abandoned else "completed"
    return {
        "summary": f"Pipeline {said}: {len(state.done)} phases, {skipped} skipped",
        "summary_path": f"{run.workspace}/summary.md",
    }


def report_result(call: Call, request: ReportResult) -> dict[str, Any]:
    run = find_run(call.work, call.here.repository, request.workspace)
    documents: Documents = call.prepared
    previous = Previous(True, request.tokens_used, request.duration_ms, request.model)
    done = report_phase(call.work, run, documents.files, request.phase, previous, humans_decide=call.humans_decide)
    return shown_report(done)


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


def _finding(finding: Finding) -> dict[str, str]:
    return {"severity": finding.severity, "description": finding.description}


def resume_info(call: Call, request: ResumeInfo) -> dict[str, Any]:
    run = find_run(call.work, call.here.repository, request.workspace)
    state = run.run_state()
    gate = open_gate(call.work, run.id)
    over = [task for task in state.tasks if task.implemented or task.skipped]
    return {
        "workspace": run.workspace,
        "workflow_id": run.id,
        "spec_name": run.spec_name,
        "effort": run.effort,
        "flow_template": run.flow["name"],
        "branch": run.branch,
        "current_phase": run.dispatched["phase"] if run.dispatched is not None else None,
        "status": state.ended or ("awaiting_human" if gate is not None else "in_progress"),
        "completed_phases": state.done,
        "skipped_phases": list(run.flow.get("skip", [])),
        "total_tasks": len(state.tasks),
        "completed_tasks": len(over),
        "pending_tasks": [task.number for task in state.tasks if task not in over],
        "tasks_with_retries": [task.number for task in state.tasks if task.retries],
        "total_tokens": sum(entry["tokens"] for entry in run.log),
        "total_duration_ms": sum(entry["duration_ms"] for entry in run.log),
        "instruction": "call pipeline_next_action",
        **({"gate_id": gate.id, "options": gate.options} if gate is not None else {}),
    }
