"""Starting a run: as a workflow with its flow pinned, at its first phase or at a later one whose documents exist.

What earlier runs teach it and what it will probably cost is looked up here, once. Reads and writes no documents.

How large a piece of work is, and the evidence for that. Considered in this order: the person's own word, story points,
labels, words in the text. The first that applies decides, and is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.pipeline.budget import Cost, spent, stricter
from handrail.domain.pipeline.dispatch import accept_file, task_states
from handrail.domain.pipeline.documents import judgement_in
from handrail.domain.pipeline.flow import NUMBER, Flow, Phase, numbered
from handrail.domain.pipeline.lessons import Lessons, Noted, PastRun, learn
from handrail.domain.pipeline.request import Flags, planned_as
from handrail.domain.pipeline.run import FOR_PEOPLE, PipelineRun
from handrail.domain.pipeline.state import Facts, RunState, TaskState, finish, is_left_out, outputs_of
from handrail.domain.pipeline.workspace_texts import fingerprint
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams
from handrail.kernel.records import Query, UnitOfWork
from handrail.kernel.wording import did_you_mean, nearest

LEARNT_FROM = 200
"""How many of the newest runs a new one learns from."""
TITLE = 100
PARALLEL = 4
GIVEN = "GIVEN"
"""Stands in for the verdict on a task done before the run began."""
MISSING = 10
"""Files named in a refusal."""
NUMBERED = "phase-"


class RunRequest(NamedTuple):
    """What a run starts with."""

    repository: str
    workspace: str
    name: str
    body: str
    effort: str
    flow: Flow
    flags: Flags
    branch: str | None
    source_type: str = "text"
    source_url: str | None = None
    source_id: str | None = None
    humans_decide: bool = False
    """Whether only people open gates here."""
    limits: Mapping[str, float] = {}
    """Spending limits requested for this run. The limits that apply to every run here are looked up at every turn."""


def own_limits(here: Mapping[str, float], asked: Mapping[str, float]) -> dict[str, float]:
    """The requested limits a run keeps: never above what is allowed here, and none that were not requested, so that a
    limit set here later applies to the run too."""
    both = stricter(here, asked)
    return {name: both[name] for name in asked}


def begin(unit: UnitOfWork, request: RunRequest, state: RunState, lessons: Lessons) -> PipelineRun:
    """Records and returns the run, together with its workflow."""
    now = unit.now_ms()
    first = next((line.lstrip("# ").strip() for line in request.body.splitlines() if line.strip()), request.name)
    title = first[:TITLE]
    workflow = new_workflow(
        unit, title, request.source_type, request.source_url, request.body or title, request.repository
    )
    until = {"until": request.flags.until} if request.flags.until is not None else {}
    run = PipelineRun(
        id=workflow.id,
        repository_path=request.repository,
        workspace=request.workspace,
        spec_name=request.name,
        title=title.lstrip("-{ ") or request.name,
        request=request.body,
        source_type=request.source_type,
        source_url=request.source_url,
        source_id=request.source_id,
        effort=request.effort,
        branch=request.branch,
        flow=msgspec.to_builtins(request.flow),
        flags={**msgspec.to_builtins(request.flags), **({FOR_PEOPLE: True} if request.humans_decide else {})},
        state=msgspec.to_builtins(state),
        task_ids={},
        dispatched=None,
        log=[],
        findings=[],
        friction=[],
        lessons=msgspec.to_builtins(lessons),
        created_at=now,
        updated_at=now,
        limits={**request.limits, **until},
    )
    unit.record("pipeline.begun", workflow, run)
    return run


def new_workflow(
    unit: UnitOfWork, title: str, source_type: str, source_url: str | None, content: str, repository: str
) -> Workflow:
    """The workflow of a run; the caller records both."""
    now = unit.now_ms()
    return Workflow(
        id=unit.new_id("wf"),
        name=title,
        status="ready",
        source_type=planned_as(source_type),
        source_ref=source_url,
        source_content=content,
        repository_path=repository,
        plan=None,
        max_parallel_tasks=PARALLEL,
        auto_create_workspaces=False,
        created_at=now,
        updated_at=now,
    )


# -- starting at a later phase ----------------------------------------------------------------------------------------


def check_phase(flow: Flow, phase_id: str | None) -> None:
    """Raises InvalidParams for a phase the flow does not have."""
    if phase_id is not None and not flow.knows(phase_id):
        known = [phase.id for phase in flow.phases if phase.id not in flow.skip]
        raise InvalidParams(
            f"{flow.name} has no phase {phase_id[:100]}{_phase_suggestion(phase_id, known)}",
            hint=f"phases: {', '.join(known)}",
        )


def _phase_suggestion(phase_id: str, known: Sequence[str]) -> str:
    """The phase that was probably meant. The prefix shared by all numbered phases does not count as similarity."""
    if not phase_id.startswith(NUMBERED):
        return did_you_mean(phase_id, known)
    numbers = [one.removeprefix(NUMBERED) for one in known if one.startswith(NUMBERED)]
    near = nearest(phase_id.removeprefix(NUMBERED), numbers)
    return f"; did you mean {NUMBERED}{near}?" if near is not None else ""


def check_until(flow: Flow, facts: Facts, until: str | None, state: RunState, begin_at: str | None = None) -> None:
    """Raises InvalidParams for a last phase that this run will not reach: the flow does not have it, the run leaves it
    out, or it comes before the phase the run begins at."""
    if until is None:
        return
    check_phase(flow, until)
    first = flow.position(begin_at) if begin_at is not None and flow.knows(begin_at) else 0
    has = [phase.id for phase in flow.phases[first:] if not is_left_out(phase, state, flow, facts)]
    if flow.position(until) < first:
        raise InvalidParams(
            f"the run cannot stop after {until}: it begins at {begin_at}, which comes later",
            hint=f"phases from there: {', '.join(has)}",
        )
    if until not in has:
        raise InvalidParams(
            f"the run cannot stop after {until}: it leaves that phase out", hint=f"phases it has: {', '.join(has)}"
        )


def state_from(flow: Flow, facts: Facts, files: Mapping[str, str], phase_id: str | None) -> RunState:
    """The state of a run that begins at this phase: earlier phases count as done, their documents as written.

    If only people open gates, no judgement is taken on trust: reviews, gates and people's tasks are still to come.
    Otherwise a review counts by its verdict, and one that does not pass is refused.
    """
    state = RunState()
    if phase_id is None:
        return state
    check_phase(flow, phase_id)
    earlier = [phase for phase in flow.phases[: flow.position(phase_id)] if not is_left_out(phase, state, flow, facts)]
    before = [phase for phase in earlier if not (facts.humans_decide and _is_judgement(phase))]
    plain = [phase.output for phase in before if phase.output is not None and NUMBER not in phase.output]
    doing = next((phase for phase in flow.phases if phase.kind == "tasks"), None)
    plan = doing.plan if doing is not None else None
    _check_there([*plain, *([plan] if doing in before and plan is not None else [])], files, phase_id)
    if plan is not None and (doing in before or plan in plain):
        tasks = [_task_after_phases(task, before, facts) for task in task_states(files[plan], plan)]
        state = state.but(tasks=tasks, plan=fingerprint(files, plan))
    written = [*plain, *_task_files(before, state.tasks)]
    _check_there(written, files, phase_id)
    _check_passed(before, state, files, phase_id)
    for name in written:
        state = accept_file(state, name, files)
    left = any(not task.implemented for task in state.tasks)  # tasks for people, or none was started
    given = [phase.id for phase in before if phase is not doing or not left]
    for phase_given in given:
        state = finish(state, phase_given)
    return state.but(given=given)


def _is_judgement(phase: Phase) -> bool:
    return phase.kind in ("review", "gate", "task-reviews")


def _task_after_phases(task: TaskState, before: Sequence[Phase], facts: Facts) -> TaskState:
    """The state of a task once these phases are over."""
    kinds = {phase.kind for phase in before}
    if "tasks" not in kinds or (task.is_gate and facts.humans_decide):
        return task
    judged = task.is_gate or "task-reviews" in kinds
    return msgspec.structs.replace(task, implemented=True, verdict=GIVEN if judged else None)


def _task_files(before: Sequence[Phase], tasks: Sequence[TaskState]) -> list[str]:
    outputs = [phase.output for phase in before if phase.output is not None and NUMBER in phase.output]
    return [numbered(output, task.number) for output in outputs for task in tasks if not task.is_gate]


def _check_there(names: Sequence[str], files: Mapping[str, str], phase_id: str) -> None:
    missing = [name for name in names if not files.get(name, "").strip()]
    if missing:
        shown = f"{', '.join(missing[:MISSING])}{' …' if len(missing) > MISSING else ''}"
        raise InvalidParams(
            f"to begin at {phase_id} the workspace must hold {shown}",
            hint="write what is missing into the workspace first, or begin earlier",
        )


def _check_passed(before: Sequence[Phase], state: RunState, files: Mapping[str, str], phase_id: str) -> None:
    """Raises InvalidParams if a review among these phases has a verdict that does not pass or cannot be read."""
    for phase in before:
        for name in outputs_of(phase, state) if phase.passes else ():
            verdict, problem = judgement_in(files[name], phase.passes, phase.fails)
            if verdict not in phase.passes:
                said = f"says {verdict}" if verdict is not None else f"has no readable verdict: {problem}"
                raise InvalidParams(
                    f"to begin at {phase_id} the reviews before it must have passed, and {name} {said}",
                    hint=f"begin at {phase.id} or earlier; a review passes with {' or '.join(phase.passes)}",
                )


# -- what earlier runs teach ------------------------------------------------------------------------------------------


def finished_runs(unit: UnitOfWork, repository: str, most: int = LEARNT_FROM) -> list[PipelineRun]:
    """The completed runs among the newest of a repository, most recently moved first."""
    newest = Query((("repository_path", repository),), ("-updated_at", "-id"), most)
    # Reads the stored form: decoding the state of every run would be half the cost of starting one.
    return [run for run in unit.select(PipelineRun, newest) if run.state.get("ended") == "completed"]


def lessons_from(runs: Sequence[PipelineRun], request: str) -> Lessons:
    """What these runs teach about a request."""
    past = [past_run(run) for run in runs]
    findings = [
        Noted(text=one["description"], severity=one["severity"], run=run.id, at=one["at"])
        for run in runs
        for one in run.findings
    ]
    friction = [Noted(text=text, run=run.id, at=run.updated_at) for run in runs for text in run.friction]
    return learn(request, runs=past, findings=findings, friction=friction)


def past_run(run: PipelineRun) -> PastRun:
    return PastRun(
        spec_name=run.spec_name,
        effort=run.effort,
        one_liner=run.title,
        request=run.request,
        outcome=run.state.get("ended") or "",
        tokens=sum(entry["tokens"] for entry in run.log),
        duration_ms=sum(entry["duration_ms"] for entry in run.log),
    )


def costs_of(runs: Sequence[PipelineRun], effort: str, prices: Mapping[str, float]) -> list[Cost]:
    """What runs of this effort cost, counting only those that did all the work themselves. A run that used a model
    without a price has no known cost in money."""
    found = []
    for run in runs:
        if run.effort == effort and run.forked_from is None and not run.run_state().given:
            have = spent(run.log, prices)
            money = have.money if prices and not have.unpriced else None
            found.append(Cost(have.tokens, sum(entry["duration_ms"] for entry in run.log), money))
    return found


SMALL_POINTS, MEDIUM_POINTS = 4, 12
"""The most story points of a small and of a medium change."""
LARGE_LABELS = frozenset({"epic", "large", "size/l", "size/xl", "architecture", "breaking-change", "rewrite"})
SMALL_LABELS = frozenset({"good first issue", "small", "size/s", "size/xs", "trivial", "typo", "documentation", "docs"})
WORDS: dict[str, int] = {
    "migrate": 3,
    "migration": 3,
    "rewrite": 3,
    "redesign": 3,
    "architecture": 3,
    "new service": 3,
    "new api": 2,
    "new endpoint": 2,
    "refactor": 2,
    "integrate": 2,
    "integration": 2,
    "queue": 1,
    "schema": 1,
    "rename": -2,
    "typo": -3,
    "label": -2,
    "wording": -3,
    "toggle": -2,
    "visibility": -2,
    "hide": -1,
    "message": -1,
    "validation": -1,
    "optional": -1,
    "required": -1,
}
"""Weights of words: positive ones suggest a large change."""
LARGE_SCORE, SMALL_SCORE = 3, -2


class Effort(NamedTuple):
    """The effort, and the evidence that decided it."""

    effort: str
    evidence: str


def detect(override: str | None, points: float | None, labels: Sequence[str], text: str) -> Effort:
    if override is not None:
        return Effort(override, f"you asked for {override}")
    if points is not None and points > 0:
        effort = "S" if points <= SMALL_POINTS else "M" if points <= MEDIUM_POINTS else "L"
        return Effort(effort, f"{points:g} story points")
    named = {label.strip().lower(): label.strip() for label in labels}
    for known, effort in ((LARGE_LABELS, "L"), (SMALL_LABELS, "S")):
        if found := sorted(known & named.keys()):
            return Effort(effort, f"the label {named[found[0]]}")
    return _by_words(text)


def _by_words(text: str) -> Effort:
    """Counts whole words only, each once."""
    lowered = text.lower()
    found = {word: weight for word, weight in WORDS.items() if re.search(rf"\b{re.escape(word)}\b", lowered)}
    score = sum(found.values())
    words = ", ".join(f"{word} ({weight:+d})" for word, weight in found.items())
    if score >= LARGE_SCORE:
        return Effort("L", f"the words {words}")
    if score <= SMALL_SCORE:
        return Effort("S", f"the words {words}")
    return Effort("M", f"the words {words} balance each other" if found else "nothing suggests more or less")
