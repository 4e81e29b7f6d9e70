"""Toolset `plan-lifecycle`: a run's life in registry.md's terms. Its status, pause and resume, and a dry run.

The domain (`foreseeing.py`) predicts what would run; asking writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.dry_run.forecast import ForecastStep, PlanForecast, foresee
from handrail.domain.dry_run.steps import DryRunPlan, Meetings, steps_of_graph, steps_of_tasks, steps_of_workflow
from handrail.domain.graphs.records import SharedGraph
from handrail.domain.overview.explanations import explain_workflow
from handrail.domain.registry.lifecycle import State, just_recorded, lifecycle_of
from handrail.domain.reply_size import within
from handrail.domain.work.lookup import find_workflow
from handrail.domain.work.plan import MOST_SEQUENCE, PlanTask, Text
from handrail.domain.work.transitions import check_open
from handrail.domain.work.workflow import WORKFLOW_MACHINE, Workflow
from handrail.kernel.errors import (
    GraphNotFound,
    IllegalTransition,
    InvalidParams,
    InvalidPlan,
    RunNotFound,
    WorkflowClosed,
)
from handrail.kernel.late import late_module
from handrail.kernel.ledger import Event
from handrail.kernel.wording import shortened
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.plan.workflow import ABANDONED, PLANNED, STARTED, AtOnce, move_workflow
from handrail.toolsets.vocabulary import PLAN_LIFECYCLE

if TYPE_CHECKING:
    from handrail.domain.pipeline import controls, engine, ownership
    from handrail.domain.pipeline import run as pipeline_run
else:
    controls = late_module("handrail.domain.pipeline.controls")
    engine = late_module("handrail.domain.pipeline.engine")
    ownership = late_module("handrail.domain.pipeline.ownership")
    pipeline_run = late_module("handrail.domain.pipeline.run")

ROOM = {"waves": 3_200, "path": 1_200, "conflicts": 900, "cannot_run": 1_300}
"""Bytes for each part of a dry run without a requested limit."""
LONG_ROOM = 250_000
SHOWN_WAVES = 20
SHOWN_IN_WAVE = 8
NAME = 60
AT_ONCE = 1
MOST_TASKS = 2000

RunId = Annotated[str, Meta(max_length=200)]


class OfRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which run."""

    run_id: RunId


class PauseRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which run stops, and why."""

    run_id: RunId
    reason: Annotated[str, Meta(max_length=200)] | None = None


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one moment. `state` is registry.md's word, `status` Handrail's own."""

    run_id: str
    name: str
    mode: str
    """`plan`, or `pipeline` where phases and gates lead it."""
    state: State
    status: str
    changed: bool | UnsetType = UNSET
    """Of a pause or a resumption: false where it was so already."""
    why: str
    """Why it stands where it stands, in a sentence."""
    progress: int
    tasks: dict[str, int]
    last_event_seq: int
    started_at: int | None
    updated_at: int
    finished_at: int | None
    paused_at: int | None
    reason: str | None
    supports_pause: bool
    supports_resume: bool
    last_event: dict[str, Any] | None
    failure: dict[str, Any] | None


class DryTask(PlanTask, frozen=True, forbid_unknown_fields=True):
    """A task as `workflow_set_plan` takes it; only its name is needed."""

    description: Text = ""
    sequence: Annotated[int, Meta(ge=0, le=MOST_SEQUENCE)] = 0


class DryRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a run, of a graph, or of a plan that is not there yet: one of the three."""

    run_id: RunId | None = None
    graph_id: RunId | None = None
    tasks: Annotated[list[DryTask], Meta(max_length=MOST_TASKS)] = []
    max_parallel: AtOnce | UnsetType = UNSET
    retry_failed: bool = False
    limit: Annotated[int, Meta(ge=1, le=1000, description="Waves shown")] | UnsetType = UNSET


class DryRunFound(msgspec.Struct, frozen=True, kw_only=True):
    """What would run. Times are milliseconds from now, and as good as what they assume."""

    summary: str
    would_run: int
    finished: int
    max_parallel: int
    widest: int
    """The most that would run at once."""
    estimated_ms: int
    work_ms: int
    """One after the other."""
    waves: tuple[dict[str, Any], ...]
    waves_total: int
    critical_path: dict[str, Any]
    conflicts: tuple[dict[str, str], ...]
    """Steps that touch the same path and are therefore not begun together."""
    conflicts_total: int
    all_compared: bool
    """False where more is declared than there was time to compare."""
    cannot_run: tuple[dict[str, str], ...]
    cannot_run_total: int
    assumptions: tuple[str, ...]


# -- pause and resume -------------------------------------------------------------------------------------------------


def plan_status(call: Call, request: OfRun) -> RunStatus:
    return _status(call, find_workflow(call.work, request.run_id))


def plan_pause(call: Call, request: PauseRun) -> RunStatus:
    workflow = find_workflow(call.work, request.run_id)
    check_open(workflow, starting=False)
    if workflow.status == "paused":
        return _status(call, workflow, changed=False)
    run = ownership.run_under_way(call.work, workflow.id)
    if run is None:
        move_workflow(call.work, workflow, "paused", request.reason)
    else:
        WORKFLOW_MACHINE.check(f"workflow {workflow.id}", workflow.status, "paused")
        controls.pause_run(call.work, run)
        if request.reason:
            call.work.record("workflow.paused", _reread(call, workflow), data={"reason": request.reason})
    return _changed_status(call, workflow, request.reason)


def plan_resume(call: Call, request: OfRun) -> RunStatus:
    workflow = find_workflow(call.work, request.run_id)
    check_open(workflow, starting=False)
    if workflow.status != "paused":
        raise IllegalTransition(
            f"workflow {workflow.id} is {workflow.status}, not paused",
            hint="only a paused run can be resumed; plan_status shows what this one waits for",
            status=workflow.status,
        )
    run = ownership.run_under_way(call.work, workflow.id)
    if run is None:
        move_workflow(call.work, workflow, "in_progress", None)
        return _changed_status(call, workflow, None)
    ownership.check_workflow(call.work, workflow, "in_progress", humans_decide=call.humans_decide)
    stopped = run.run_state().stopped
    if stopped not in (None, engine.PAUSED):
        raise IllegalTransition(
            f"the run of {run.workspace} was not paused: it reached its own limit ({stopped})",
            hint=f"a person can let it continue: handrail pipeline resume {run.workspace}",
            status=workflow.status,
            workspace=run.workspace,
        )
    controls.resume_run(call.work, run, controls.Going(), run.facts(humans_decide=call.humans_decide))
    return _changed_status(call, workflow, None)


def _reread(call: Call, workflow: Workflow) -> Workflow:
    present = call.work.get(Workflow, workflow.id)
    assert present is not None, "it was there a moment ago"
    return present


def _changed_status(call: Call, workflow: Workflow, reason: str | None) -> RunStatus:
    present = _reread(call, workflow)
    return _status(call, present, changed=True, just=just_recorded(call.work, present, reason))


def _status(
    call: Call, workflow: Workflow, *, changed: bool | UnsetType = UNSET, just: Event | None = None
) -> RunStatus:
    life = lifecycle_of(call.work, workflow, just)
    return RunStatus(
        run_id=workflow.id,
        name=workflow.name,
        mode="plan" if call.work.get(pipeline_run.PipelineRun, workflow.id) is None else "pipeline",
        state=life.state,
        status=workflow.status,
        changed=changed,
        why=explain_workflow(call.work, workflow).sentence,
        progress=life.progress,
        tasks=life.counts,
        last_event_seq=life.last_event_seq,
        started_at=life.started_at,
        updated_at=workflow.updated_at,
        finished_at=life.finished_at,
        paused_at=life.paused_at,
        reason=life.reason,
        supports_pause="paused" in WORKFLOW_MACHINE.transitions[workflow.status],
        supports_resume=workflow.status == "paused",
        last_event=life.last_event,
        failure=life.failure,
    )


# -- a dry run --------------------------------------------------------------------------------------------------------


def plan_dry_run(call: Call, request: DryRun) -> DryRunFound:
    plan, at_once, notes = _plan_to_simulate(call, request)
    meetings = Meetings(plan.prints)
    found = foresee(plan.steps, at_once, meetings.apart)
    room = dict.fromkeys(ROOM, LONG_ROOM) if request.limit is not UNSET else ROOM
    most = SHOWN_WAVES if request.limit is UNSET else request.limit
    names = {step.id: _short(step.name) for step in plan.steps}
    waves = [_wave(number, wave, found, cut=request.limit is UNSET) for number, wave in enumerate(found.waves, 1)]
    path = [{"id": step.id, "name": _short(step.name), "ms": step.work_ms} for step in found.path]
    shown_path = within(path, room["path"])
    conflicts = [
        {"first": names[one.first], "second": names[one.second], "path": _short(one.path)} for one in meetings.found
    ]
    cannot = [{"id": key, "name": names[key], "why": why} for key, why in found.stuck.items()]
    return DryRunFound(
        summary=_summary(found, at_once),
        would_run=len(found.spans),
        finished=plan.finished,
        max_parallel=at_once,
        widest=max((len(wave) for wave in found.waves), default=0),
        estimated_ms=found.ends_ms,
        work_ms=found.work_ms,
        waves=tuple(within(waves[:most], room["waves"])),
        waves_total=len(waves),
        critical_path={"ms": found.path_ms, "total": len(path), "steps": shown_path},
        conflicts=tuple(within(conflicts, room["conflicts"])),
        conflicts_total=len(conflicts),
        all_compared=meetings.is_whole,
        cannot_run=tuple(within(cannot, room["cannot_run"])),
        cannot_run_total=len(cannot),
        assumptions=(*notes, *plan.pace.said()),
    )


def _plan_to_simulate(call: Call, request: DryRun) -> tuple[DryRunPlan, int, list[str]]:
    """What to simulate, how much of it at once, and remarks about it."""
    given = [name for name in ("run_id", "graph_id", "tasks") if getattr(request, name)]
    if len(given) != 1:
        raise InvalidParams(
            f"{' and '.join(given) or 'nothing'} is given", hint="give one of run_id, graph_id and tasks"
        )
    wanted = request.max_parallel
    if request.tasks:
        doubled = {task.name for task in request.tasks}
        if len(doubled) < len(request.tasks):
            raise InvalidPlan("two tasks have the same name", hint="give each task a name of its own")
        return steps_of_tasks(request.tasks), AT_ONCE if wanted is UNSET else wanted, []
    workflow = call.work.get(Workflow, request.graph_id) if request.graph_id else None
    if request.run_id or workflow is not None:
        workflow = workflow or find_workflow(call.work, request.run_id or "")
        plan = steps_of_workflow(call.work, workflow, retry_failed=request.retry_failed)
        notes = ["the workflow is paused: nothing is begun before it is resumed"] if workflow.status == "paused" else []
        return plan, workflow.max_parallel_tasks if wanted is UNSET else wanted, notes
    graph = call.work.get(SharedGraph, request.graph_id or "")
    if graph is None:
        raise GraphNotFound(
            f"there is no graph {request.graph_id}", hint="resources_list shows graphs", id=request.graph_id
        )
    return steps_of_graph(call.work, graph), AT_ONCE if wanted is UNSET else wanted, []


def _wave(number: int, wave: list[ForecastStep], found: PlanForecast, *, cut: bool) -> dict[str, Any]:
    shown = wave[:SHOWN_IN_WAVE] if cut else wave
    return {
        "wave": number,
        "count": len(wave),
        "begins_ms": min(found.spans[step.id].begins for step in wave),
        "tasks": [
            {"id": step.id, "name": _short(step.name), "ms": step.work_ms}
            | ({"status": step.status} if step.status not in ("pending", "blocked") else {})
            for step in shown
        ],
    }


def _summary(found: PlanForecast, at_once: int) -> str:
    count, stuck = len(found.spans), len(found.stuck)
    held = f"; {stuck} cannot run" if stuck else ""
    if not count:
        return f"Nothing would run{held}."
    minutes = f"about {max(1, round(found.ends_ms / 60_000))} minutes"
    least = f"{max(1, round(found.path_ms / 60_000))} at the least"
    rounds = f"{len(found.waves)} wave{'' if len(found.waves) == 1 else 's'}"
    return f"{count} would run in {rounds}, at most {at_once} at once: {minutes}, {least}{held}."


def _short(text: str) -> str:
    return shortened(text, NAME)


_PAUSED = (*STARTED, ("plan_pause", {"run_id": "wf_1", "reason": "waiting for a decision"}))
_UNKNOWN = "an unknown run is refused"
_OVER = "a run that has ended is refused"

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="plan_status",
        toolset=PLAN_LIFECYCLE,
        effect=Effect.READ,
        stored=True,
        summary="Shows a run's state, progress, failures, and whether it can be paused or resumed",
        request=OfRun,
        response=RunStatus,
        handler=plan_status,
        refusals=(RunNotFound,),
        examples=(
            Example(
                title="a run under way",
                given=STARTED,
                request={"run_id": "wf_1"},
                response={
                    "state": "running",
                    "status": "in_progress",
                    "progress": 0,
                    "tasks": {"total": 2, "ready": 0, "running": 1, "blocked": 1},
                    "supports_pause": True,
                    "supports_resume": False,
                    "failure": None,
                },
            ),
            Example(
                title="one that was given up",
                given=ABANDONED,
                request={"run_id": "wf_1"},
                response={"state": "failed", "status": "abandoned", "failure": {"status": "abandoned"}},
            ),
            Example(title=_UNKNOWN, request={"run_id": "wf_9"}, refused=RunNotFound),
        ),
    ),
    Operation(
        name="plan_pause",
        toolset=PLAN_LIFECYCLE,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Pauses a run: what runs may finish, nothing new starts",
        request=PauseRun,
        response=RunStatus,
        handler=plan_pause,
        refusals=(RunNotFound, WorkflowClosed, IllegalTransition),
        examples=(
            Example(
                title="a run under way",
                given=STARTED,
                request={"run_id": "wf_1", "reason": "waiting for a decision"},
                response={
                    "state": "paused",
                    "changed": True,
                    "reason": "waiting for a decision",
                    "supports_resume": True,
                },
            ),
            Example(
                title="a second time changes nothing",
                given=_PAUSED,
                request={"run_id": "wf_1"},
                response={"state": "paused", "changed": False},
            ),
            Example(title=_UNKNOWN, request={"run_id": "wf_9"}, refused=RunNotFound),
            Example(title=_OVER, given=ABANDONED, request={"run_id": "wf_1"}, refused=WorkflowClosed),
            Example(
                title="what has not begun cannot be paused",
                given=PLANNED,
                request={"run_id": "wf_1"},
                refused=IllegalTransition,
            ),
        ),
    ),
    Operation(
        name="plan_resume",
        toolset=PLAN_LIFECYCLE,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Resumes a paused run",
        request=OfRun,
        response=RunStatus,
        handler=plan_resume,
        refusals=(RunNotFound, WorkflowClosed, IllegalTransition),
        examples=(
            Example(
                title="a paused run goes on",
                given=_PAUSED,
                request={"run_id": "wf_1"},
                response={"state": "running", "status": "in_progress", "changed": True, "paused_at": None},
            ),
            Example(title=_UNKNOWN, request={"run_id": "wf_9"}, refused=RunNotFound),
            Example(title=_OVER, given=ABANDONED, request={"run_id": "wf_1"}, refused=WorkflowClosed),
            Example(
                title="one that is not paused is refused",
                given=STARTED,
                request={"run_id": "wf_1"},
                refused=IllegalTransition,
            ),
        ),
    ),
    Operation(
        name="plan_dry_run",
        toolset=PLAN_LIFECYCLE,
        effect=Effect.READ,
        stored=True,
        summary="Shows what would run, in which waves, how long, the critical path and what cannot run; writes nothing",
        request=DryRun,
        response=DryRunFound,
        handler=plan_dry_run,
        refusals=(RunNotFound, GraphNotFound, InvalidPlan),
        examples=(
            Example(
                title="what is left of a run",
                given=PLANNED,
                request={"run_id": "wf_1"},
                response={
                    "would_run": 2,
                    "waves": [{"wave": 1, "tasks": [{"name": "wrap"}]}, {"wave": 2, "tasks": [{"name": "test"}]}],
                    "critical_path": {"total": 2},
                    "cannot_run": [],
                },
            ),
            Example(
                title="a plan that is not there yet, with a mistake in it",
                request={
                    "tasks": [
                        {"name": "a", "files_likely_affected": ["src/fetch.py"]},
                        {"name": "b", "files_likely_affected": ["src/"]},
                        {"name": "c", "depends_on": ["d"]},
                        {"name": "d", "depends_on": ["c"]},
                    ],
                    "max_parallel": 2,
                },
                response={
                    "would_run": 2,
                    "widest": 1,
                    "conflicts": [{"first": "a", "second": "b", "path": "src/fetch.py"}],
                    "cannot_run": [{"id": "c", "why": "it waits for itself: c → d → c"}, {"id": "d"}],
                },
            ),
            Example(title=_UNKNOWN, request={"run_id": "wf_9"}, refused=RunNotFound),
            Example(title="an unknown graph is refused", request={"graph_id": "none"}, refused=GraphNotFound),
            Example(
                title="two tasks of one name are refused",
                request={"tasks": [{"name": "a"}, {"name": "a"}]},
                refused=InvalidPlan,
            ),
        ),
    ),
)
