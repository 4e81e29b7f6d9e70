"""Which workflow or task a call means: by its id, or, where ids may be left out, the only one that is open here.

"Here" is the project; in a store that serves several repositories, this one's workflows only. Every refusal lists
what could be meant, so that the next call can be right.
"""

from __future__ import annotations

from collections.abc import Iterable

from handrail.domain.crew.claiming import check_writer
from handrail.domain.crew.offering import ready_tasks
from handrail.domain.crew.presence import claims_of
from handrail.domain.graphs.locking import check_unlocked
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import OPEN, Workflow
from handrail.kernel.errors import NothingOpen, RunNotFound, SeveralOpen, TaskNotFound
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call

SHOWN = 10
"""Things a refusal lists."""
LOOKED_AT = 200
"""Running tasks that are looked through for those of open workflows."""
UNDER_WAY = ("in_progress", "planning", "paused")
"""States of a task somebody works on, the one that is meant first coming first."""


def find_workflow(unit: UnitOfWork, workflow_id: str) -> Workflow:
    """The workflow, or a refusal that names the newest ones."""
    workflow = unit.get(Workflow, workflow_id)
    if workflow is None:
        newest = unit.select(Workflow, Query((), ("-updated_at", "-id"), 5))
        known = _listed(newest) or "there is none yet: workflow_create makes one"
        raise RunNotFound(f"there is no workflow {workflow_id}", hint=f"newest: {known}", id=workflow_id)
    return workflow


def find_task(unit: UnitOfWork, task_id: str) -> Task:
    """The task, or a refusal that says where ids come from."""
    task = unit.get(Task, task_id)
    if task is None:
        if unit.get(Workflow, task_id) is not None:
            raise TaskNotFound(
                f"{task_id} is a workflow, not a task", hint="workflow_next_tasks shows its tasks", id=task_id
            )
        raise TaskNotFound(
            f"there is no task {task_id}", hint="workflow_next_tasks and workflow_get show tasks by id", id=task_id
        )
    return task


def task_to_write(call: Call, task_id: str) -> Task:
    """The task, for a caller that may write to it: nobody holds it, or the caller does."""
    task = find_task(call.work, task_id)
    check_writer(call.work, task, call.writer, call.crew)
    return task


def plan_to_change(call: Call, workflow: Workflow) -> None:
    """Refuses to change a plan that another has locked. Its tasks are started and finished all the same."""
    check_unlocked(call.work, workflow.id, workflow.stream, {call.work.actor.name})


def workflow_here(call: Call, workflow_id: str | None) -> Workflow:
    """The workflow with this id; without one, the only open one."""
    if workflow_id is not None:
        return find_workflow(call.work, workflow_id)
    found = open_workflows(call, SHOWN + 1)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NothingOpen("no workflow is open here", hint="workflow_create or start_workflow begins one")
    raise SeveralOpen(
        "several workflows are open here",
        hint=f"say which by its id: {_listed(found[:SHOWN])}",
        open=[{"id": workflow.id, "name": workflow.name, "status": workflow.status} for workflow in found[:SHOWN]],
    )


def task_here(call: Call, task_id: str | None) -> Task:
    """The task with this id; without one, the only one that somebody works on."""
    if task_id is not None:
        return find_task(call.work, task_id)
    if len(own := _claimed(call)) == 1:
        return own[0]
    under_way = own or tasks_under_way(call)
    for status in UNDER_WAY:
        found = _innermost([task for task in under_way if task.status == status])
        if len(found) == 1:
            return found[0]
        if found:
            raise SeveralOpen(
                f"several tasks are {status} here",
                hint=f"say which by its id: {_listed(found[:SHOWN])}",
                **_open(found),
            )
    raise _nothing_under_way(call)


def open_workflows(call: Call, limit: int) -> list[Workflow]:
    """The workflows that are open here, the one that moved last first."""
    conditions: list[tuple[str, object]] = [("status", OPEN)]
    if call.here.shared:
        conditions.append(("repository_path", call.here.repository))
    return call.work.select(Workflow, Query(tuple(conditions), ("-updated_at", "-id"), limit))


def tasks_under_way(call: Call) -> list[Task]:
    """The tasks of open workflows here that somebody works on, the one that moved last first."""
    found: list[Task] = []
    for status in UNDER_WAY:
        running = call.work.select(Task, Query((("status", status),), ("-updated_at", "-id"), LOOKED_AT))
        found += [task for task in running if _is_here(call, task)]
    return found


def _claimed(call: Call) -> list[Task]:
    """What the caller, where it is a known agent, holds and works on."""
    if call.writer.agent_id is None:
        return []
    held, _ = claims_of(call.work, call.writer.agent_id)
    tasks = [call.work.get(Task, lease.id) for lease in held]
    return [task for task in tasks if task is not None and task.status in UNDER_WAY]


def _innermost(tasks: list[Task]) -> list[Task]:
    """Without those of which a part is among them too: the part is what is worked on."""
    above = {task.parent_task_id for task in tasks}
    return [task for task in tasks if task.id not in above]


def _nothing_under_way(call: Call) -> NothingOpen:
    workflows = open_workflows(call, SHOWN)
    ready = [task for workflow in workflows for task in ready_tasks(call.work, workflow.id, 3)][:SHOWN]
    if ready:
        return NothingOpen("no task is in progress here", hint=f"next would be: {_listed(ready)}", **_open(ready))
    if workflows:
        return NothingOpen(
            "no task is in progress here, and none is ready", hint=f"open workflows: {_listed(workflows)}"
        )
    return NothingOpen("no workflow is open here", hint="workflow_create or start_workflow begins one")


def _is_here(call: Call, task: Task) -> bool:
    workflow = call.work.get(Workflow, task.workflow_id)
    if workflow is None or workflow.status not in OPEN:
        return False
    return not call.here.shared or workflow.repository_path == call.here.repository


def _open(tasks: Iterable[Task]) -> dict[str, list[dict[str, str]]]:
    shown = list(tasks)[:SHOWN]
    return {"open": [{"id": task.id, "name": task.name, "status": task.shown_status} for task in shown]}


def _listed(things: Iterable[Workflow | Task]) -> str:
    return ", ".join(f"{thing.id} ({thing.name})" for thing in things)
