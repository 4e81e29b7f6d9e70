"""Keeping workspaces: recording one, giving it tasks, ending it. Works on a unit of work; git is used elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.domain.workspaces.workspace import WORKSPACE_MACHINE, Workspace
from handrail.domain.workspaces.worktrees import MadeWorktree
from handrail.kernel.errors import InvalidPlan, WorkspaceNotFound, WorktreeRefused
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

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
