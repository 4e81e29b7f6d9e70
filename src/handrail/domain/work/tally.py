"""How many tasks of a workflow are in each state. Every move updates it, so that nothing has to be counted."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from handrail.domain.work.task import FINISHED, SHOWN_STATES, Task


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one workflow, stored under its id. `blocked` is counted separately from `pending`."""

    id: str
    counts: dict[str, int]
    worked_ms: int = 0
    """Total time of completed tasks, each from its first start to its end."""
    version: int = 0
    """How often the plan itself changed: tasks, their order, their dependencies. Changes of task states do not
    count."""
    laid_at: int = 0
    """When the plan last changed."""

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
        """The tally with `gone` taken out and `come` added; a task that moved is in both."""
        counts = dict(self.counts)
        worked = self.worked_ms
        for task in gone:
            counts[task.shown_status] -= 1
            worked -= _work_ms(task)
        for task in come:
            counts[task.shown_status] += 1
            worked += _work_ms(task)
        return msgspec.structs.replace(self, counts=counts, worked_ms=worked)


def empty_tally(workflow_id: str) -> Tally:
    return Tally(id=workflow_id, counts=dict.fromkeys(SHOWN_STATES, 0))


def _work_ms(task: Task) -> int:
    return task.took_ms or 0 if task.status == "completed" else 0
