"""Recognises which tasks of a document already exist here. Pure.

The source's own id decides, but only within one source: `T001` of another file is a different task. Otherwise a task is
recognised by its name. Every doubtful match is reported, so that nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Sequence

from handrail.domain.exchange.foreign_tasks import NAME_MAX, several
from handrail.domain.exchange.plan_document import PlannedTask, TaskOrigin, origin_in
from handrail.domain.work.task import Task

_ID_SHOWN = 80


class KnownTasks:
    """The tasks of a workflow, searchable for those a document means."""

    def __init__(self, stored: Sequence[Task], *, same_source: bool) -> None:
        """`same_source` is true if the workflow was made from the source of the document: then the name alone says
        enough."""
        self._same_source = same_source
        self._by_name = {task.name: task for task in stored}
        self._origins = {task.name: origin_in(task.context) for task in stored}
        self._by_key: dict[tuple[str, str, str], Task] = {}
        self._by_id: dict[tuple[str, str], Task] = {}
        for task in stored:
            origin = self._origins[task.name]
            if origin is not None and origin.key is not None:
                self._by_key[origin.key] = task
            elif origin is not None and origin.id:
                self._by_id[origin.system, origin.id] = task
        self._called_otherwise: list[str] = []
        self._from_elsewhere: list[str] = []
        self._by_name_alone: list[str] = []

    def has(self, name: str) -> bool:
        return name in self._by_name

    def find(self, task: PlannedTask) -> Task | None:
        """The existing task that is meant; None if it is new."""
        origin = task.origin
        if origin is None or not origin.id:
            found = self._by_name.get(task.name)
            if found is not None and not self._same_source:
                self._by_name_alone.append(task.name)
            return found
        same = self._by_key.get(origin.key) if origin.key is not None else None
        if same is not None:
            if not _is_called(same.name, task.name, origin.id):
                self._called_otherwise.append(f"{task.name} ({same.name} here)")
            return same
        unsaid = self._by_id.get((origin.system, origin.id))
        if unsaid is not None and _is_called(unsaid.name, task.name, origin.id):
            return unsaid
        return self._namesake(task, origin)

    def _namesake(self, task: PlannedTask, origin: TaskOrigin) -> Task | None:
        same = self._by_name.get(task.name)
        other = self._origins.get(task.name)
        if same is None:
            return None
        if other is None or not other.id:
            self._by_name_alone.append(f"{task.name} ({origin.id})")
            return same
        if (other.system, _own_id(other)) != (origin.system, _own_id(origin)):
            return None
        if other.source != origin.source and other.source and origin.source:
            self._from_elsewhere.append(task.name)
        return same

    def remarks(self) -> list[str]:
        found = []
        if self._called_otherwise:
            found.append(f"recognised by id, under another name here: {several(self._called_otherwise)}")
        if self._from_elsewhere:
            found.append(f"matched to tasks here that come from another source: {several(self._from_elsewhere)}")
        if self._by_name_alone:
            found.append(
                "taken for the tasks of that name that are here, so what the file says about them was left out: "
                + several(self._by_name_alone)
            )
        return found


def another_name(name: str, source_id: str, taken: set[str]) -> str:
    """A new name for a task whose own name is taken."""
    number = 1
    while True:
        behind = f" ({source_id[:_ID_SHOWN]})" if number == 1 else f" ({source_id[:_ID_SHOWN]}, {number})"
        found = name[: NAME_MAX - len(behind)].rstrip() + behind
        if found not in taken:
            return found
        number += 1


def _is_called(stored: str, name: str, source_id: str) -> bool:
    """Whether a stored name is this name, or what it became when it was laid."""
    begin, behind, _ = stored.rpartition(f" ({source_id[:_ID_SHOWN]}")
    is_cut = len(stored) >= NAME_MAX - 1
    return name in (stored, begin) or bool(behind and is_cut and name.startswith(begin))


def _own_id(origin: TaskOrigin) -> str:
    return origin.id.removeprefix(origin.source)
