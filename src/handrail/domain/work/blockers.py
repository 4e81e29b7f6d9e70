"""Which tasks can move, what each may become, and which of them hold up one that cannot move.

The search starts at a waiting task and follows what it waits for to the tasks that can move: failed, paused, ready or
under way. Reads only, through indexes, and at most `LOOKED_AT` tasks and dependencies however large the plan is.
`overview/explanations.py` puts the result into words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from handrail.domain.work.task import AT_WORK, FINISHED, TASK_MACHINE, UNFINISHED, Dependency, Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.records import Query, UnitOfWork, chunks

LOOKED_AT = 2000
"""Tasks and dependencies examined on the way to the causes."""
FEW = 10
"""Tasks of each kind that stand in for all that can move in a workflow."""
_AT_ONCE = 50
"""Tasks whose dependencies are fetched together, to keep each result small."""

SILENT_MS = 15 * 60_000
"""After this long without news of a task, its worker is assumed to be stuck. A heartbeat is not news: it says that
an agent is there, not that anything moves."""
URGENCY = ("failed", "paused", "pending", *AT_WORK)
"""What needs attention comes before what moves by itself."""


class Behind(NamedTuple):
    """What was found behind a waiting task."""

    causes: list[Task]
    """The tasks that can move, nearest first."""
    waiting: Mapping[str, Task]
    """For each task reached, the one that waits for it."""
    whole: bool
    """False if there was more behind it than was examined."""


def can_move(task: Task) -> bool:
    """Whether an unfinished task can make the next move itself: neither dependencies nor subtasks hold it up. A failed
    or paused one can wait too: dependencies may be added later, and an import brings any state."""
    if task.status in AT_WORK:
        return not task.open_children
    return not task.unmet and (task.status != "pending" or not task.open_children)


def startable(workflow_id: str | Sequence[str], status: str = "pending") -> tuple[tuple[str, Any], ...]:
    """The conditions of a query for tasks with this status that neither dependencies nor subtasks hold up; of one
    workflow, or of several."""
    return (("workflow_id", workflow_id), ("status", status), ("unmet", 0), ("open_children", 0))


def status_or_ready(task: Task) -> str:
    """The status as people are told it: a pending task that nothing holds up is `ready`; one that waits for its own
    subtasks stays `pending`."""
    return "ready" if task.status == "pending" and can_move(task) else task.shown_status


def legal_moves(task: Task, workflow: Workflow) -> tuple[str, ...]:
    """The statuses a task may change to now."""
    if workflow.status in CLOSED:
        return ()
    may_start = workflow.status != "paused" and not task.unmet
    return tuple(
        status
        for status in TASK_MACHINE.transitions[task.status]
        if (may_start or status not in AT_WORK) and (status not in FINISHED or not task.open_children)
    )


def behind(unit: UnitOfWork, task: Task) -> Behind:
    """The tasks that can move behind one that cannot, found breadth first."""
    waiting: dict[str, Task] = {}
    causes: list[Task] = []
    level = [task]
    room = LOOKED_AT
    while level and room > 0:
        reached: list[Task] = []
        for start in range(0, len(level), _AT_ONCE):
            found, looked_at = _held_by(unit, level[start : start + _AT_ONCE], waiting, room)
            reached += found
            room -= looked_at
            if room <= 0:
                break
        reached.sort(key=lambda held: (-held.priority, held.sequence, held.id))
        causes += [held for held in reached if can_move(held)]
        level = [held for held in reached if not can_move(held)]
    return Behind(causes, waiting, whole=room > 0)


def movable(unit: UnitOfWork, workflow_id: str) -> list[Task]:
    """Tasks of a workflow that can move: the first few of each kind."""
    found: list[Task] = []
    for status in URGENCY:
        conditions: tuple[tuple[str, Any], ...] = (("workflow_id", workflow_id), ("status", status))
        order: tuple[str, ...] = ("sequence",)
        if status == "pending":
            conditions = startable(workflow_id)
            order = ("-priority", "sequence", "-unblocks")
        elif status in AT_WORK:
            conditions = (*conditions, ("open_children", 0))
        else:
            conditions = (*conditions, ("unmet", 0))
        found += unit.select(Task, Query(conditions, order, FEW))
    return found


def _held_by(unit: UnitOfWork, level: Sequence[Task], waiting: dict[str, Task], room: int) -> tuple[list[Task], int]:
    """The unfinished tasks these wait for that have not been reached before, and how many rows were examined."""
    by_id = {task.id: task for task in level}
    blocked = tuple(task.id for task in level if task.unmet)
    split = tuple(task.id for task in level if not task.unmet)
    links = unit.select(Dependency, Query((("task_id", blocked),), ("id",), room)) if blocked else []
    ends = {link.needs_id: by_id[link.task_id] for link in reversed(links) if link.needs_id not in waiting}
    keys = sorted(ends)
    found: list[Task] = []
    for chunk in chunks(keys):
        found += unit.select(Task, Query((("id", chunk), ("status", UNFINISHED))))
    waiting.update({need.id: ends[need.id] for need in found})
    if not split:
        return found, len(links)
    parts = unit.select(Task, Query((("parent_task_id", split), ("status", UNFINISHED)), ("id",), room))
    fresh = [part for part in parts if part.id not in waiting]
    waiting.update({part.id: by_id[part.parent_task_id] for part in fresh if part.parent_task_id is not None})
    return [*found, *fresh], len(links) + len(parts)
