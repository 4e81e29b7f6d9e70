"""Turns a workflow's tasks back into a plan that can be laid again: results are left out, the work itself stays.
Skipped tasks are dropped, and what waited for them waits for what they waited for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from handrail.domain.work.plan import PlanTask, entry_fields
from handrail.domain.work.task import Task


def plan_again(tasks: Sequence[Task]) -> list[PlanTask]:
    """The tasks as plan entries, without skipped ones, in the order they are given."""
    return _Copy(tasks).entries()


class _Copy:
    """The tasks of one workflow, indexed for every lookup needed here."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._by_id = {task.id: task for task in tasks}
        self._by_name = {task.name: task for task in tasks}
        self._parts: dict[str, list[str]] = defaultdict(list)
        for task in tasks:
            if task.parent_task_id is not None:
                self._parts[task.parent_task_id].append(task.name)

    def entries(self) -> list[PlanTask]:
        return [self._entry(task) for task in self._tasks if task.status != "skipped"]

    def _entry(self, task: Task) -> PlanTask:
        needs = list(task.depends_on)
        above = self._by_id.get(task.parent_task_id or "")
        while above is not None and above.status == "skipped":
            needs += above.depends_on  # being part of it, the task waited for these too
            above = self._by_id.get(above.parent_task_id or "")
        parent = None if above is None else above.name
        return PlanTask(**entry_fields(task, depends_on=self._without_skipped(needs), parent=parent))

    def _without_skipped(self, needs: Iterable[str]) -> list[str]:
        """These names, with each skipped task replaced by what it waited for: its dependencies, those of its enclosing
        tasks, and its parts."""
        kept: dict[str, None] = {}
        seen: set[str] = set()
        pending = list(needs)[::-1]
        while pending:
            name = pending.pop()
            task = self._by_name.get(name)
            if task is None or name in seen:
                continue
            seen.add(name)
            if task.status == "skipped":
                pending.extend([*self._waited_for(task), *self._parts[task.id]][::-1])
            else:
                kept[name] = None
        return list(kept)

    def _waited_for(self, task: Task) -> list[str]:
        needs: list[str] = []
        current: Task | None = task
        while current is not None:
            needs += current.depends_on
            current = self._by_id.get(current.parent_task_id or "")
        return needs
