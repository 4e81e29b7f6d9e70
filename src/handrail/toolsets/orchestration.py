"""Toolset `orchestration`: plan.md's questions about a running plan. What is next, how far it is, what waits for what.

Reading only. Ids may be left out where only one can be meant.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from handrail.domain.crew.offering import deserted_tasks, in_order, ready_tasks
from handrail.domain.gates.reviews import open_reviews
from handrail.domain.work.editing import places_taken, tally_of, tasks_in
from handrail.domain.work.moving import needed_tasks
from handrail.domain.work.pausing import told_pause
from handrail.domain.work.tally import Tally
from handrail.domain.work.task import FINISHED, RUNNING, SHOWN_STATES, TASK_MACHINE, Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.domain.workspaces.forecast import MOST_RUNNING, Conflict, Forecast, forecast
from handrail.domain.workspaces.reserving import shortened
from handrail.kernel.errors import NothingOpen, RunNotFound, SeveralOpen, TaskNotFound
from handrail.kernel.query import Query, where
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import task_here, workflow_here
from handrail.toolsets.shown import cut
from handrail.toolsets.vocabulary import ORCHESTRATION
from handrail.toolsets.workflow import PLANNED

SHOWN_RUNNING = 20
SHOWN_GROUP = 8
SHOWN_BLOCKED = 20
SHOWN_GROUPS = 50
SHOWN_CONFLICTS = 10
NAME = 60
"""Characters of a name or a path in a conflict."""
DESCRIPTION = 300
_UNFINISHED = tuple(state for state in TASK_MACHINE.states if state not in FINISHED)


class NextTasks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which workflow."""

    workflow_id: str | None = None
    include_failed: bool = True
    limit: Annotated[int, Meta(ge=1, le=200)] = 10


class NextTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """A task that can be started now."""

    id: str
    name: str
    description: str
    can_parallelize: bool
    dependencies_completed: tuple[str, ...]
    status: str
    sequence: int
    priority: int = 0
    parallel_with: tuple[str, ...] = ()
    requires: list[str] = []
    unblocks: int = 0
    error: str | None = None
    """Why it failed before."""
    begun_by: str | None = None
    """The agent that began it and has not been heard of since."""
    unknown_scope: bool = False
    """True where a batch is proposed and nothing says what this task will touch."""


class NextTasksFound(msgspec.Struct, frozen=True, omit_defaults=True):
    """What can be started, the best first, and how many of it at once."""

    tasks: tuple[NextTask, ...]
    max_parallel: int
    recommended_count: int
    workflow_status: str
    all_complete: bool
    workflow_id: str
    running: tuple[dict[str, str], ...]
    open_reviews: tuple[dict[str, str | None], ...] = ()
    """What a person has been asked to look at and has not yet."""
    batch: tuple[str, ...] | None = None
    """Which of the tasks to begin together: nothing they declare meets, nor what is under way or reserved by others.
    Only where more than one could run, or something is in the way of one."""
    conflicts: tuple[dict[str, Any], ...] = ()
    """Why two are not safe together: a path in both, and how each declares it."""
    conflicts_total: int | None = None
    """Where not all of them are shown."""
    unchecked: tuple[str, ...] = ()
    """Tasks that declare too much to be compared with everything."""
    paused: dict[str, Any] | None = None
    """Why nothing is offered, where the workflow is paused: since when, by whom, and for what reason."""


class OfWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which workflow."""

    workflow_id: str | None = None


class Progress(msgspec.Struct, frozen=True):
    """How far a workflow is."""

    workflow_id: str
    total_tasks: int
    by_status: dict[str, int]
    completed_sequence: int
    current_sequence: int
    blocked_tasks: tuple[dict[str, Any], ...]
    parallel_groups: tuple[dict[str, Any], ...]
    estimated_remaining: int
    estimated_remaining_ms: int | None


class OfTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which task."""

    task_id: str | None = None


class Dependencies(msgspec.Struct, frozen=True):
    """What a task waits for, and what came of those it no longer waits for."""

    satisfied: bool
    pending: tuple[dict[str, str], ...]
    completed: tuple[dict[str, str], ...]


