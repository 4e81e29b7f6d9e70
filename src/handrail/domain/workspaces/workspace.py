"""A workspace: a working copy in which tasks of a workflow are done separately. The record and its states."""

from __future__ import annotations

import msgspec

from handrail.kernel.machine import Machine

WORKSPACE_MACHINE = Machine(
    "workspace",
    {"active": ("merged", "abandoned"), "abandoned": ("active",), "merged": ()},
)


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """One workspace. Git is asked for its current state whenever it is shown."""

    id: str
    workflow_id: str
    path: str
    branch: str
    base_branch: str | None
    status: str
    merge_commit: str | None
    managed: bool
    """True if Handrail made the worktree; for any other it only keeps the record."""
    base_commit: str | None
    """Where the branch began, if known."""
    created_at: int
    updated_at: int

    @property
    def stream(self) -> str:
        return self.workflow_id
