"""The state of a run: everything the engine bases its decisions on, stored as one record. It only answers small
questions; `engine.py` and `results.py` decide how it changes."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.pipeline.flow import BY_TASK, NUMBER, Flow, Phase


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """One task of the list and its progress."""

    number: int
    title: str
    mode: str
    depends_on: list[int] = []
    files: list[str] = []
    implemented: bool = False
    skipped: bool = False
    verdict: str | None = None
    retries: int = 0

    @property
    def is_gate(self) -> bool:
        return self.mode == "human_gate"

    @property
    def is_over(self) -> bool:
        """Implemented (though perhaps not reviewed yet) or skipped."""
        return self.implemented or self.skipped


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine is told besides the state: how the run was started, and whether it may go on."""

    source_type: str = "text"
    auto: bool = False
    skip_pr: bool = False
    humans_decide: bool = False
    """True if only a person may open a gate; then --auto opens none."""
    until: str | None = None
    """The last phase to do, if the run is to stop before its end."""
    paused: bool = False
    over: str = ""
    """Why no more may be spent; empty if spending is allowed."""


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of one run."""

    skip: list[str] = []
    """Phases left out because of the run's effort."""
    done: list[str] = []
    """Finished phases, in order."""
    tries: dict[str, int] = {}
    """How often each review sent the work back."""
    unread: dict[str, int] = {}
    """How often each review could not be read."""
    failed: dict[str, int] = {}
    """How often in a row each phase's action was reported as failed."""
    untaken: dict[str, int] = {}
    """For how many turns in a row each phase produced no usable result: it failed, or its file was not accepted."""
    again: dict[str, str] = {}
    """For each phase that is handed out again, the reason, until the phase is finished."""
    approved: list[str] = []
    """Reviews that passed with their own verdict."""
    judged: dict[str, list[str]] = {}
    """For each output file, the hashes of the texts already acted on: none of them counts as new."""
    before: dict[str, str] = {}
    """For each awaited file, the hash of its content when the work was handed out: that content is not a result."""
    tasks: list[TaskState] = []
    plan: str | None = None
    """The hash of the text the tasks were read from."""
    unticked: str | None = None
    """The hash of the task list that was approved, without its ticks."""
    command: int = 0
    """How many commands of the current phase have been run."""
    feedback: str | None = None
    """What a person said, passed once to the next agent."""
    answers: dict[str, str] = {}
    """The answer to each gate, by its phase."""
    ended: str | None = None
    """completed or abandoned; None while the run goes on."""
    stopped: str | None = None
    """Why it has stopped, if it can go on later: paused, until or budget."""
    given: list[str] = []
    """Phases already done before the run began, according to the person or agent that began it."""
    turns: int = 0
    """Reports so far. It is part of an action's id, so that one report is not mistaken for another."""

    def task(self, number: int) -> TaskState:
        return next(task for task in self.tasks if task.number == number)

    def with_task(self, task: TaskState) -> RunState:
        return self.but(tasks=[task if one.number == task.number else one for one in self.tasks])

    def but(self, **changes: Any) -> RunState:
        return msgspec.structs.replace(self, **changes)


def is_left_out(phase: Phase, state: RunState, flow: Flow, facts: Facts) -> bool:
    """Whether this run does not include the phase."""
    if phase.id in state.skip or phase.id in flow.skip:
        return True
    if phase.only_for and facts.source_type not in phase.only_for:
        return True
    for gate, answer in phase.after_answer.items():
        # A gate that is never asked has no answer, so a phase that depends on its answer is left out too.
        asked = gate in state.done or not is_left_out(flow.phase(gate), state, flow, facts)
        if not asked or (gate in state.done and state.answers.get(gate) != answer):
            return True
    if phase.kind == "task-reviews" and phase.id not in state.done and state.tasks and not unreviewed(state):
        return True  # every task belonged to a person, was skipped, or was accepted by a person
    return "skip_pr" in phase.unless and facts.skip_pr


def unreviewed(state: RunState) -> list[TaskState]:
    """The tasks whose work has not been reviewed yet."""
    return [task for task in state.tasks if task.verdict is None and not (task.is_gate or task.skipped)]


def present_phase(flow: Flow, state: RunState, facts: Facts) -> Phase | None:
    """The phase whose turn it is; None when all are finished."""
    return next(
        (phase for phase in flow.phases if phase.id not in state.done and not is_left_out(phase, state, flow, facts)),
        None,
    )


def back_to(flow: Flow, state: RunState, phase_id: str) -> RunState:
    """The state with this phase and all later ones to be done again."""
    first = flow.position(phase_id)
    again = {phase.id for phase in flow.phases[first:]}
    return state.but(
        done=[done for done in state.done if done not in again],
        approved=[review for review in state.approved if review not in again],
        failed={phase: count for phase, count in state.failed.items() if phase not in again},
        untaken={phase: count for phase, count in state.untaken.items() if phase not in again},
        again={phase: why for phase, why in state.again.items() if phase not in again},
        before={},
        command=0,
    )


def all_again(flow: Flow, state: RunState, phase_id: str) -> RunState:
    """Like `back_to`; also redoes all tasks if it goes back that far, or all their reviews if it reaches only those.
    What a person did stays done."""
    state = back_to(flow, state, phase_id)
    again = {phase.kind for phase in flow.phases[flow.position(phase_id) :]}
    if again.isdisjoint(BY_TASK):
        return state
    anew = [
        task
        if task.is_gate or task.skipped
        else msgspec.structs.replace(
            task, implemented=task.implemented and "tasks" not in again, verdict=None, retries=0
        )
        for task in state.tasks
    ]
    return state.but(tasks=anew)


def outputs_of(phase: Phase, state: RunState) -> list[str]:
    """The files a phase writes: one, or one for each task that agents do."""
    if phase.output is None:
        return []
    if NUMBER not in phase.output:
        return [phase.output]
    return [phase.output_for(task.number) for task in state.tasks if not (task.is_gate or task.skipped)]


def finish(state: RunState, phase_id: str) -> RunState:
    done = [*(done for done in state.done if done != phase_id), phase_id]
    return progressed(with_reason(state, phase_id, "")).but(done=done, command=0)


def count_unusable(state: RunState, phase_id: str) -> RunState:
    """The state after one more turn of a phase without a usable result."""
    return state.but(untaken={**state.untaken, phase_id: state.untaken.get(phase_id, 0) + 1})


def progressed(state: RunState) -> RunState:
    """The state after a usable result: earlier turns without one no longer count."""
    return state.but(untaken={})


def with_reason(state: RunState, phase_id: str, why: str) -> RunState:
    """The state after a phase's action did not fail: its failures are cleared, and `why`, unless empty, is the reason
    it is handed out again."""
    failed = {phase: count for phase, count in state.failed.items() if phase != phase_id}
    again = {phase: reason for phase, reason in state.again.items() if phase != phase_id}
    return state.but(failed=failed, again={**again, phase_id: why} if why else again)
