"""The tasks of a run's list as tasks of its plan: laid when the list is written, moved as the run goes on."""

from __future__ import annotations

from typing import Any

from handrail.domain.crew.lease import ended
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.state import RunState, TaskState
from handrail.domain.work.editing import PlanEdit
from handrail.domain.work.laying import lay_plan, replace_plan
from handrail.domain.work.planning import PlanTask
from handrail.domain.work.task import Task
from handrail.kernel.records import UnitOfWork

PASSED = "It passed its review: "


def name_of(task: TaskState) -> str:
    return f"{task.number}: {task.title}"[:200]


def mirror_tasks(
    unit: UnitOfWork, edit: PlanEdit, run: PipelineRun, state: RunState, action: Action | None
) -> dict[str, str]:
    """Brings the plan's tasks in line with the run's; which number has which task."""
    if not state.tasks:
        return run.task_ids
    names = [name_of(task) for task in state.tasks]
    known = {number: _known(unit, edit, task_id) for number, task_id in run.task_ids.items()}
    if [task.name for task in known.values() if task is not None] != names:
        known = _laid(unit, edit, run, state)
    for task in state.tasks:
        there = known.get(str(task.number))
        if there is not None:
            _move(unit, edit, there, task, action)
    return {number: task.id for number, task in known.items() if task is not None}


def _known(unit: UnitOfWork, edit: PlanEdit, task_id: str) -> Task | None:
    """The plan's task; None where somebody has taken it out."""
    return edit.task(task_id) if edit.holds(task_id) and unit.get(Task, task_id) is not None else None


def _laid(unit: UnitOfWork, edit: PlanEdit, run: PipelineRun, state: RunState) -> dict[str, Task | None]:
    by_number = {task.number: name_of(task) for task in state.tasks}
    drafts = [
        PlanTask(
            name_of(task),
            task.title,
            place,
            depends_on=[by_number[need] for need in task.depends_on],
            files_likely_affected=task.files,
            parallel_group="parallel" if task.mode == "parallel" else None,
        )
        for place, task in enumerate(state.tasks, 1)
    ]
    if run.task_ids:
        replace_plan(unit, edit, drafts, "the task list was written anew")
        laid = edit.named(by_number.values())
    else:
        laid = {task.name: task for task in lay_plan(unit, edit, drafts)}
    return {str(number): laid.get(name) for number, name in by_number.items()}


def _move(unit: UnitOfWork, edit: PlanEdit, there: Task, task: TaskState, action: Action | None) -> None:
    """The state of a plan's task follows from the run's, by consequence rather than by anybody's word."""
    status, values = there.status, {}
    if task.skipped:
        status = "skipped"
    elif task.implemented and task.verdict is not None:
        status, values = "completed", {"outcome": f"{PASSED}{task.verdict}"}
    elif task.implemented or (action is not None and task.number in action.tasks):
        status = "in_progress"
    if there.is_finished or status == there.status:
        return
    changes: dict[str, Any] = {"status": status, **values}
    if status == "in_progress":
        changes |= {"attempts": there.attempts + 1, "started_at": there.started_at or edit.now}
    else:
        changes["finished_at"] = edit.now
    edit.change(there, **changes)
    if status != "in_progress" and there.assigned_agent_id is not None:
        for lease in ended(unit, there.id):
            unit.record("task.claim_ended", lease)
