"""Keeping workspaces: recording one, giving it tasks, ending it. Works on a unit of work; git is used elsewhere.

The order in which workspaces are merged: first those that others build on. Reads only.

A workspace waits for another if one of its tasks depends, directly or through others, on a task of that one. Two that
would wait for each other have no order, and neither waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import Dependency, Task
from handrail.domain.work.workflow import Workflow
from handrail.domain.workspaces.records import WORKSPACE_MACHINE, Workspace
from handrail.domain.workspaces.worktrees import MadeWorktree
from handrail.kernel.errors import InvalidPlan, WorkspaceNotFound, WorktreeRefused
from handrail.kernel.records import CHUNK, Query, UnitOfWork

SHOWN = 10
BRANCHES = "handrail"
"""The prefix of branches that Handrail names."""
FOLDER = ".handrail/worktrees"
"""The default location of worktrees."""


def find_workspace(unit: UnitOfWork, workspace_id: str) -> Workspace:
    """The workspace, or a refusal that names the newest ones there are."""
    space = unit.get(Workspace, workspace_id)
    if space is None:
        newest = unit.select(Workspace, Query((("status", "active"),), ("-created_at", "-id"), SHOWN))
        known = ", ".join(f"{one.id} ({one.branch})" for one in newest) or "there is none: workspace_create makes one"
        raise WorkspaceNotFound(f"there is no workspace {workspace_id}", hint=f"active: {known}", id=workspace_id)
    return space


def name_for(name: str, key: str) -> str:
    """A short name for a folder and a branch: a few letters of its purpose, and the end of a unique id."""
    letters = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:32].strip("-") or "work"
    return f"{letters}-{key.rpartition('_')[2][-8:]}"


def check_free(unit: UnitOfWork, path: str) -> None:
    """Raises WorktreeRefused if there is already an active workspace at this path."""
    taken = unit.select(Workspace, Query((("path", path), ("status", "active")), limit=1))
    if taken:
        raise WorktreeRefused(
            f"{path} is the workspace {taken[0].id} already, on branch {taken[0].branch}",
            hint="assign a task to it with task_assign_workspace, or choose another path",
            id=taken[0].id,
        )


def record_workspace(
    unit: UnitOfWork, workflow: Workflow, made: MadeWorktree, tasks: Sequence[Task], *, managed: bool
) -> Workspace:
    """Records a workspace and puts its tasks into it."""
    check_free(unit, made.path)
    now = unit.now_ms()
    space = Workspace(
        id=unit.new_id("ws"),
        workflow_id=workflow.id,
        path=made.path,
        branch=made.branch,
        base_branch=made.base_branch,
        status=WORKSPACE_MACHINE.initial,
        merge_commit=None,
        managed=managed,
        base_commit=made.base_commit or None,
        created_at=now,
        updated_at=now,
    )
    edit = PlanEdit(unit, workflow)
    for task in tasks:
        check_same_workflow(task, workflow.id)
        edit.change(task, workspace_id=space.id)
    edit.record("workspace.created", space)
    return space


def put_into(unit: UnitOfWork, workflow: Workflow, task: Task, space: Workspace) -> None:
    """Puts a task into a workspace."""
    check_same_workflow(task, space.workflow_id)
    if space.status != "active":
        raise WorktreeRefused(
            f"workspace {space.id} is {space.status}; no work can be done in it any more",
            hint="workspace_list lists the active ones",
            status=space.status,
        )
    if task.workspace_id != space.id:
        edit = PlanEdit(unit, workflow)
        edit.change(task, workspace_id=space.id)
        edit.record("task.placed", data={"workspace_id": space.id})


def end_workspace(unit: UnitOfWork, space: Workspace, status: str, **values: Any) -> Workspace:
    """Records the workspace in a new state. If it is already in that state, only the other values change."""
    if space.status != status:
        WORKSPACE_MACHINE.check(f"workspace {space.id}", space.status, status)
    changed = msgspec.structs.replace(space, status=status, updated_at=unit.now_ms(), **values)
    unit.record(f"workspace.{status}", changed)
    return changed


def check_same_workflow(task: Task, workflow_id: str) -> None:
    if task.workflow_id != workflow_id:
        raise InvalidPlan(
            f'task "{task.name}" belongs to workflow {task.workflow_id}, the workspace to {workflow_id}',
            hint="make a workspace for its own workflow",
        )


def workspaces_in(unit: UnitOfWork, workflow_id: str, states: Iterable[str] = ("active",)) -> list[Workspace]:
    """The workspaces of a workflow in these states, oldest first."""
    conditions = (("workflow_id", workflow_id), ("status", tuple(states)))
    return unit.select(Workspace, Query(conditions, ("created_at",)))


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
