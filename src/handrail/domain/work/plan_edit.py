"""An edit of one workflow's plan: tasks and dependencies are added, removed and changed; the counters follow.

Every change of a plan goes through here, so that `unmet`, `unblocks`, `open_children` and the tally are right by
construction. `apply_plan.py` and `transitions.py` decide what to change; nothing is written before `record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from handrail.domain.work.plan import ENTRY_FIELDS
from handrail.domain.work.task import AT_WORK, Dependency, Task, dependency
from handrail.domain.work.workflow import Tally, Workflow, empty_tally
from handrail.kernel.records import Query, Record, UnitOfWork, chunks, where

PLANNED = (*ENTRY_FIELDS, "parent_task_id")
"""The fields of a task that belong to the plan: working on the task does not change them."""


class PlanEdit:
    """Collects changes to the tasks of one workflow."""

    def __init__(self, unit: UnitOfWork, workflow: Workflow) -> None:
        self._unit = unit
        self.workflow = workflow
        self.now = unit.now_ms()
        self._before: dict[str, Task | None] = {}
        self._tasks: dict[str, Task | None] = {}
        self._links: dict[str, Dependency | None] = {}
        self._touched: dict[str, set[str]] = {}
        """For each task at either end of a changed dependency, the ids of its changed dependencies."""
        if unit.get(Tally, workflow.id) is None:
            self._adopt()

    def _adopt(self) -> None:
        """Links the tasks of a plan made before dependencies were separate records."""
        tasks = {task.name: task for task in self._unit.select(Task, where(workflow_id=self.workflow.id))}
        for task in tasks.values():
            self._count(task, unmet=0)
        for task in tasks.values():
            for need in task.depends_on:
                self.link(task.id, tasks[need].id)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def task(self, task_id: str) -> Task:
        """The task with this edit applied."""
        task = self._tasks[task_id] if task_id in self._tasks else self._unit.get(Task, task_id)
        assert task is not None, f"{task_id} belongs to the plan"
        return task

    def add(self, task: Task) -> None:
        self._before[task.id] = None
        self._tasks[task.id] = task
        if task.parent_task_id is not None and not task.is_finished:
            self._count_child(task.parent_task_id, 1)

    def change(self, task: Task, **fields: Any) -> Task:
        """Changes fields of a task and returns it. If that finishes it, its dependents stop waiting for it."""
        self._before.setdefault(task.id, task)
        current = self.task(task.id)
        changed = msgspec.structs.replace(current, **fields, updated_at=self.now)
        self._tasks[task.id] = changed
        if changed.is_finished and not current.is_finished:
            self._count_as_finished(changed)
        return changed

    def move_under(self, task: Task, parent_id: str | None) -> None:
        """Makes a task part of another, or of none."""
        if task.parent_task_id == parent_id:
            return
        for above, step in ((task.parent_task_id, -1), (parent_id, 1)):
            if above is not None and not task.is_finished:
                self._count_child(above, step)
        self.change(task, parent_task_id=parent_id)

    def parts_of(self, task_id: str) -> list[Task]:
        """The stored subtasks of a task that remain after this edit."""
        stored = self._unit.select(Task, where(parent_task_id=task_id))
        current = (self._tasks.get(part.id, part) for part in stored)
        return [part for part in current if part is not None and part.parent_task_id == task_id]

    def remove(self, task: Task) -> None:
        """Removes a task with all dependencies from and to it."""
        for link in self.needs_of(task.id):
            self.unlink(link)
        for link in self.dependents_of(task.id):
            self.unlink(link)
            waiting = self.task(link.task_id)
            if not link.inherited:
                self.change(waiting, depends_on=[name for name in waiting.depends_on if name != task.name])
        self._before.setdefault(task.id, task)
        if task.parent_task_id is not None:
            self._count_child(task.parent_task_id, -1)
        self._tasks[task.id] = None

    def named(self, names: Iterable[str]) -> dict[str, Task]:
        """The plan's tasks that have one of these names, with this edit applied."""
        wanted = set(names)
        found: dict[str, Task | None] = {
            task.id: task for task in tasks_named(self._unit, self.workflow.id, wanted).values()
        }
        found |= self._tasks
        return {task.name: task for task in found.values() if task is not None and task.name in wanted}

    def holds(self, task_id: str) -> bool:
        """True if the plan still contains the task after this edit."""
        return self._tasks.get(task_id, task_id) is not None

    def outcome(self) -> dict[str, Task | None]:
        """Every task this edit touched, in its final form; None if removed."""
        return dict(self._tasks)

    def _count_as_finished(self, finished: Task) -> None:
        for link in self.dependents_of(finished.id):
            waiting = self.task(link.task_id)
            self._count(waiting, unmet=waiting.unmet - 1)
        if finished.parent_task_id is not None:
            self._count_child(finished.parent_task_id, -1)

    def _count_child(self, parent_id: str, step: int) -> None:
        parent = self.task(parent_id)
        self._count(parent, open_children=parent.open_children + step)

    def _count(self, task: Task, **counters: int) -> None:
        self._before.setdefault(task.id, task)
        self._tasks[task.id] = msgspec.structs.replace(self.task(task.id), **counters)

    # -- dependencies -------------------------------------------------------------------------------------------------

    def needs_of(self, task_id: str) -> list[Dependency]:
        """What a task waits for, with this edit applied."""
        return [link for link in self._links_at(where(task_id=task_id), task_id) if link.task_id == task_id]

    def dependents_of(self, task_id: str) -> list[Dependency]:
        """What waits for a task, with this edit applied."""
        return [link for link in self._links_at(where(needs_id=task_id), task_id) if link.needs_id == task_id]

    def needs_above(self, task: Task) -> list[str]:
        """What the enclosing tasks of a task wait for."""
        found: list[str] = []
        while task.parent_task_id is not None:
            task = self.task(task.parent_task_id)
            found += [link.needs_id for link in self.needs_of(task.id) if not link.inherited]
        return list(dict.fromkeys(found))

    def _links_at(self, query: Query, end: str) -> list[Dependency]:
        stored = () if self._is_new(end) else self._unit.select(Dependency, query)
        found: dict[str, Dependency | None] = {link.id: link for link in stored}
        found |= {key: self._links[key] for key in self._touched.get(end, ())}
        return [link for link in found.values() if link is not None]

    def _is_new(self, task_id: str) -> bool:
        return self._before.get(task_id, task_id) is None

    def link(self, task_id: str, needs_id: str, *, inherited: bool = False) -> None:
        """Makes one task wait for another. If it already does, only `inherited` can change."""
        new = dependency(self.workflow.id, task_id, needs_id, inherited=inherited)
        if new.id in self._links:
            old = self._links[new.id]
        else:
            old = None if self._is_new(task_id) else self._unit.get(Dependency, new.id)
        self._set_link(new.id, new, new)
        if old is None:
            self._count_link(new, 1)

    def unlink(self, link: Dependency) -> None:
        self._set_link(link.id, link, None)
        self._count_link(link, -1)

    def _set_link(self, key: str, ends: Dependency, link: Dependency | None) -> None:
        self._links[key] = link
        for end in (ends.task_id, ends.needs_id):
            self._touched.setdefault(end, set()).add(key)

    def _count_link(self, link: Dependency, step: int) -> None:
        needed, waiting = self.task(link.needs_id), self.task(link.task_id)
        self._count(needed, unblocks=needed.unblocks + step)
        if not needed.is_finished:
            self._count(waiting, unmet=waiting.unmet + step)

    # -- the outcome --------------------------------------------------------------------------------------------------

    def record(self, kind: str, *others: Record, data: Mapping[str, Any] | None = None, **fields: Any) -> Tally:
        """Records one event with every changed record; `fields` are new values of the workflow itself."""
        gone = [task for task in self._before.values() if task is not None]
        come = [task for task in self._tasks.values() if task is not None]
        tally = tally_of(self._unit, self.workflow.id).after(gone=gone, come=come)
        if self._is_another_plan():
            tally = msgspec.structs.replace(tally, version=tally.version + 1, laid_at=self.now)
        workflow = msgspec.structs.replace(self.workflow, **fields, updated_at=self.now)
        removed: list[Record] = [self._old(key) for key, task in self._tasks.items() if task is None]
        removed += self._gone_links()
        links = [link for link in self._links.values() if link is not None]
        self._unit.record(kind, workflow, tally, *come, *links, *others, removes=removed, data=data)
        self.workflow = workflow
        return tally

    def _is_another_plan(self) -> bool:
        """Whether tasks were added, removed or rewritten, or dependencies changed."""
        for key, task in self._tasks.items():
            old = self._before.get(key)
            if old is None or task is None or any(getattr(old, name) != getattr(task, name) for name in PLANNED):
                return True
        return any((self._unit.get(Dependency, key) is None) != (link is None) for key, link in self._links.items())

    def _old(self, key: str) -> Task:
        task = self._before[key]
        assert task is not None, "only what was there can be taken out"
        return task

    def _gone_links(self) -> Iterator[Dependency]:
        for key, link in self._links.items():
            old = self._unit.get(Dependency, key) if link is None else None
            if old is not None:
                yield old


