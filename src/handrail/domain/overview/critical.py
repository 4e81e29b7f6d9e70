"""The critical path of a plan: the chain of tasks that takes longest, and so says how long all of it takes at least.

A finished task counts with the time it took, any other with an estimate: its complexity, at the pace of what is
finished here. Pure; the estimate is for comparing chains, not for promising a date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handrail.domain.layout.directing import Edge, in_order
from handrail.domain.work.task import Task

WEIGHTS: Mapping[str | None, float] = {"low": 1.0, "medium": 2.0, "high": 4.0, None: 2.0}
"""How long tasks take in comparison, by their complexity."""
PACE_MS = 5 * 60_000.0
"""What a task of weight 1 takes where nothing is finished yet."""
_LEAST_MS = 1.0
"""No task takes no time: so a chain never skips a task that lies between two of it."""


def critical_path(tasks: Sequence[Task], edges: Sequence[Edge]) -> list[int]:
    """Places in `tasks`, first to last. Of equally long chains it is the one that the plan names first."""
    times = durations(tasks)
    before: list[list[int]] = [[] for _ in tasks]
    for source, target in edges:
        before[target].append(source)
    total = [0.0] * len(tasks)
    came_from: list[int | None] = [None] * len(tasks)
    done = [False] * len(tasks)
    for place in in_order(len(tasks), edges):
        known = [other for other in before[place] if done[other]]  # all of them, where there is no cycle
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
    worked = [_worked_ms(task, parts_ended.get(task.id, 0)) for task in tasks]
    known = [(time, _weight(task)) for task, time in zip(tasks, worked, strict=True) if time is not None]
    weights = sum(weight for time, weight in known if time > _LEAST_MS)
    pace = sum(time for time, _ in known) / weights if weights else PACE_MS
    return [time if time is not None else _weight(task) * pace for task, time in zip(tasks, worked, strict=True)]


def _weight(task: Task) -> float:
    return WEIGHTS.get(task.estimated_complexity, WEIGHTS[None])


def _worked_ms(task: Task, parts_ended: int) -> float | None:
    """What a finished task took; its own part of it, where others were parts of it. None while it is not finished."""
    if not task.is_finished:
        return None
    if task.status != "completed" or task.started_at is None or task.finished_at is None:
        return _LEAST_MS
    return max(_LEAST_MS, float(task.finished_at - max(task.started_at, parts_ended)))
