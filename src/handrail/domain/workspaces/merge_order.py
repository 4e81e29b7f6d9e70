"""The order in which workspaces are merged: first those that others build on. Reads only.

A workspace waits for another if one of its tasks depends, directly or through others, on a task of that one. Two
that would wait for each other have no order, and neither waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from handrail.domain.work.dependency import Dependency
from handrail.domain.work.task import Task
from handrail.domain.workspaces.workspace import Workspace
from handrail.kernel.query import CHUNK, Query
from handrail.kernel.records import UnitOfWork

TASKS = 1000
"""How many tasks of one workspace are examined."""


def tasks_of(unit: UnitOfWork, workspace_id: str) -> list[Task]:
    return unit.select(Task, Query((("workspace_id", workspace_id),), ("sequence",), TASKS))


def waits_for(unit: UnitOfWork, workspaces: Iterable[Workspace]) -> dict[str, tuple[str, ...]]:
    """For each of these workspaces, by id, which of the others must be merged first."""
    done_in = {task.id: space.id for space in workspaces for task in tasks_of(unit, space.id)}
    reached = {space_id: _needed(unit, done_in, space_id) for space_id in dict.fromkeys(done_in.values())}
    return {
        space_id: tuple(sorted(other for other in needed if space_id not in reached.get(other, ())))
        for space_id, needed in reached.items()
    }


def in_order(workspaces: Iterable[Workspace], before: Mapping[str, tuple[str, ...]]) -> list[Workspace]:
    """The workspaces in an order in which they can be merged; where there is no order, in the order they were made."""
    left = sorted(workspaces, key=lambda space: (space.created_at, space.id))
    placed: list[Workspace] = []
    while left:
        waiting = {space.id for space in left}
        free = next((space for space in left if waiting.isdisjoint(before.get(space.id, ()))), left[0])
        left.remove(free)
        placed.append(free)
    return placed


def _needed(unit: UnitOfWork, done_in: Mapping[str, str], space_id: str) -> set[str]:
    """The other workspaces whose tasks one workspace's tasks depend on."""
    found: set[str] = set()
    seen = {task_id for task_id, where in done_in.items() if where == space_id}
    pending = list(seen)
    while pending:
        asked, pending = tuple(pending[:CHUNK]), pending[CHUNK:]
        for link in unit.select(Dependency, Query((("task_id", asked),))):
            if link.needs_id not in seen:
                seen.add(link.needs_id)
                pending.append(link.needs_id)
                if link.needs_id in done_in:
                    found.add(done_in[link.needs_id])
    return found - {space_id}
