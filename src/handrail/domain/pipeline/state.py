"""Where a run stands: everything the engine decides by, as one record that is kept whole. No behaviour but small
questions; how it changes is `engine.py`'s and `reporting.py`'s."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.pipeline.flow import Flow, Phase


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """One task of the list, as far as it is."""

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


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is settled when a run begins."""

    source_type: str = "text"
    auto: bool = False
    skip_pr: bool = False
    humans_decide: bool = False
    """True where only a person opens a gate: then --auto opens none."""
    until: str | None = None
    """The last phase to be done, where the run is to stop before its end."""
    paused: bool = False
    over: str = ""
    """Why no more may be spent, where that is so."""


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    skip: list[str] = []
    """Phases its effort leaves out."""
    done: list[str] = []
    """Phases that are over, in order."""
    tries: dict[str, int] = {}
    """How often each review sent the work back."""
    unread: dict[str, int] = {}
    """How often each review could not be read."""
    failed: dict[str, int] = {}
    """How often in a row the action of each phase was reported as failed."""
    again: dict[str, str] = {}
    """For each phase that is handed out again why that is so, until it is over."""
    approved: list[str] = []
    """Reviews that passed with a verdict of their own."""
    judged: dict[str, list[str]] = {}
    """For each review and each task's file the hashes of the texts that were acted on: none of them is a new one."""
    before: dict[str, str] = {}
    """For each file that is awaited the hash of what lay there when it was handed out: that is nobody's work yet."""
    tasks: list[TaskState] = []
    plan: str | None = None
    """The hash of the text that the tasks were read from."""
    command: int = 0
    """Commands of the present phase that have been run."""
    feedback: str | None = None
    """What a person said, for the next agent, once."""
    answers: dict[str, str] = {}
    """What each gate was answered, by its phase."""
    ended: str | None = None
    """completed, abandoned, or nothing yet."""
    stopped: str | None = None
    """Why it stands still, where it does and can go on: paused, until or budget."""
    given: list[str] = []
    """Phases that were done before the run began, on the word of whoever began it."""
    turns: int = 0
    """Reports so far: what names an action, so that one report is not taken for another."""

    def task(self, number: int) -> TaskState:
        return next(task for task in self.tasks if task.number == number)

    def with_task(self, task: TaskState) -> RunState:
        return self.but(tasks=[task if one.number == task.number else one for one in self.tasks])

    def but(self, **changes: Any) -> RunState:
        return msgspec.structs.replace(self, **changes)


def is_left_out(phase: Phase, state: RunState, flow: Flow, facts: Facts) -> bool:
    """Whether a phase has no place in this run."""
    if phase.id in state.skip or phase.id in flow.skip:
        return True
    if phase.only_for and facts.source_type not in phase.only_for:
        return True
    for gate, answer in phase.after_answer.items():
        # A gate that nobody is asked at has no answer, so what waits for one is left out with it.
        asked = gate in state.done or not is_left_out(flow.phase(gate), state, flow, facts)
        if not asked or (gate in state.done and state.answers.get(gate) != answer):
            return True
    if phase.kind == "task-reviews" and phase.id not in state.done and state.tasks and not unreviewed(state):
        return True  # every task was a person's, was skipped, or was accepted by one
    return "skip_pr" in phase.unless and facts.skip_pr


def unreviewed(state: RunState) -> list[TaskState]:
    """The tasks whose work nobody has judged yet."""
    return [task for task in state.tasks if task.verdict is None and not (task.is_gate or task.skipped)]


def present_phase(flow: Flow, state: RunState, facts: Facts) -> Phase | None:
    """The phase whose turn it is; None when all are over."""
    return next(
        (phase for phase in flow.phases if phase.id not in state.done and not is_left_out(phase, state, flow, facts)),
        None,
    )


def back_to(flow: Flow, state: RunState, phase_id: str) -> RunState:
    """The state with this phase and all after it to be done again."""
    first = flow.position(phase_id)
    again = {phase.id for phase in flow.phases[first:]}
    return state.but(
        done=[done for done in state.done if done not in again],
        approved=[review for review in state.approved if review not in again],
        failed={phase: count for phase, count in state.failed.items() if phase not in again},
        again={phase: why for phase, why in state.again.items() if phase not in again},
        before={},
        command=0,
    )


def all_again(flow: Flow, state: RunState, phase_id: str) -> RunState:
    """As `back_to`, and where that reaches the tasks, all of them are done again; where only their reviews, all of them
    are judged again. What a person did stays done."""
    state = back_to(flow, state, phase_id)
    again = {phase.kind for phase in flow.phases[flow.position(phase_id) :]}
    if again.isdisjoint(("tasks", "task-reviews")):
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
    """The files that a phase writes: where every task has its own, those of the tasks that agents do."""
    if phase.output is None:
        return []
    if "{N}" not in phase.output:
        return [phase.output]
    return [phase.output.replace("{N}", str(task.number)) for task in state.tasks if not (task.is_gate or task.skipped)]


def finish(state: RunState, phase_id: str) -> RunState:
    done = [*(done for done in state.done if done != phase_id), phase_id]
    return with_reason(state, phase_id, "").but(done=done, command=0)


def with_reason(state: RunState, phase_id: str, why: str) -> RunState:
    """The state after a phase's action did not fail: its failures are forgotten, and it is handed out again for this
    reason, where there is one."""
    failed = {phase: count for phase, count in state.failed.items() if phase != phase_id}
    again = {phase: reason for phase, reason in state.again.items() if phase != phase_id}
    return state.but(failed=failed, again={**again, phase_id: why} if why else again)
