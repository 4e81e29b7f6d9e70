"""The engine: decides the next action of a run. A pure function of the flow, the run's state and the workspace files.

It changes nothing, so asking twice gives the same answer. `results.py` handles the result of an action,
`answers.py` a person's answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from handrail.domain.pipeline.dispatch import reopened, settled
from handrail.domain.pipeline.flow import NUMBER, Flow, Phase, numbered
from handrail.domain.pipeline.state import (
    Facts,
    RunState,
    TaskState,
    is_left_out,
    outputs_of,
    present_phase,
    unreviewed,
)

UNREADABLE_TRIES = 2
"""Reviews without a readable verdict before a person is asked."""
FAILED_TRIES = 2
"""Consecutive failures of one phase before a person is asked."""
UNTAKEN_TRIES = 3
"""Consecutive turns of one phase that produced no usable result before a person is asked. One more than for failures,
because a forgotten file is usually there on the next try. There has to be a limit: an agent that keeps writing the same
text is paid for every time."""
LIMIT_OPTIONS = ["approve", "reject", "abandon"]
FAILED_OPTIONS = ["reject", "abandon"]
"""For a phase whose missing work the run cannot continue without."""
TASK_GATE_OPTIONS = ["done", "skip", "abandon"]
PAUSED, UNTIL, BUDGET = "paused", "until", "budget"
"""Why a run that is not over has stopped."""

ActionType = Literal["spawn_agent", "checkpoint", "exec", "write_file", "human_gate", "done"]
QUESTIONS: tuple[ActionType, ...] = ("checkpoint", "human_gate")
"""Actions that ask a person."""


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One typed action. Its type determines which fields are set."""

    type: ActionType
    phase: str = ""
    agent: str | None = None
    model: str | None = None
    inputs: list[str] = []
    output: str | None = None
    tasks: list[int] = []
    """The tasks it covers. If there are several, that many agents work on them in parallel."""
    gate: str | None = None
    """The gate's name."""
    shows: str | None = None
    """The file shown at the gate."""
    about: list[str] = []
    """Files that are not shown at the gate, but that its answer accepts: the work that a review is of."""
    why: str | None = None
    """The question put to a person, if there is more to it than approving a file."""
    options: list[str] = []
    command: list[str] = []
    setup_only: bool = False
    """True for a command that is followed by another command of the same phase."""
    path: str | None = None
    content: str | None = None
    opened_by: str | None = None
    """The answer to the previous gate, if that answer led straight to this one."""
    automatic: bool = False
    """True for a gate that opens by itself."""
    abandoned: bool = False
    stopped: str | None = None
    """Why the run has stopped, if it is not over: paused, until or budget."""


def decide(flow: Flow, state: RunState, facts: Facts, files: Mapping[str, str]) -> Action:
    """The next action. `files` maps names to the texts in the workspace."""
    action = _action_due(flow, state, facts, files)
    why = _why_to_stop(flow, facts, action)
    return action if why is None else Action(type="done", phase=action.phase, stopped=why)


def _why_to_stop(flow: Flow, facts: Facts, action: Action) -> str | None:
    """Why this action must not be done now. A spent budget stops only actions that would spend more."""
    if action.type == "done":
        return None
    if facts.paused:
        return PAUSED
    if facts.until is not None and flow.position(action.phase) > flow.position(facts.until):
        return UNTIL
    return BUDGET if facts.over and action.type == "spawn_agent" else None


def _action_due(flow: Flow, state: RunState, facts: Facts, files: Mapping[str, str]) -> Action:
    if state.ended is not None:
        return Action(type="done", abandoned=state.ended == "abandoned")
    state = reopened(flow, settled(flow, state, files), files)
    phase = present_phase(flow, state, facts)
    if phase is None:
        return Action(type="done")
    if (failed := _question_if_failed(phase, state)) is not None:
        return failed
    action = _turn_of(flow, state, facts, phase, files)
    return _question_if_unusable(phase, state, action) or action


def _turn_of(flow: Flow, state: RunState, facts: Facts, phase: Phase, files: Mapping[str, str]) -> Action:
    match phase.kind:
        case "agent":
            return _spawn(flow, state, facts, phase, files)
        case "review":
            return _limit(flow, phase, state) or _spawn(flow, state, facts, phase, files)
        case "gate":
            return _gate(phase, state, facts)
        case "tasks":
            return _task_action(flow, state, facts, phase, files)
        case "task-reviews":
            return _task_review(flow, state, facts, phase, files)
        case "exec":
            return _exec(phase, state)


def _spawn(
    flow: Flow, state: RunState, facts: Facts, phase: Phase, files: Mapping[str, str], tasks: tuple[TaskState, ...] = ()
) -> Action:
    agent = phase.agent
    for skipped, other in phase.instead.items():
        if flow.knows(skipped) and is_left_out(flow.phase(skipped), state, flow, facts):
            agent = other
    return Action(
        type="spawn_agent",
        phase=phase.id,
        agent=agent,
        model=phase.model,
        inputs=_inputs(flow, state, phase, files, tasks),
        output=phase.output if len(tasks) != 1 else phase.output_for(tasks[0].number),
        tasks=[task.number for task in tasks],
    )


def _inputs(
    flow: Flow, state: RunState, phase: Phase, files: Mapping[str, str], tasks: tuple[TaskState, ...]
) -> list[str]:
    """The names of the files to read; an optional one is included only if this run has written it."""
    found: list[str] = []
    for name in (*phase.inputs, *phase.if_there):
        names = [numbered(name, task.number) for task in tasks] if NUMBER in name else [name]
        writers = [other.id for other in flow.phases if other.output == name]
        written = not writers or any(writer in state.done for writer in writers)
        found += [one for one in names if name in phase.inputs or (one in files and (written or one in state.judged))]
    return found


