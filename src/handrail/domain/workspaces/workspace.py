"""A workspace: a working copy in which tasks of a workflow are done apart from others. The record and its states."""

from __future__ import annotations

import msgspec

from handrail.kernel.machine import Machine

WORKSPACE_MACHINE = Machine(
    "workspace",
    {"active": ("merged", "abandoned"), "abandoned": ("active",), "merged": ()},
)


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """One workspace. What git says of it now is asked when it is shown."""

    id: str
    workflow_id: str
    path: str
    branch: str
    base_branch: str | None
    status: str
    merge_commit: str | None
    managed: bool
    """True when Handrail made the worktree; of any other it only keeps the record."""
    base_commit: str | None
    """Where the branch began, where that is known."""
    created_at: int
    updated_at: int

    @property
    def stream(self) -> str:
        return self.workflow_id
