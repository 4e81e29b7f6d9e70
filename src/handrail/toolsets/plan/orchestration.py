"""Toolset `orchestration`: plan.md's questions about a running plan. What is next, how far it is, what waits for what.

Read-only. Ids may be left out if only one can be meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from handrail.domain.claims.claim import deserted_tasks, in_order, ready_tasks
from handrail.domain.gates.gate import open_reviews
from handrail.domain.journal.plan_steps import steps_left
from handrail.domain.reply_size import within
from handrail.domain.work.plan_edit import places_taken, tally_of, tasks_in
from handrail.domain.work.task import AT_WORK, FINISHED, RUNNING, SHOWN_STATES, UNFINISHED, Task
from handrail.domain.work.transitions import needed_tasks
from handrail.domain.work.workflow import CLOSED, Tally, Workflow, pause_details
from handrail.domain.workspaces.forecast import MOST_RUNNING, Forecast, TaskConflict, forecast
from handrail.kernel.errors import NothingOpen, RunNotFound, SeveralOpen, TaskNotFound
from handrail.kernel.records import Query, UnitOfWork, where
from handrail.kernel.wording import shortened
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import task_here, tools_on, what_comes_next, workflow_here
from handrail.toolsets.plan.orchestration_shapes import (
    Dependencies,
    NextTask,
    NextTasks,
    NextTasksFound,
    OfTask,
    OfWorkflow,
    WorkflowProgress,
)
from handrail.toolsets.plan.workflow import PLANNED, STARTED
from handrail.toolsets.shown import cut
from handrail.toolsets.vocabulary import ORCHESTRATION

SHOWN_RUNNING = 20
SHOWN_GROUP = 8
SHOWN_BLOCKED = 20
LIST_BYTES, GROUP_BYTES = 3_400, 2_000
"""Bytes for a list of tasks and for one of parallel groups, so that a reply with two of them stays below 8 kB."""
SHOWN_CONFLICTS = 10
NAME = 60
"""The longest name or path in a conflict, in characters."""
DESCRIPTION = 300
WHOLE = "task_load_context with this task's id shows them"
"""How to get the rest of a task's text, with the one tool that is on wherever these are."""
OUTCOMES = "task_load_context with the waiting task's id shows them"


def workflow_next_tasks(call: Call, request: NextTasks) -> NextTasksFound:
    try:
        workflow = workflow_here(call, request.workflow_id)
    except NothingOpen as nothing:
        return msgspec.structs.replace(_NOTHING_NEXT, next=what_comes_next(nothing))
    tally = tally_of(call.work, workflow.id)
    standing_still = workflow.status in (*CLOSED, "paused")
    deserted = [] if standing_still else deserted_tasks(call.work, workflow.id)
    running = tasks_in(call.work, workflow.id, AT_WORK, MOST_RUNNING)
    free = _free_places(call.work, workflow, deserted)
    startable = [] if standing_still else _startable(call.work, workflow, request, deserted, free)
    found = startable[: request.limit]
    foreseen = _forecast_if_useful(call, workflow, found, running, free)
    unknown = foreseen.unknown if foreseen is not None else frozenset()
    return NextTasksFound(
        tasks=tuple(_next_task(call.work, task, unknown_scope=task.id in unknown) for task in found),
        max_parallel=workflow.max_parallel_tasks,
        recommended_count=min(len(startable), free),
        workflow_status=workflow.status,
        all_complete=tally.total > 0 and tally.unfinished == 0,
        workflow_id=workflow.id,
        more=len(startable) > len(found),
        running=tuple({"id": task.id, "name": task.name, "status": task.status} for task in running[:SHOWN_RUNNING]),
        open_reviews=tuple(
            {"id": gate.id, "task_id": gate.task_id, "question": shortened(gate.question, DESCRIPTION)}
            for gate in open_reviews(call.work, workflow.id, SHOWN_RUNNING)
        ),
        paused=pause_details(call.work, workflow),
        plan_steps_left=(left := _steps_left(call.work, workflow) if not found else ()),
        next=None if found or running or left or standing_still else _next_move(call, tally),
        **_shown_forecast(foreseen),
    )


def _next_move(call: Call, tally: Tally) -> str | None:
    """What to call where an open workflow has nothing to start."""
    if tally.unfinished:
        return None  # workflow_progress says what they wait for
    if tally.total and (ending := tools_on(call, "workflow_update_status")):
        return f'Every task is finished: {ending} with status "completed" ends the workflow.'
    began = "Every task is finished" if tally.total else "It has no tasks yet"
    adding = tools_on(call, "workflow_set_plan", "start_task") if not tally.total else tools_on(call, "start_task")
    return f"{began}: {adding} adds {'another' if tally.total else 'some'}." if adding else None


_NOTHING_NEXT = NextTasksFound(
    tasks=(),
    max_parallel=0,
    recommended_count=0,
    workflow_status=None,
    all_complete=False,
    workflow_id=None,
    running=(),
)


