"""The critical path of a plan: the chain of tasks that takes longest, and so sets the least time the plan takes.

The chain is found as a dry run finds it (`dry_run/forecast.py`), but over the whole plan: a finished task counts with
the time it took, any other with the dry run's estimate. So the page and `plan_dry_run` name the same chain. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from handrail.domain.dry_run.forecast import ForecastStep, longest_path
from handrail.domain.dry_run.steps import Pace, pace_of
from handrail.domain.layout.edges import Edge
from handrail.domain.work.task import Task

_LEAST_MS = 1
"""Every task takes some time, so that a chain never skips a task between two of its members."""


def critical_path(tasks: Sequence[Task], edges: Sequence[Edge]) -> list[int]:
    """Indexes into `tasks`, first to last. Of equally long chains, the one with more tasks, then the first."""
    before: list[list[str]] = [[] for _ in tasks]
    for source, target in edges:
        before[target].append(tasks[source].id)
    steps = [
        ForecastStep(task.id, task.name, tuple(needs), work_ms)
        for task, needs, work_ms in zip(tasks, before, durations(tasks), strict=True)
    ]
    place = {task.id: number for number, task in enumerate(tasks)}
    return [place[step.id] for step in longest_path(steps)]


def durations(tasks: Sequence[Task]) -> list[int]:
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


def _expected_ms(task: Task, pace: Pace) -> int:
    """How long an unfinished task will probably take. One with open parts is done when they are."""
    return _LEAST_MS if task.open_children else pace.of(task.estimated_complexity)


def _worked_ms(task: Task, parts_ended: int) -> int:
    """How long a finished task took; if it had parts, only its own share after they ended."""
    if task.status != "completed" or task.started_at is None or task.finished_at is None:
        return _LEAST_MS
    return max(_LEAST_MS, task.finished_at - max(task.started_at, parts_ended))
