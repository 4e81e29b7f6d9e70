"""The engine: what is to be done next in a run. A pure function of the flow, the state and the files there are.

It decides and changes nothing: asked twice it says the same. What comes of an action is `reporting.py`'s, what a person
answers `answering.py`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from handrail.domain.pipeline.flow import Flow, Phase
from handrail.domain.pipeline.handing_out import settled
from handrail.domain.pipeline.state import Facts, RunState, TaskState, is_left_out, present_phase, unreviewed

UNREADABLE_TRIES = 2
"""Reviews without a readable verdict before a person is asked."""
FAILED_TRIES = 2
"""Failures of one phase in a row before a person is asked."""
LIMIT_OPTIONS = ["approve", "reject", "abandon"]
FAILED_OPTIONS = ["reject", "abandon"]
"""Where work is missing that nobody can go on without."""
TASK_GATE_OPTIONS = ["done", "skip", "abandon"]
PAUSED, UNTIL, BUDGET = "paused", "until", "budget"
"""Why a run stands still that is not over."""

ActionType = Literal["spawn_agent", "checkpoint", "exec", "write_file", "human_gate", "done"]


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One typed action. Which fields it has goes by its type."""

    type: ActionType
    phase: str = ""
    agent: str | None = None
    model: str | None = None
    inputs: list[str] = []
    output: str | None = None
    tasks: list[int] = []
    """The tasks it is for. Several are done by as many agents side by side."""
    gate: str | None = None
    """The gate's name."""
    shows: str | None = None
    """The file that is shown at a gate."""
    why: str | None = None
    """What a person is asked, where it is not just a file."""
    options: list[str] = []
    command: list[str] = []
    setup_only: bool = False
    """True for a command that another one of the same phase follows."""
    path: str | None = None
    content: str | None = None
    opened_by: str | None = None
    """The answer to another gate that led straight to this one."""
    automatic: bool = False
    """True for a gate that opens by itself."""
    abandoned: bool = False
    stopped: str | None = None
    """Why the run stands still, where it is not over: paused, until or budget."""


def decide(flow: Flow, state: RunState, facts: Facts, files: Mapping[str, str]) -> Action:
    """The next action. `files` are the texts in the workspace by name."""
    action = _decided(flow, state, facts, files)
    why = _stop(flow, facts, action)
    return action if why is None else Action(type="done", phase=action.phase, stopped=why)


def _stop(flow: Flow, facts: Facts, action: Action) -> str | None:
    """Why this action is not to be done now. What has been spent stops only what would spend more."""
    if action.type == "done":
        return None
    if facts.paused:
        return PAUSED
    if facts.until is not None and flow.position(action.phase) > flow.position(facts.until):
        return UNTIL
    return BUDGET if facts.over and action.type == "spawn_agent" else None


def _decided(flow: Flow, state: RunState, facts: Facts, files: Mapping[str, str]) -> Action:
    if state.ended is not None:
        return Action(type="done", abandoned=state.ended == "abandoned")
    state = settled(flow, state, files)
    phase = present_phase(flow, state, facts)
    if phase is None:
        return Action(type="done")
    if (failed := _failed(phase, state)) is not None:
        return failed
    match phase.kind:
        case "agent":
            return _spawn(flow, state, facts, phase, files)
        case "review":
            return _limit(phase, state) or _spawn(flow, state, facts, phase, files)
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
        output=phase.output if len(tasks) != 1 else (phase.output or "").replace("{N}", str(tasks[0].number)),
        tasks=[task.number for task in tasks],
    )


def _inputs(
    flow: Flow, state: RunState, phase: Phase, files: Mapping[str, str], tasks: tuple[TaskState, ...]
) -> list[str]:
    """The files to read, by name; those that may be missing only where this run has written them."""
    found: list[str] = []
    for name in (*phase.inputs, *phase.if_there):
        names = [name.replace("{N}", str(task.number)) for task in tasks] if "{N}" in name else [name]
        writers = [other.id for other in flow.phases if other.output == name]
        written = not writers or any(writer in state.done for writer in writers)
        found += [one for one in names if name in phase.inputs or (one in files and (written or one in state.judged))]
    return found


def failure_gate(phase_id: str) -> str:
    """What the question is called that a phase asks once it has failed too often."""
    return f"{phase_id}-failed"


def _failed(phase: Phase, state: RunState) -> Action | None:
    """The question to a person, where the same thing failed often enough."""
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


def is_sent_back_too_often(phase: Phase, state: RunState) -> bool:
    return state.tries.get(phase.id, 0) > phase.retries


def _limit(phase: Phase, state: RunState) -> Action | None:
    """The question to a person, where agents have tried often enough."""
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
        why=why,
        options=list(LIMIT_OPTIONS),
    )


def _gate(phase: Phase, state: RunState, facts: Facts) -> Action:
    opens = facts.auto and not facts.humans_decide and phase.auto_after in state.approved
    return Action(
        type="checkpoint",
        phase=phase.id,
        gate=phase.id,
        shows=phase.shows,
        options=list(phase.options),
        automatic=opens,
    )


def ready(tasks: list[TaskState]) -> list[TaskState]:
    """The tasks that can be done now, in their order."""
    over = {task.number for task in tasks if task.implemented or task.skipped}
    return [task for task in tasks if task.number not in over and over.issuperset(task.depends_on)]


def _task_action(flow: Flow, state: RunState, facts: Facts, phase: Phase, files: Mapping[str, str]) -> Action:
    if not state.tasks:
        return Action(type="write_file", phase=phase.id, path=phase.plan, content=one_task_list())
    now = ready(state.tasks)
    limited = _task_limit(flow, state, facts, phase)
    if limited is not None:
        return limited
    agents = [task for task in now if not task.is_gate]
    if not agents:  # every other task waits for what a person does elsewhere
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
    """The list of a flow in which nobody breaks the work down: the request is its one task."""
    return "# Tasks\n\n## Task 1: Do what request.md asks for\nmode: sequential\nfiles:\ndepends_on: []\n"


def _task_limit(flow: Flow, state: RunState, facts: Facts, phase: Phase) -> Action | None:
    """The question to a person about a task that was sent back too often."""
    review = next((one for one in flow.phases if one.kind == "task-reviews" and one.revises == phase.id), None)
    if review is None or is_left_out(review, state, flow, facts):
        return None
    for task in state.tasks:
        if not task.implemented and task.retries > review.retries:
            return Action(
                type="checkpoint",
                phase=phase.id,
                gate=f"task-{task.number}-limit",
                shows=(review.output or "").replace("{N}", str(task.number)),
                tasks=[task.number],
                why=f"Task {task.number} ({task.title}) was sent back {task.retries} times.",
                options=list(LIMIT_OPTIONS),
            )
    return None


def _task_review(flow: Flow, state: RunState, facts: Facts, phase: Phase, files: Mapping[str, str]) -> Action:
    waiting = tuple(unreviewed(state))
    return _limit(phase, state) or _spawn(flow, state, facts, phase, files, waiting)


def _exec(phase: Phase, state: RunState) -> Action:
    return Action(
        type="exec",
        phase=phase.id,
        command=list(phase.commands[state.command]),
        setup_only=state.command < len(phase.commands) - 1,
    )
