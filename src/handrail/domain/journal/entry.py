"""A journal entry: what a task began with and, once it is done, what it changed. One for each journalled task.

The task itself, its states and its notes are records of `domain/work`; this is what the journal adds to them.
"""

from __future__ import annotations

from typing import Any

import msgspec


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of one task, under the task's id. A task that is begun again continues it from the first snapshot; what
    the entry said before stays in the ledger."""

    id: str
    workflow_id: str
    directory: str
    """Where the work is done: the root of the working copy."""
    areas: list[str]
    plan_step: str | None
    before: dict[str, Any]
    """The snapshot taken when it began."""
    after: dict[str, Any] | None
    report: dict[str, Any] | None
    """What changed since, and what was found out about it."""
    started_at: int
    completed_at: int | None

    @property
    def stream(self) -> str:
        return self.workflow_id