def workflow_next_tasks(call: Call, request: NextTasks) -> NextTasksFound:
    workflow = workflow_here(call, request.workflow_id)
    tally = tally_of(call.work, workflow.id)
    found = [] if workflow.status in (*CLOSED, "paused") else _startable(call.work, workflow, request)
    running = tasks_in(call.work, workflow.id, ("planning", "in_progress"), MOST_RUNNING)
    deserted = sum(not task.open_children for task in found if task.status in ("planning", "in_progress"))
    free = max(0, workflow.max_parallel_tasks - places_taken(call.work, workflow.id) + deserted)
    foreseen = _foreseen(call, workflow, found, running, free)
    unknown = foreseen.unknown if foreseen is not None else frozenset()
    return NextTasksFound(
        tasks=tuple(_next_task(call.work, task, unknown_scope=task.id in unknown) for task in found),
        max_parallel=workflow.max_parallel_tasks,
        recommended_count=min(len(found), free),
        workflow_status=workflow.status,
        all_complete=tally.total > 0 and tally.unfinished == 0,
        workflow_id=workflow.id,
        running=tuple({"id": task.id, "name": task.name, "status": task.status} for task in running[:SHOWN_RUNNING]),
        open_reviews=tuple(
            {"id": gate.id, "task_id": gate.task_id, "question": cut(gate.question, DESCRIPTION)}
            for gate in open_reviews(call.work, workflow.id, SHOWN_RUNNING)
        ),
        paused=told_pause(call.work, workflow),
        **_told(foreseen),
    )


def _foreseen(call: Call, workflow: Workflow, found: list[Task], running: list[Task], free: int) -> Forecast | None:
    """What can be begun together; None where there is nothing to choose, and nothing in the way."""
    if not found or not free:
        return None
    foreseen = forecast(
        call.work,
        workflow,
        found,
        running,
        places=free,
        agent_id=call.writer.agent_id,
        repository=call.here.repository,
    )
    is_choice = min(len(found), free) > 1
    return foreseen if is_choice or foreseen.conflicts or foreseen.unchecked else None


def _told(foreseen: Forecast | None) -> dict[str, Any]:
    if foreseen is None:
        return {}
    count = len(foreseen.conflicts)
    return {
        "batch": foreseen.batch,
        "conflicts": tuple(map(_shown_conflict, foreseen.conflicts[:SHOWN_CONFLICTS])),
        "conflicts_total": count if count > SHOWN_CONFLICTS else None,
        "unchecked": foreseen.unchecked,
    }


def _shown_conflict(conflict: Conflict) -> dict[str, Any]:
    """One reason, in a line's worth of text."""
    shown: dict[str, Any] = msgspec.structs.asdict(conflict)
    for name in ("name", "other_name", "path", "declared", "other_declared"):
        shown[name] = shortened(shown[name], NAME)
    return {name: value for name, value in shown.items() if value is not None}


def _startable(unit: UnitOfWork, workflow: Workflow, request: NextTasks) -> list[Task]:
    found = [*deserted_tasks(unit, workflow.id), *ready_tasks(unit, workflow.id, request.limit)]
    if request.include_failed:
        found += ready_tasks(unit, workflow.id, request.limit, "failed")
    return sorted(found, key=in_order)[: request.limit]


def _next_task(unit: UnitOfWork, task: Task, *, unknown_scope: bool) -> NextTask:
    return NextTask(
        id=task.id,
        name=task.name,
        description=cut(task.description, DESCRIPTION),
        can_parallelize=task.parallel_group is not None,
        dependencies_completed=tuple(need.name for need in needed_tasks(unit, task) if need.is_finished),
        status=task.status,
        sequence=task.sequence,
        priority=task.priority,
        parallel_with=_parallel_with(unit, task),
        requires=task.requires,
        unblocks=task.unblocks,
        error=cut(task.error, DESCRIPTION) if task.error else None,
        begun_by=task.assigned_agent_id if task.status in RUNNING else None,
        unknown_scope=unknown_scope,
    )


def _parallel_with(unit: UnitOfWork, task: Task) -> tuple[str, ...]:
    """The other unfinished tasks of its group."""
    if task.parallel_group is None:
        return ()
    conditions = (
        ("workflow_id", task.workflow_id),
        ("parallel_group", task.parallel_group),
        ("status", _UNFINISHED),
    )
    group = unit.select(Task, Query(conditions, ("status",), SHOWN_GROUP + 1))
    return tuple(other.id for other in group if other.id != task.id)[:SHOWN_GROUP]