def _steps_left(unit: UnitOfWork, workflow: Workflow) -> tuple[str, ...]:
    left = [] if workflow.status in CLOSED else steps_left(unit, workflow)
    return tuple(shortened(step.numbered, DESCRIPTION) for step in left[:SHOWN_RUNNING])


def _forecast_if_useful(
    call: Call, workflow: Workflow, found: list[Task], running: list[Task], free: int
) -> Forecast | None:
    """What can be started together; None if there is nothing to choose and nothing in the way."""
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


def _shown_forecast(foreseen: Forecast | None) -> dict[str, Any]:
    if foreseen is None:
        return {}
    count = len(foreseen.conflicts)
    return {
        "batch": foreseen.batch,
        "conflicts": tuple(map(_shown_conflict, foreseen.conflicts[:SHOWN_CONFLICTS])),
        "conflicts_total": count if count > SHOWN_CONFLICTS else None,
        "unchecked": foreseen.unchecked,
    }


def _shown_conflict(conflict: TaskConflict) -> dict[str, Any]:
    """One reason, short enough for a line."""
    shown: dict[str, Any] = msgspec.structs.asdict(conflict)
    for name in ("name", "other_name", "path", "declared", "other_declared"):
        shown[name] = shortened(shown[name], NAME)
    return {name: value for name, value in shown.items() if value is not None}


def _free_places(unit: UnitOfWork, workflow: Workflow, deserted: Sequence[Task]) -> int:
    """How many more tasks may run at once. A task whose agent is lost frees its place for the next."""
    left = sum(not task.open_children for task in deserted if task.status in AT_WORK)
    return max(0, workflow.max_parallel_tasks - places_taken(unit, workflow.id) + left)


def _startable(
    unit: UnitOfWork, workflow: Workflow, request: NextTasks, deserted: Sequence[Task], free: int
) -> list[Task]:
    """The tasks that can start, best first: enough to fill every free place, and one more than are shown."""
    most = max(request.limit + 1, free)
    found = [*deserted, *ready_tasks(unit, workflow.id, most)]
    if request.include_failed:
        found += ready_tasks(unit, workflow.id, most, "failed")
    return sorted(found, key=in_order)[:most]


def _next_task(unit: UnitOfWork, task: Task, *, unknown_scope: bool) -> NextTask:
    return NextTask(
        id=task.id,
        name=task.name,
        description=cut(task.description, DESCRIPTION, rest=WHOLE),
        can_parallelize=task.parallel_group is not None,
        dependencies_completed=tuple(need.name for need in needed_tasks(unit, task) if need.is_finished),
        status=task.status,
        sequence=task.sequence,
        priority=task.priority,
        parallel_with=_parallel_with(unit, task),
        requires=task.requires,
        unblocks=task.unblocks,
        error=cut(task.error, DESCRIPTION, rest=WHOLE) if task.error else None,
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
        ("status", UNFINISHED),
    )
    group = unit.select(Task, Query(conditions, ("status",), SHOWN_GROUP + 1))
    return tuple(other.id for other in group if other.id != task.id)[:SHOWN_GROUP]


def workflow_progress(call: Call, request: OfWorkflow) -> WorkflowProgress:
    try:
        workflow = workflow_here(call, request.workflow_id)
    except NothingOpen as nothing:
        return msgspec.structs.replace(_NO_PROGRESS, next=what_comes_next(nothing))
    tally = tally_of(call.work, workflow.id)
    current = _lowest_unfinished(call.work, workflow.id)
    below = _highest_finished(call.work, workflow.id, current)
    groups = _groups(call.work, workflow.id)
    shown_groups = within(groups, GROUP_BYTES)
    return WorkflowProgress(
        workflow_id=workflow.id,
        total_tasks=tally.total,
        by_status={status: tally.counts[status] for status in SHOWN_STATES},
        completed_sequence=below,
        current_sequence=below if current is None else current,
        blocked_tasks=tuple(within(_blocked_tasks(call.work, workflow.id), LIST_BYTES)),
        parallel_groups=tuple(shown_groups),
        parallel_groups_total=len(groups) if len(shown_groups) < len(groups) else UNSET,
        estimated_remaining=tally.unfinished,
        estimated_remaining_ms=_remaining_ms(workflow, tally),
    )


_NO_PROGRESS = WorkflowProgress(
    workflow_id=None,
    total_tasks=0,
    by_status=dict.fromkeys(SHOWN_STATES, 0),
    completed_sequence=0,
    current_sequence=0,
    blocked_tasks=(),
    parallel_groups=(),
    estimated_remaining=0,
    estimated_remaining_ms=None,
)


def _lowest_unfinished(unit: UnitOfWork, workflow_id: str) -> int | None:
    first = tasks_in(unit, workflow_id, UNFINISHED, 1)
    return first[0].sequence if first else None


