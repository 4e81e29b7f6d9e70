"""A workspace: a working copy in which tasks of a workflow are done separately. The record and its states.

A reservation: paths that an agent asks others to leave alone for a while. Only the record; `forecast.py` finds
overlaps.
"""

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


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """Paths or globs in one repository, reserved for one agent until released, expired, or the agent is lost."""

    id: str
    repository: str
    agent_id: str
    task_id: str | None
    paths: list[str]
    reason: str | None
    created_at: int
    expires_at: int
    released_at: int | None

    @property
    def stream(self) -> str:
        return reservations_stream(self.repository)


def reservations_stream(repository: str) -> str:
    """One stream per repository: if two agents ask for the same path at once, one of them comes second."""
    return f"paths:{repository}"
