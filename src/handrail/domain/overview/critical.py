"""The critical path of a plan: the chain of tasks that takes longest, and so sets the least time the plan takes.

A finished task counts with the time it took, any other with the same estimate that a dry run uses (`work/steps.py`), so
that the page and `plan_dry_run` name the same chain. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from handrail.domain.layout.directing import Edge, in_order
from handrail.domain.work.steps import Pace, pace_of
from handrail.domain.work.task import Task

_LEAST_MS = 1.0
"""Every task takes some time, so that a chain never skips a task between two of its members."""


def critical_path(tasks: Sequence[Task], edges: Sequence[Edge]) -> list[int]:
    """Indexes into `tasks`, first to last. Of equally long chains, the one that comes first in the plan."""
    times = durations(tasks)
    before: list[list[int]] = [[] for _ in tasks]
    for source, target in edges:
        before[target].append(source)
    total = [0.0] * len(tasks)
    came_from: list[int | None] = [None] * len(tasks)
    done = [False] * len(tasks)
    for place in in_order(len(tasks), edges):
        known = [other for other in before[place] if done[other]]  # all of them, unless there is a cycle
        longest = max(known, key=lambda other: (total[other], -other), default=None)
        came_from[place] = longest
        total[place] = times[place] + (total[longest] if longest is not None else 0.0)
        done[place] = True
    path: list[int] = []
    at: int | None = max(range(len(tasks)), key=lambda place: (total[place], -place), default=None)
    while at is not None:
        path.append(at)
        at = came_from[at]
    return path[::-1]


def durations(tasks: Sequence[Task]) -> list[float]:
    """How long each task took or will probably take, in milliseconds."""
    parts_ended: dict[str, int] = {}
    for task in tasks:
        if task.parent_task_id is not None and task.finished_at is not None:
            parts_ended[task.parent_task_id] = max(parts_ended.get(task.parent_task_id, 0), task.finished_at)
    pace = pace_of(tasks)
    return [
        _worked_ms(task, parts_ended.get(task.id, 0)) if task.is_finished else _expected_ms(task, pace)
        for task in tasks
    ]


def _expected_ms(task: Task, pace: Pace) -> float:
    """How long an unfinished task will probably take. One with open parts is done when they are."""
    return _LEAST_MS if task.open_children else float(pace.of(task.estimated_complexity))


def _worked_ms(task: Task, parts_ended: int) -> float:
    """How long a finished task took; if it had parts, only its own share after they ended."""
    if task.status != "completed" or task.started_at is None or task.finished_at is None:
        return _LEAST_MS
    return max(_LEAST_MS, float(task.finished_at - max(task.started_at, parts_ended)))