def workflow_progress(call: Call, request: OfWorkflow) -> Progress:
    workflow = workflow_here(call, request.workflow_id)
    tally = tally_of(call.work, workflow.id)
    current = _lowest_unfinished(call.work, workflow.id)
    below = _highest_finished(call.work, workflow.id, current)
    return Progress(
        workflow_id=workflow.id,
        total_tasks=tally.total,
        by_status={status: tally.counts[status] for status in SHOWN_STATES},
        completed_sequence=below,
        current_sequence=below if current is None else current,
        blocked_tasks=_blocked(call.work, workflow.id),
        parallel_groups=_groups(call.work, workflow.id),
        estimated_remaining=tally.unfinished,
        estimated_remaining_ms=_remaining_ms(workflow, tally),
    )


def _lowest_unfinished(unit: UnitOfWork, workflow_id: str) -> int | None:
    first = tasks_in(unit, workflow_id, _UNFINISHED, 1)
    return first[0].sequence if first else None


def _highest_finished(unit: UnitOfWork, workflow_id: str, below: int | None) -> int:
    """The highest sequence that is done, and everything before it too; 0 where nothing is."""
    found = [0]
    for status in FINISHED:
        conditions: list[tuple[str, Any]] = [("workflow_id", workflow_id), ("status", status)]
        if below is not None:
            conditions.append(("sequence <", below))
        last = unit.select(Task, Query(tuple(conditions), ("-sequence", "-id"), 1))
        found += [task.sequence for task in last]
    return max(found)


def _blocked(unit: UnitOfWork, workflow_id: str) -> tuple[dict[str, Any], ...]:
    """Blocked tasks, those that wait for the fewest others first."""
    conditions = (("workflow_id", workflow_id), ("status", "pending"), ("unmet >", 0))
    order = ("unmet", "open_children", "-priority", "sequence", "-unblocks")
    return tuple(
        {
            "id": task.id,
            "name": task.name,
            "blocked_by": [need.name for need in needed_tasks(unit, task) if not need.is_finished][:SHOWN_BLOCKED],
        }
        for task in unit.select(Task, Query(conditions, order, SHOWN_BLOCKED))
    )


def _groups(unit: UnitOfWork, workflow_id: str) -> tuple[dict[str, Any], ...]:
    counted = unit.count_by(Task, where(workflow_id=workflow_id), ("parallel_group", "status"))
    groups: dict[str, dict[str, Any]] = {}
    for (group, status), count in sorted(counted.items(), key=lambda entry: (str(entry[0][0]), entry[0][1])):
        if group is not None:
            shown = groups.setdefault(group, {"group_id": group, "task_count": 0, "completed": 0})
            shown["task_count"] += count
            shown["completed"] += count if status in FINISHED else 0
    return tuple(groups.values())[:SHOWN_GROUPS]


def _remaining_ms(workflow: Workflow, tally: Tally) -> int | None:
    """By what completed tasks took on average, as many at once as the workflow allows; None before the first."""
    done = tally.counts["completed"]
    if not done or not tally.worked_ms:
        return None if tally.unfinished else 0
    at_once = max(1, min(workflow.max_parallel_tasks, tally.unfinished))
    return tally.worked_ms * tally.unfinished // done // at_once


def task_check_dependencies(call: Call, request: OfTask) -> Dependencies:
    needs = needed_tasks(call.work, task_here(call, request.task_id))
    pending = [need for need in needs if not need.is_finished]
    return Dependencies(
        satisfied=not pending,
        pending=tuple({"id": need.id, "name": need.name, "status": need.shown_status} for need in pending),
        completed=tuple(
            {"id": need.id, "name": need.name, "outcome": cut(need.outcome or "", DESCRIPTION)}
            for need in needs
            if need.is_finished
        ),
    )


