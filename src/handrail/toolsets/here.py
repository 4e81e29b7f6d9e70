"""Which workflow or task a call means: by its id or, if ids may be left out, the only one that is open here.

"Here" is the project; in a store that serves several repositories, only this one's workflows count. Every refusal lists
what could be meant, so that the next call can be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail.domain.claims.claim import check_writer, ready_tasks
from handrail.domain.crew.presence import claims_of
from handrail.domain.graphs.locks import check_unlocked
from handrail.domain.work.lookup import find_task, find_workflow, listed
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import OPEN, Workflow
from handrail.kernel.errors import NothingOpen, SeveralOpen
from handrail.kernel.late import late_module
from handrail.kernel.records import Query, UnitOfWork
from handrail.operation import Call

if TYPE_CHECKING:
    from handrail.domain.pipeline import ownership
else:
    ownership = late_module("handrail.domain.pipeline.ownership")

SHOWN = 10
"""How many things a refusal lists."""
LOOKED_AT = 200
"""How many running tasks are searched for those of open workflows."""
STARTING = ("start_workflow", "workflow_create")
"""The tools that begin a workflow."""
UNDER_WAY = ("in_progress", "planning", "paused")
"""States of a task somebody works on, the one that is meant first coming first."""


def task_to_write(call: Call, task_id: str) -> Task:
    """The task, for a caller that may write to it: nobody holds it, or the caller does."""
    task = find_task(call.work, task_id)
    check_writer(call.work, task, call.writer, call.crew)
    return task


def may_finish(unit: UnitOfWork, task: Task, status: str) -> None:
    """Refuses to finish a task that only the run it belongs to may finish."""
    ownership.check_task(unit, task, status)


def plan_to_change(call: Call, workflow: Workflow) -> None:
    """Refuses to change a plan that another has locked. Its tasks can still be started and finished."""
    check_unlocked(call.work, workflow.id, workflow.stream, {call.work.actor.name})


def workflow_here(call: Call, workflow_id: str | None) -> Workflow:
    """The workflow with this id; without one, the only open one."""
    if workflow_id is not None:
        return find_workflow(call.work, workflow_id)
    found = open_workflows(call, SHOWN + 1)
    if len(found) == 1:
        return found[0]
    if not found:
        raise _no_workflow(call)
    raise SeveralOpen(
        "several workflows are open here",
        hint=f"say which by its id: {listed(found[:SHOWN])}",
        open=[{"id": workflow.id, "name": workflow.name, "status": workflow.status} for workflow in found[:SHOWN]],
    )


def task_here(call: Call, task_id: str | None) -> Task:
    """The task with this id; without one, the only one that somebody works on."""
    if task_id is not None:
        return find_task(call.work, task_id)
    if len(own := _tasks_claimed(call)) == 1:
        return own[0]
    under_way = own or tasks_under_way(call)
    for status in UNDER_WAY:
        found = _innermost([task for task in under_way if task.status == status])
        if len(found) == 1:
            return found[0]
        if found:
            raise SeveralOpen(
                f"several tasks are {status} here",
                hint=f"say which by its id: {listed(found[:SHOWN])}",
                **_open_details(found),
            )
    raise _nothing_under_way(call)


def open_workflows(call: Call, limit: int) -> list[Workflow]:
    """The workflows that are open here, most recently changed first."""
    conditions: list[tuple[str, object]] = [("status", OPEN)]
    if call.here.shared:
        conditions.append(("repository_path", call.here.repository))
    return call.work.select(Workflow, Query(tuple(conditions), ("-updated_at", "-id"), limit))


def tasks_under_way(call: Call) -> list[Task]:
    """The tasks of open workflows here that somebody works on, most recently changed first."""
    found: list[Task] = []
    for status in UNDER_WAY:
        running = call.work.select(Task, Query((("status", status),), ("-updated_at", "-id"), LOOKED_AT))
        found += [task for task in running if _is_here(call, task)]
    return found


def _tasks_claimed(call: Call) -> list[Task]:
    """What the caller holds and works on, if it is a known agent."""
    if call.writer.agent_id is None:
        return []
    held, _ = claims_of(call.work, call.writer.agent_id)
    tasks = [call.work.get(Task, lease.id) for lease in held]
    return [task for task in tasks if task is not None and task.status in UNDER_WAY]


def _innermost(tasks: list[Task]) -> list[Task]:
    """Drops tasks that have a part among them: the part is what is being worked on."""
    above = {task.parent_task_id for task in tasks}
    return [task for task in tasks if task.id not in above]


def _nothing_under_way(call: Call) -> NothingOpen:
    workflows = open_workflows(call, SHOWN)
    ready = [task for workflow in workflows for task in ready_tasks(call.work, workflow.id, 3)][:SHOWN]
    if ready:
        return NothingOpen(
            "no task is in progress here",
            hint=f"ready to start: {listed(ready)}",
            **_open_details(ready),
        )
    if workflows:
        begun = f"; {tool} begins another task in one" if (tool := tools_on(call, "start_task")) else ""
        return NothingOpen(
            "no task is in progress here, and none is ready", hint=f"open workflows: {listed(workflows)}{begun}"
        )
    return _no_workflow(call)


def _no_workflow(call: Call) -> NothingOpen:
    starting = tools_on(call, *STARTING) or " or ".join(STARTING)
    return NothingOpen("no workflow is open here", hint=f"{starting} starts one")


def tools_on(call: Call, *names: str) -> str:
    """Those of these tools that this server has on, in words."""
    there = {entry.operation.name: entry.name for entry in call.toolsets.published()}
    return " or ".join(there[name] for name in names if name in there)


def what_comes_next(nothing: NothingOpen) -> str:
    """A refusal in words, for tools that an agent calls first: to them, being asked too early is no mistake."""
    return f"{nothing.message[0].upper()}{nothing.message[1:]}: {nothing.hint}."


def _is_here(call: Call, task: Task) -> bool:
    workflow = call.work.get(Workflow, task.workflow_id)
    if workflow is None or workflow.status not in OPEN:
        return False
    return not call.here.shared or workflow.repository_path == call.here.repository


def _open_details(tasks: Iterable[Task]) -> dict[str, list[dict[str, str]]]:
    shown = list(tasks)[:SHOWN]
    return {"open": [{"id": task.id, "name": task.name, "status": task.shown_status} for task in shown]}