def failure_gate(phase_id: str) -> str:
    """The name of the question a phase asks after failing, or producing nothing usable, too often."""
    return f"{phase_id}-failed"


def _question_if_failed(phase: Phase, state: RunState) -> Action | None:
    """The question to a person, if this phase has failed too often."""
    failures = state.failed.get(phase.id, 0)
    if failures < FAILED_TRIES:
        return None
    return Action(
        type="checkpoint",
        phase=phase.id,
        gate=failure_gate(phase.id),
        why=f"{phase.label} has failed {failures} times in a row: {state.again.get(phase.id, '')}".rstrip(": "),
        options=list(LIMIT_OPTIONS if phase.kind == "exec" else FAILED_OPTIONS),
    )


def _question_if_unusable(phase: Phase, state: RunState, action: Action) -> Action | None:
    """The question to a person that replaces an action whose results were unusable too often."""
    turns = state.untaken.get(phase.id, 0)
    if turns < UNTAKEN_TRIES or action.type not in ("spawn_agent", "write_file"):
        return None
    reason = state.again.get(phase.id, "")
    why = f"{phase.label} was tried {turns} times and gave nothing that could be accepted: {reason}"
    return Action(
        type="checkpoint",
        phase=phase.id,
        gate=failure_gate(phase.id),
        why=why.rstrip(": "),
        options=list(FAILED_OPTIONS),
    )


def is_sent_back_too_often(phase: Phase, state: RunState) -> bool:
    return state.tries.get(phase.id, 0) > phase.retries


def _limit(flow: Flow, phase: Phase, state: RunState) -> Action | None:
    """The question to a person, if agents have tried often enough."""
    tries, unread = state.tries.get(phase.id, 0), state.unread.get(phase.id, 0)
    if is_sent_back_too_often(phase, state):
        why = f"{phase.label} has sent the work back {tries} times."
    elif unread >= UNREADABLE_TRIES:
        why = f"{phase.label} gave no readable verdict {unread} times."
    else:
        return None
    return Action(
        type="checkpoint",
        phase=phase.id,
        gate=f"{phase.id}-limit",
        shows=phase.output,
        about=outputs_of(flow.phase(phase.revises), state) if phase.revises is not None else [],
        why=why,
        options=list(LIMIT_OPTIONS),
    )


def _gate(phase: Phase, state: RunState, facts: Facts) -> Action:
    why = state.again.get(phase.id)  # reopened: the approving review was of another text, so --auto must not open it
    opens = facts.auto and not facts.humans_decide and phase.auto_after in state.approved and why is None
    return Action(
        type="checkpoint",
        phase=phase.id,
        gate=phase.id,
        shows=phase.shows,
        why=why,
        options=list(phase.options),
        automatic=opens,
    )


def ready(tasks: list[TaskState]) -> list[TaskState]:
    """The tasks that can be done now, in order."""
    over = {task.number for task in tasks if task.is_over}
    return [task for task in tasks if task.number not in over and over.issuperset(task.depends_on)]


def _task_action(flow: Flow, state: RunState, facts: Facts, phase: Phase, files: Mapping[str, str]) -> Action:
    if not state.tasks:
        return Action(type="write_file", phase=phase.id, path=phase.plan, content=one_task_list())
    now = ready(state.tasks)
    limited = _task_limit(flow, state, facts, phase)
    if limited is not None:
        return limited
    agents = [task for task in now if not task.is_gate]
    if not agents:  # everything left waits for something a person does elsewhere
        gate = now[0]
        return Action(
            type="human_gate",
            phase=phase.id,
            gate=f"task-{gate.number}",
            tasks=[gate.number],
            why=f"Task {gate.number}: {gate.title}",
            options=list(TASK_GATE_OPTIONS),
        )
    together = [task for task in agents if task.mode == "parallel"] if agents[0].mode == "parallel" else agents[:1]
    return _spawn(flow, state, facts, phase, files, tuple(together))


def one_task_list() -> str:
    """The task list for a flow without a breakdown phase: the request is the only task."""
    return "# Tasks\n\n## Task 1: Do what request.md asks for\nmode: sequential\nfiles:\ndepends_on: []\n"


def _task_limit(flow: Flow, state: RunState, facts: Facts, phase: Phase) -> Action | None:
    """The question to a person about a task that was sent back too often."""
    review = next((one for one in flow.phases if one.kind == "task-reviews" and one.revises == phase.id), None)
    if review is None or is_left_out(review, state, flow, facts):
        return None
    for task in ready(state.tasks):  # one that waits for another is asked about when its turn comes
        if task.retries > review.retries:
            return Action(
                type="checkpoint",
                phase=phase.id,
                gate=f"task-{task.number}-limit",
                shows=review.output_for(task.number),
                about=[phase.output_for(task.number)] if phase.output is not None else [],
                tasks=[task.number],
                why=f"Task {task.number} ({task.title}) was sent back {task.retries} times.",
                options=list(LIMIT_OPTIONS),
            )
    return None


def _task_review(flow: Flow, state: RunState, facts: Facts, phase: Phase, files: Mapping[str, str]) -> Action:
    waiting = tuple(unreviewed(state))
    return _limit(flow, phase, state) or _spawn(flow, state, facts, phase, files, waiting)


def _exec(phase: Phase, state: RunState) -> Action:
    return Action(
        type="exec",
        phase=phase.id,
        command=list(phase.commands[state.command]),
        setup_only=state.command < len(phase.commands) - 1,
    )