_STARTED = (*PLANNED, ("task_update_status", {"id": "task_1", "status": "in_progress"}))
_DONE = (
    *_STARTED,
    ("task_update_status", {"id": "task_1", "status": "completed", "outcome": "Retries five times"}),
)
_BESIDE = (
    *PLANNED,
    ("workflow_set_parallelism", {"id": "wf_1", "max_parallel_tasks": 3}),
    (
        "workflow_add_tasks",
        {
            "id": "wf_1",
            "tasks": [
                {"name": "log", "description": "", "sequence": 3, "files_likely_affected": ["src/fetch.py"]},
                {"name": "count", "description": "", "sequence": 4, "files_likely_affected": ["src/"]},
            ],
        },
    ),
)
_HERE = (RunNotFound, NothingOpen, SeveralOpen)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="workflow_next_tasks",
        toolset=ORCHESTRATION,
        effect=Effect.READ,
        stored=True,
        summary="Says which tasks can be started now, best first",
        request=NextTasks,
        response=NextTasksFound,
        handler=workflow_next_tasks,
        refusals=_HERE,
        examples=(
            Example(
                title="only what waits for nothing is next",
                given=PLANNED,
                request={},
                response={
                    "tasks": [{"id": "task_1", "name": "wrap", "can_parallelize": False}],
                    "recommended_count": 1,
                    "workflow_status": "ready",
                    "all_complete": False,
                },
            ),
            Example(
                title="a finished task sets free what waited for it",
                given=_DONE,
                request={"workflow_id": "wf_1"},
                response={"tasks": [{"name": "test", "dependencies_completed": ["wrap"]}]},
            ),
            Example(
                title="two that touch the same file are not begun together",
                given=_BESIDE,
                request={},
                response={
                    "batch": ["task_1", "task_3"],
                    "conflicts": [
                        {
                            "task_id": "task_4",
                            "other": "ready",
                            "other_id": "task_3",
                            "path": "src/fetch.py",
                            "declared": "files_likely_affected: src/",
                        }
                    ],
                },
            ),
            Example(title="without an open workflow there is nothing next", request={}, refused=NothingOpen),
            Example(title="an unknown workflow is refused", request={"workflow_id": "wf_9"}, refused=RunNotFound),
            Example(
                title="with several open workflows one must be named",
                given=(*PLANNED, PLANNED[0]),
                request={},
                refused=SeveralOpen,
            ),
        ),
    ),
    Operation(
        name="workflow_progress",
        toolset=ORCHESTRATION,
        effect=Effect.READ,
        stored=True,
        summary="Shows how far a workflow is and what is blocked",
        request=OfWorkflow,
        response=Progress,
        handler=workflow_progress,
        refusals=_HERE,
        examples=(
            Example(
                title="a blocked task counts once",
                given=_STARTED,
                request={},
                response={
                    "total_tasks": 2,
                    "by_status": {"in_progress": 1, "blocked": 1, "pending": 0},
                    "current_sequence": 1,
                    "blocked_tasks": [{"name": "test", "blocked_by": ["wrap"]}],
                    "estimated_remaining": 2,
                },
            ),
            Example(title="nothing is open", request={}, refused=NothingOpen),
            Example(title="an unknown workflow is refused", request={"workflow_id": "wf_9"}, refused=RunNotFound),
            Example(
                title="several are open",
                given=(*PLANNED, PLANNED[0]),
                request={},
                refused=SeveralOpen,
            ),
        ),
    ),
    Operation(
        name="task_check_dependencies",
        toolset=ORCHESTRATION,
        effect=Effect.READ,
        stored=True,
        summary="Tells what a task still waits for",
        request=OfTask,
        response=Dependencies,
        handler=task_check_dependencies,
        refusals=(TaskNotFound, NothingOpen, SeveralOpen),
        examples=(
            Example(
                title="an unfinished dependency is pending",
                given=PLANNED,
                request={"task_id": "task_2"},
                response={"satisfied": False, "pending": [{"name": "wrap", "status": "pending"}]},
            ),
            Example(
                title="a finished one comes with its outcome",
                given=_DONE,
                request={"task_id": "task_2"},
                response={"satisfied": True, "completed": [{"name": "wrap", "outcome": "Retries five times"}]},
            ),
            Example(title="an unknown task is refused", request={"task_id": "task_9"}, refused=TaskNotFound),
            Example(title="no task is in progress", given=PLANNED, request={}, refused=NothingOpen),
            Example(
                title="several tasks are in progress",
                given=(
                    *_STARTED,
                    PLANNED[0],
                    ("workflow_add_tasks", {"id": "wf_2", "tasks": [{"name": "a", "description": "", "sequence": 1}]}),
                    ("task_update_status", {"id": "task_3", "status": "in_progress"}),
                ),
                request={},
                refused=SeveralOpen,
            ),
        ),
    ),
)
