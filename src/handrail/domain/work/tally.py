"""How many tasks of a workflow are in which state, kept up to date by every move, so that nobody counts them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from handrail.domain.work.task import FINISHED, SHOWN_STATES, Task


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The count of one workflow; it has the workflow's id. `blocked` counts apart from `pending`."""

    id: str
    counts: dict[str, int]
    worked_ms: int = 0
    """What completed tasks took together, from their first start to their end."""
    version: int = 0
    """How often the plan itself changed: tasks, their order, what waits for what. A task that moves changes no plan."""
    laid_at: int = 0
    """When the plan changed last."""

    @property
    def stream(self) -> str:
        return self.id

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def finished(self) -> int:
        return sum(self.counts[status] for status in FINISHED)

    @property
    def unfinished(self) -> int:
        return self.total - self.finished

    def after(self, *, gone: Iterable[Task] = (), come: Iterable[Task] = ()) -> Tally:
        """The tally once `gone` are out of it and `come` are in; a task that moved is in both."""
        counts = dict(self.counts)
        worked = self.worked_ms
        for task in gone:
            counts[task.shown_status] -= 1
            worked -= _worked(task)
        for task in come:
            counts[task.shown_status] += 1
            worked += _worked(task)
        return msgspec.structs.replace(self, counts=counts, worked_ms=worked)


def empty_tally(workflow_id: str) -> Tally:
    return Tally(id=workflow_id, counts=dict.fromkeys(SHOWN_STATES, 0))


def _worked(task: Task) -> int:
    if task.status != "completed" or task.started_at is None or task.finished_at is None:
        return 0
    return max(0, task.finished_at - task.started_at)
