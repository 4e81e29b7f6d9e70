"""What comes of a reported action: the run moves on, goes back, or names what is missing. Pure, and strict by default:
a missing file, an unreadable verdict or a repeated old one approves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from handrail.domain.pipeline.dispatch import accept_file, is_old, settled, task_states
from handrail.domain.pipeline.documents import ReviewFinding, findings_in, judgement_in
from handrail.domain.pipeline.engine import one_task_list, ready
from handrail.domain.pipeline.flow import Flow, Phase
from handrail.domain.pipeline.state import (
    Facts,
    RunState,
    TaskState,
    all_again,
    back_to,
    count_unusable,
    finish,
    present_phase,
    progressed,
    unreviewed,
    with_reason,
)
from handrail.domain.pipeline.workspace_texts import fingerprint
from handrail.kernel.errors import ArtefactMissing, IllegalTransition

PROCEED, REVISE, CONTINUE = "proceed", "revision_required", "setup_continue"


class Reported(NamedTuple):
    """What a report did."""

    state: RunState
    hint: str = PROCEED
    artefact: str | None = None
    verdict: str | None = None
    findings: tuple[ReviewFinding, ...] = ()
    warning: str = ""


def report(flow: Flow, state: RunState, facts: Facts, files: Mapping[str, str], phase_id: str) -> Reported:
    """The run after the current phase's action was carried out. Raises a refusal if it produced no usable result."""
    state, phase = _reported_phase(flow, state, facts, files, phase_id)
    done = _report_by_kind(flow, state, phase, files)
    # Anything that sends work back was read and acted on first; a report that merely has to be repeated left no trace.
    nothing = done.hint == REVISE and done.state.judged == state.judged
    after = count_unusable(done.state, phase.id) if nothing else progressed(done.state)
    return done._replace(state=with_reason(after, phase.id, done.warning))


def refused(state: RunState, phase_id: str, why: str) -> RunState:
    """The run after an action without a usable result: it is handed out again, with the reason, until it is done."""
    return count_unusable(state, phase_id).but(again={**state.again, phase_id: why})


def fail(flow: Flow, state: RunState, facts: Facts, files: Mapping[str, str], phase_id: str, error: str) -> Reported:
    """The run after the current phase's action failed: it still has to be done, whatever files exist by now."""
    state, phase = _reported_phase(flow, state, facts, files, phase_id)
    why = f"the last try failed: {error.strip()}"
    counted = {**state.failed, phase.id: state.failed.get(phase.id, 0) + 1}
    return Reported(refused(state, phase.id, why).but(failed=counted), REVISE, warning=why)


def _reported_phase(
    flow: Flow, state: RunState, facts: Facts, files: Mapping[str, str], phase_id: str
) -> tuple[RunState, Phase]:
    """The settled state and its current phase. Raises if that is a different phase, or one that nobody carries out."""
    state = settled(flow, state, files) if state.ended is None else state
    phase = present_phase(flow, state, facts)
    if phase is None or state.ended is not None or phase.id != phase_id:
        turn = f"it is {phase.id}'s turn" if phase is not None and state.ended is None else "the run is over"
        raise IllegalTransition(
            f"{phase_id} cannot be reported: {turn}",
            hint="pipeline_next_action returns what to do now",
            phase=phase_id,
        )
    if phase.kind == "gate":
        raise IllegalTransition(
            f"{phase.id} is a question to a person and is not reported",
            hint="user_response of pipeline_next_action carries the answer",
            phase=phase.id,
        )
    return state, phase


def _report_by_kind(flow: Flow, state: RunState, phase: Phase, files: Mapping[str, str]) -> Reported:
    match phase.kind:
        case "agent":
            return _without_feedback(_report_document(flow, state, phase, files))
        case "review":
            return _without_feedback(_report_review(flow, state, phase, files))
        case "tasks":
            if not state.tasks:
                return _report_task_list(state, phase, files)
            return _without_feedback(_report_implementation(state, phase, files))
        case "task-reviews":
            return _without_feedback(_report_task_reviews(flow, state, phase, files))
        case _:
            last = state.command + 1 == len(phase.commands)
            after = finish(state, phase.id) if last else state.but(command=state.command + 1)
            return Reported(after, PROCEED if last else CONTINUE)


def _without_feedback(done: Reported) -> Reported:
    """A person's feedback has reached an agent, so it is dropped and not passed on twice."""
    return done._replace(state=done.state.but(feedback=None))


def _text(phase: Phase, name: str, files: Mapping[str, str]) -> str:
    text = files.get(name, "")
    if not text.strip():
        raise ArtefactMissing(
            f"{phase.id} must write {name}, which is {'empty' if name in files else 'not there'}",
            hint="write the file into the workspace, then report again",
            phase=phase.id,
            file=name,
        )
    return text


def _report_document(flow: Flow, state: RunState, phase: Phase, files: Mapping[str, str]) -> Reported:
    name = phase.output or ""
    text = _text(phase, name, files)
    if is_old(state, name, files):
        raise ArtefactMissing(
            f"{name} is what it was before {phase.id} was handed out",
            hint="write it anew, if only to say in it what was looked at again; then report again",
            phase=phase.id,
            file=name,
        )
    if phase.contains and phase.contains not in text:
        raise ArtefactMissing(
            f"{name} does not contain {phase.contains.strip()}, as {phase.id} demands",
            hint="write what is missing, then report again",
            phase=phase.id,
            file=name,
        )
    state = finish(accept_file(state, name, files), phase.id)
    if any(other.kind == "tasks" and other.plan == name for other in flow.phases):
        state = state.but(tasks=task_states(text, name), plan=fingerprint(files, name))
    return Reported(state, PROCEED, name)


