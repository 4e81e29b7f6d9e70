"""A dependency: one task waits for another. Kept as a record of its own, so that both ends find the other at once.

A subtask also waits for what the task it is part of waits for: such a dependency is `inherited`, and is not among the
names its plan gave it.
"""

from __future__ import annotations

import msgspec


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """`task_id` cannot begin before `needs_id` is finished."""

    id: str
    workflow_id: str
    task_id: str
    needs_id: str
    inherited: bool = False

    @property
    def stream(self) -> str:
        return self.workflow_id


def dependency(workflow_id: str, task_id: str, needs_id: str, *, inherited: bool = False) -> Dependency:
    """The dependency between two tasks; between the same two it is always the same one."""
    return Dependency(
        id=f"{task_id}>{needs_id}", workflow_id=workflow_id, task_id=task_id, needs_id=needs_id, inherited=inherited
    )
