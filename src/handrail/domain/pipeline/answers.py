"""What a person's answer does to a run. Every gate accepts `abandon`; `reject` passes the person's words on to the next
agent; an answer that is not one of the options is refused."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from handrail.domain.pipeline.dispatch import accept_file
from handrail.domain.pipeline.engine import QUESTIONS, Action, failure_gate, is_sent_back_too_often, ready
from handrail.domain.pipeline.flow import Flow, Phase
from handrail.domain.pipeline.state import RunState, all_again, finish
from handrail.domain.pipeline.workspace_texts import fingerprint, unticked
from handrail.kernel.errors import IllegalTransition, InvalidParams

ABANDON, REJECT, SKIP = "abandon", "reject", "skip"


def split_answer(text: str, options: list[str]) -> tuple[str, str | None]:
    """The chosen option and the text after it. Raises InvalidParams if the answer does not start with an option."""
    word, rest = [*text.split(maxsplit=1), "", ""][:2]
    answer = word.strip(":,.!").lower()
    if answer not in (*options, ABANDON):
        raise _no_answer(word, options)
    return answer, rest.strip() or None


def _no_answer(word: str, options: list[str]) -> InvalidParams:
    known = ", ".join(dict.fromkeys((*options, ABANDON)))
    return InvalidParams(
        f"{word[:100] or 'nothing'} is not an answer here",
        hint=f"one of {known}; what follows the word is told to the next agent",
    )


def answered(
    flow: Flow, state: RunState, gate: Action, answer: str, feedback: str | None, files: Mapping[str, str]
) -> RunState:
    """The run after a gate was answered. Raises if the run is not waiting at this question.

    Approving makes the document that the gate shows, as it is in `files`, the accepted one, regardless of who wrote it.
    """
    _check_turn(flow, state, gate)
    if answer not in (*gate.options, ABANDON):
        raise _no_answer(answer, gate.options)
    if answer == ABANDON:
        return state.but(ended="abandoned")
    if feedback is not None:
        state = state.but(feedback=feedback)
    if gate.type == "human_gate":
        return _task_gate(flow, state, gate, answer)
    phase = flow.phase(gate.phase)
    if phase.kind == "gate":
        if answer == REJECT:
            return _with_counts_reset(all_again(flow, state, phase.returns_to or phase.id))
        state = _with_accepted(flow, state, gate.shows, files)
        opened = finish(state.but(answers={**state.answers, phase.id: answer}), phase.id)
        return opened.but(command=state.command)  # a reopened gate may stand between two commands of a phase
    if gate.gate == failure_gate(phase.id):  # a retry repeats the same action, and the same one of several commands
        return _with_counts_reset(state) if answer == REJECT else finish(state, phase.id)
    return _after_limit_answer(flow, state, gate, phase, answer)


def _after_limit_answer(flow: Flow, state: RunState, gate: Action, phase: Phase, answer: str) -> RunState:
    if gate.tasks:  # a task that was sent back too often
        task = state.task(gate.tasks[0])
        if answer == REJECT:
            return state.with_task(msgspec.structs.replace(task, retries=0))
        state = state.with_task(msgspec.structs.replace(task, implemented=True, verdict="ACCEPTED"))
        return _tasks_over(state, phase.id)
    if answer == REJECT and asks_to_review_again(phase, state):
        return _with_counts_reset(state)
    if answer == REJECT:
        return _with_counts_reset(all_again(flow, state, phase.revises or phase.id))
    return finish(_with_counts_reset(state), phase.id)


def asks_to_review_again(phase: Phase, state: RunState) -> bool:
    """Whether a review at its limit has to be redone itself: it could not be read, but the work stands."""
    return phase.kind == "task-reviews" or not is_sent_back_too_often(phase, state)


def _with_accepted(flow: Flow, state: RunState, name: str | None, files: Mapping[str, str]) -> RunState:
    if name is not None and any(phase.plan == name for phase in flow.phases):
        state = state.but(unticked=unticked(files, name))
    if name is None or fingerprint(files, name) in state.judged.get(name, [])[-1:]:
        return state
    return accept_file(state, name, files)


def meanings(flow: Flow, state: RunState, gate: Action) -> dict[str, str]:
    """What each answer does, for a question whose answers the flow does not explain; empty for any other."""
    phase = flow.phase(gate.phase)
    if gate.type != "checkpoint" or phase.kind == "gate":
        return {}
    if gate.gate == failure_gate(phase.id):
        found = {
            "approve": f"goes on without it: what is left of {phase.id} is not done",
            REJECT: "tries the same again",
        }
    elif gate.tasks:
        number = gate.tasks[0]
        found = {
            "approve": f"overrules the review and takes task {number} as it is",
            REJECT: f"has task {number} done again",
        }
    else:
        back = flow.phase(phase.revises or phase.id)
        again = "asks for the review again; the work stays as it is"
        found = {
            "approve": "overrules the review: the work goes on as it is",
            REJECT: again
            if asks_to_review_again(phase, state)
            else f"sends the work back to {back.id} ({back.label}) with what you say",
        }
    return {option: {**found, ABANDON: "ends the run; its documents stay"}[option] for option in gate.options}


def _check_turn(flow: Flow, state: RunState, gate: Action) -> None:
    """Refuses an answer to something that is not a question, was already answered, or is not being asked yet."""
    why = ""
    if state.ended is not None:
        why = f"the run is {state.ended}"
    elif gate.type not in QUESTIONS:
        why = "this is not a question to a person"
    elif gate.phase in state.done or not {task.number for task in ready(state.tasks)}.issuperset(gate.tasks):
        why = "it was answered before, or its task is not what comes next"
    elif early := [phase.id for phase in flow.phases[: flow.position(gate.phase)] if _is_due(phase, flow, state)]:
        why = f"{early[0]} comes before it"
    if why:
        raise IllegalTransition(
            f"{gate.gate or gate.phase} cannot be answered: {why}",
            hint="pipeline_next_action returns the question that is open now",
            phase=gate.phase,
        )


def _is_due(phase: Phase, flow: Flow, state: RunState) -> bool:
    """Whether a phase still has to be done in every run at this point."""
    conditional = phase.only_for or phase.unless or phase.after_answer or phase.kind == "task-reviews"
    return not conditional and phase.id not in (*state.done, *state.skip, *flow.skip)


def _task_gate(flow: Flow, state: RunState, gate: Action, answer: str) -> RunState:
    task = state.task(gate.tasks[0])
    if answer == SKIP:
        task = msgspec.structs.replace(task, skipped=True)
    else:
        task = msgspec.structs.replace(task, implemented=True, verdict="DONE")
    return _tasks_over(state.with_task(task), flow.phase(gate.phase).id)


def _tasks_over(state: RunState, phase_id: str) -> RunState:
    return finish(state, phase_id) if all(task.is_over for task in state.tasks) else state


def _with_counts_reset(state: RunState) -> RunState:
    """Resets all counts, because a person has decided."""
    return state.but(tries={}, unread={}, failed={}, untaken={})