def tasks_named(unit: UnitOfWork, workflow_id: str, names: Iterable[str]) -> dict[str, Task]:
    """The tasks of a workflow that have one of these names."""
    found: dict[str, Task] = {}
    for chunk in chunks(names):
        for task in unit.select(Task, Query((("workflow_id", workflow_id), ("name", chunk)))):
            found[task.name] = task
    return found


def tasks_in(unit: UnitOfWork, workflow_id: str, states: Iterable[str], limit: int) -> list[Task]:
    """The first tasks of a workflow in these states, by sequence. Queried state by state, because the index orders only
    within a state."""
    found: list[Task] = []
    for state in states:
        found += unit.select(Task, Query((("workflow_id", workflow_id), ("status", state)), ("sequence",), limit))
    return sorted(found, key=lambda task: (task.sequence, task.id))[:limit]


def places_taken(unit: UnitOfWork, workflow_id: str) -> int:
    """How many of the parallel slots are in use. A task with open parts leaves its slot to them."""
    under_way = (("workflow_id", workflow_id), ("status", AT_WORK), ("open_children", 0))
    return unit.count(Task, Query(under_way))


def tally_of(unit: UnitOfWork, workflow_id: str) -> Tally:
    """The task counts of a workflow. Computed only for a plan not edited since tallies were introduced."""
    kept = unit.get(Tally, workflow_id)
    if kept is not None:
        return kept
    counted = empty_tally(workflow_id).after(come=unit.select(Task, where(workflow_id=workflow_id)))
    return msgspec.structs.replace(counted, version=1 if counted.total else 0)  # an existing plan is version 1