def _highest_finished(unit: UnitOfWork, workflow_id: str, below: int | None) -> int:
    """The highest sequence that is done together with everything before it; 0 if none is."""
    found = [0]
    for status in FINISHED:
        conditions: list[tuple[str, Any]] = [("workflow_id", workflow_id), ("status", status)]
        if below is not None:
            conditions.append(("sequence <", below))
        last = unit.select(Task, Query(tuple(conditions), ("-sequence", "-id"), 1))
        found += [task.sequence for task in last]
    return max(found)


def _blocked_tasks(unit: UnitOfWork, workflow_id: str) -> list[dict[str, Any]]:
    """Blocked tasks, starting with those that wait for the fewest others."""
    conditions = (("workflow_id", workflow_id), ("status", "pending"), ("unmet >", 0))
    order = ("unmet", "open_children", "-priority", "sequence", "-unblocks")
    return [
        {
            "id": task.id,
            "name": task.name,
            "blocked_by": [need.name for need in needed_tasks(unit, task) if not need.is_finished][:SHOWN_BLOCKED],
        }
        for task in unit.select(Task, Query(conditions, order, SHOWN_BLOCKED))
    ]


def _groups(unit: UnitOfWork, workflow_id: str) -> list[dict[str, Any]]:
    counted = unit.count_by(Task, where(workflow_id=workflow_id), ("parallel_group", "status"))
    groups: dict[str, dict[str, Any]] = {}
    for (group, status), count in sorted(counted.items(), key=lambda entry: (str(entry[0][0]), entry[0][1])):
        if group is not None:
            shown = groups.setdefault(group, {"group_id": group, "task_count": 0, "completed": 0})
            shown["task_count"] += count
            shown["completed"] += count if status in FINISHED else 0
    return list(groups.values())


def _remaining_ms(workflow: Workflow, tally: Tally) -> int | None:
    """Estimated from the average of completed tasks, as many at once as the workflow allows; None before the first."""
    done = tally.counts["completed"]
    if not done or not tally.worked_ms:
        return None if tally.unfinished else 0
    at_once = max(1, min(workflow.max_parallel_tasks, tally.unfinished))
    return tally.worked_ms * tally.unfinished // done // at_once


def task_check_dependencies(call: Call, request: OfTask) -> Dependencies:
    try:
        needs = needed_tasks(call.work, task_here(call, request.task_id))
    except NothingOpen as nothing:
        return Dependencies(satisfied=True, pending=(), completed=(), next=what_comes_next(nothing))
    pending = [
        {"id": need.id, "name": need.name, "status": need.shown_status} for need in needs if not need.is_finished
    ]
    completed = [
        {"id": need.id, "name": need.name, "outcome": cut(need.outcome or "", DESCRIPTION, rest=OUTCOMES)}
        for need in needs
        if need.is_finished
    ]
    shown, shown_completed = within(pending, LIST_BYTES), within(completed, LIST_BYTES)
    return Dependencies(
        satisfied=not pending,
        pending=tuple(shown),
        completed=tuple(shown_completed),
        pending_total=len(pending) if len(shown) < len(pending) else UNSET,
        completed_total=len(completed) if len(shown_completed) < len(completed) else UNSET,
    )


_DONE = (
    *STARTED,
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
_HERE = (RunNotFound, SeveralOpen)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="workflow_next_tasks",
        toolset=ORCHESTRATION,
        effect=Effect.READ,
        stored=True,
        summary="Lists the tasks that can start now, best first",
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
            Example(
                title="a workflow without tasks needs some",
                given=PLANNED[:1],
                request={},
                response={"next": "It has no tasks yet: workflow_set_plan or start_task adds some."},
            ),
            Example(
                title="without an open workflow there is nothing next",
                request={},
                response={
                    "tasks": [],
                    "next": "No workflow is open here: start_workflow or workflow_create starts one.",
                },
            ),
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
        summary="Shows a workflow's progress and what is blocked",
        request=OfWorkflow,
        response=WorkflowProgress,
        handler=workflow_progress,
        refusals=_HERE,
        examples=(
            Example(
                title="a blocked task counts once",
                given=STARTED,
                request={},
                response={
                    "total_tasks": 2,
                    "by_status": {"in_progress": 1, "blocked": 1, "pending": 0},
                    "current_sequence": 1,
                    "blocked_tasks": [{"name": "test", "blocked_by": ["wrap"]}],
                    "estimated_remaining": 2,
                },
            ),
            Example(title="nothing is open", request={}, response={"total_tasks": 0, "next": "No workflow is open..."}),
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
        summary="Shows what a task still waits for",
        request=OfTask,
        response=Dependencies,
        handler=task_check_dependencies,
        refusals=(TaskNotFound, SeveralOpen),
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
            Example(
                title="no task is in progress",
                given=PLANNED,
                request={},
                response={"pending": [], "next": "No task is in progress here: ..."},
            ),
            Example(
                title="several tasks are in progress",
                given=(
                    *STARTED,
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
