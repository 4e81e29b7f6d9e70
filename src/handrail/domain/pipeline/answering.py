"""What a person's answer does to a run. Every gate understands `abandon`; `reject` takes what was said along to the
next agent; an answer that is none of the options answers nothing."""

from __future__ import annotations

import msgspec

from handrail.domain.pipeline.engine import Action, ready
from handrail.domain.pipeline.flow import Flow, Phase
from handrail.domain.pipeline.state import RunState, all_again, finish
from handrail.kernel.errors import IllegalTransition, InvalidParams

ABANDON, REJECT, SKIP = "abandon", "reject", "skip"


def split_answer(text: str, options: list[str]) -> tuple[str, str | None]:
    """The option and what was said after it. Raises InvalidParams where it begins with none of them."""
    word, rest = [*text.split(maxsplit=1), "", ""][:2]
    answer = word.strip(":,.!").lower()
    if answer not in (*options, ABANDON):
        raise _no_answer(word, options)
    return answer, rest.strip() or None


def _no_answer(word: str, options: list[str]) -> InvalidParams:
    known = ", ".join(dict.fromkeys((*options, ABANDON)))
    return InvalidParams(
        f"{word[:100] or 'nothing'} is no answer here",
        hint=f"one of {known}; what follows the word is told to the next agent",
    )


def answered(flow: Flow, state: RunState, gate: Action, answer: str, feedback: str | None) -> RunState:
    """The run after a gate was answered. Raises where this is not the question the run waits at."""
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
            return _forgiven(all_again(flow, state, phase.returns_to or phase.id))
        return finish(state.but(answers={**state.answers, phase.id: answer}), phase.id)
    if gate.tasks:  # a task that was sent back too often
        task = state.task(gate.tasks[0])
        if answer == REJECT:
            return state.with_task(msgspec.structs.replace(task, retries=0))
        state = state.with_task(msgspec.structs.replace(task, implemented=True, verdict="ACCEPTED"))
        return _tasks_over(state, phase.id)
    if answer == REJECT and phase.kind == "task-reviews":  # the work is there; it is the review that cannot be read
        return _forgiven(state)
    if answer == REJECT:
        return _forgiven(all_again(flow, state, phase.revises or phase.id))
    return finish(_forgiven(state), phase.id)


def _check_turn(flow: Flow, state: RunState, gate: Action) -> None:
    """Refuses an answer to what is no question, was answered before, or is not asked yet."""
    why = ""
    if state.ended is not None:
        why = f"the run is {state.ended}"
    elif gate.type not in ("checkpoint", "human_gate"):
        why = "this is not a question to a person"
    elif gate.phase in state.done or not {task.number for task in ready(state.tasks)}.issuperset(gate.tasks):
        why = "it was answered before, or its task is not what comes next"
    elif early := [phase.id for phase in flow.phases[: flow.position(gate.phase)] if _is_due(phase, flow, state)]:
        why = f"{early[0]} comes before it"
    if why:
        raise IllegalTransition(
            f"{gate.gate or gate.phase} cannot be answered: {why}",
            hint="pipeline_next_action says what is asked now",
            phase=gate.phase,
        )


def _is_due(phase: Phase, flow: Flow, state: RunState) -> bool:
    """Whether a phase has yet to be done in every run that stands here."""
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
    left = [task for task in state.tasks if not (task.implemented or task.skipped)]
    return finish(state, phase_id) if not left else state


def _forgiven(state: RunState) -> RunState:
    """Counts begin anew once a person has spoken."""
    return state.but(tries={}, unread={})