def _report_review(flow: Flow, state: RunState, phase: Phase, files: Mapping[str, str]) -> Reported:
    name = phase.output or ""
    text = _text(phase, name, files)
    verdict, problem = judgement_in(text, phase.passes, phase.fails)
    if verdict is None or is_old(state, name, files):
        unread = f"{name} has no readable verdict: {problem}"
        why = f"{name} is no new review: it was there before" if verdict else unread
        counted = {**state.unread, phase.id: state.unread.get(phase.id, 0) + 1}
        expected = ", ".join((*phase.passes, *phase.fails))
        warning = f"{why}; it needs one line such as: ## Verdict: {phase.passes[0]} (one of {expected})"
        return Reported(state.but(unread=counted), REVISE, name, warning=warning)
    found = tuple(findings_in(text))
    state = accept_file(state, name, files).but(unread={**state.unread, phase.id: 0})
    if verdict in phase.passes:
        return Reported(
            finish(state.but(approved=[*state.approved, phase.id]), phase.id), PROCEED, name, verdict, found
        )
    state = state.but(tries={**state.tries, phase.id: state.tries.get(phase.id, 0) + 1})
    if state.tries[phase.id] <= phase.retries:
        state = all_again(flow, state, phase.revises or phase.id)
    return Reported(state, REVISE, name, verdict, found)


def _report_task_list(state: RunState, phase: Phase, files: Mapping[str, str]) -> Reported:
    """Takes the one-task list that the action asked to have written."""
    name = phase.plan or ""
    text = _text(phase, name, files)
    if text.split() != one_task_list().split():
        raise ArtefactMissing(
            f"{name} is not what was to be written",
            hint="write the content of the action as it is, then report again",
            phase=phase.id,
            file=name,
        )
    return Reported(state.but(tasks=task_states(text, name), plan=fingerprint(files, name)), CONTINUE, name)


def _report_implementation(state: RunState, phase: Phase, files: Mapping[str, str]) -> Reported:
    """Counts only tasks that were handed out; a file for any other task is premature."""
    names = {task.number: phase.output_for(task.number) for task in ready(state.tasks) if not task.is_gate}
    awaited = {number: name for number, name in names.items() if name in state.before} or names
    written: list[str] = []
    for number, name in awaited.items():
        text = files.get(name, "")
        if text.strip() and not is_old(state, name, files):
            written.append(name)
            done = msgspec.structs.replace(state.task(number), implemented=True, verdict=None)
            state = accept_file(state.with_task(done), name, files)
    if not written:
        raise ArtefactMissing(
            f"{phase.id} has written none of {', '.join(list(awaited.values())[:10])}",
            hint="each task writes its own file anew; then report again",
            phase=phase.id,
        )
    if all(task.is_over for task in state.tasks):
        state = finish(state, phase.id)
    # Only tasks that were handed out: they go out again, together with anything else that is ready by then.
    missing = [name for name in awaited.values() if name in state.before]
    if not missing:
        return Reported(state, PROCEED, ", ".join(written))
    named = f"{', '.join(missing[:10])}{' …' if len(missing) > 10 else ''}"
    warning = f"{phase.id} has written {', '.join(written[:10])} and not {named}; each task writes its own file anew"
    return Reported(state, REVISE, ", ".join(written), warning=warning)


def _report_task_reviews(flow: Flow, state: RunState, phase: Phase, files: Mapping[str, str]) -> Reported:
    read: list[str] = []
    verdicts: list[str] = []
    found: list[ReviewFinding] = []
    unclear: list[str] = []
    for task in unreviewed(state):
        name = phase.output_for(task.number)
        text = files.get(name, "")
        verdict, problem = judgement_in(text, phase.passes, phase.fails)
        if not text.strip() or verdict is None or is_old(state, name, files):
            unclear.append(f"{name} ({problem})" if text.strip() and problem else name)
            continue
        read.append(name)
        verdicts.append(verdict)
        found += findings_in(text)
        state = accept_file(state.with_task(_with_verdict(task, verdict, passed=verdict in phase.passes)), name, files)
    if unclear:
        state = state.but(unread={**state.unread, phase.id: state.unread.get(phase.id, 0) + 1})
    else:
        state = state.but(unread={**state.unread, phase.id: 0})
    failing = any(not task.is_over for task in state.tasks)
    warning = f"without a readable new verdict: {', '.join(unclear)}" if unclear else ""
    worst = next((verdict for verdict in verdicts if verdict in phase.fails), None) or next(iter(verdicts), None)
    if failing:
        state = back_to(flow, state, phase.revises or phase.id)
    elif not unclear:
        state = finish(state, phase.id)
    hint = REVISE if failing or unclear else PROCEED
    return Reported(state, hint, ", ".join(read) or None, worst, tuple(found), warning)


def _with_verdict(task: TaskState, verdict: str, *, passed: bool) -> TaskState:
    if passed:
        return msgspec.structs.replace(task, verdict=verdict)
    return msgspec.structs.replace(task, implemented=False, verdict=None, retries=task.retries + 1)
