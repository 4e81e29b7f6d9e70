"""What the tools of `workspace.py` take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

PathText = Annotated[str, Meta(min_length=1, max_length=4096)]
BranchText = Annotated[str, Meta(min_length=1, max_length=200)]


class CreateWorkspace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where, on which branch, for which tasks."""

    workflow_id: str
    path: PathText | None = None
    branch: BranchText | None = None
    base_branch: BranchText | None = None
    task_ids: Annotated[list[str], Meta(max_length=200)] = []
    create: Annotated[bool, Meta(description="Create the worktree; path and branch are then optional")] = False


class CreatedWorkspace(msgspec.Struct, frozen=True, omit_defaults=True):
    """The workspace as it is recorded."""

    id: str
    path: str
    branch: str
    base_branch: str | None = None
    base_commit: str | None = None


class UpdateWorkspace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of a workspace."""

    id: str
    status: Literal["active", "merged", "abandoned"] | None = None
    merge_commit: Annotated[str, Meta(max_length=64)] | None = None
    merge: Annotated[bool, Meta(description="With merged: merge the branch, after the project's checks")] = False
    remove: Annotated[bool, Meta(description="Delete the folder; uncommitted changes are kept on the branch")] = False


class UpdatedWorkspace(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was done."""

    success: bool
    status: str
    merge_commit: str | None = None
    checks: tuple[dict[str, Any], ...] = ()
    removal: dict[str, Any] | None = None


class ListWorkspaces(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which workflow."""

    workflow_id: str
    status: list[Literal["active", "merged", "abandoned"]] | UnsetType = UNSET
    look: Annotated[bool, Meta(description="Ask git for state and conflicts")] = True


class WorkspacesFound(msgspec.Struct, frozen=True, omit_defaults=True):
    """The workspaces, and which of them would not merge."""

    workspaces: tuple[dict[str, Any], ...]
    conflicts: tuple[dict[str, Any], ...] = ()
    conflicts_total: int | None = None
    """Where not all of them are shown."""
    merge_order: tuple[str, ...] = ()
    """The active ones, by id, as they should be merged."""
    problem: str | None = None


class AssignWorkspace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which task is done where."""

    task_id: str
    workspace_id: str
