"""A dependency: one task waits for another. A separate record, so that each end can look up the other directly.

A subtask also waits for whatever its parent task waits for. Such a dependency is `inherited` and is not among the
subtask's own `depends_on` names.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from handrail.kernel.records import UnitOfWork, found_by


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """`task_id` cannot start before `needs_id` is finished."""

    id: str
    workflow_id: str
    task_id: str
    needs_id: str
    inherited: bool = False

    @property
    def stream(self) -> str:
        return self.workflow_id


def dependency(workflow_id: str, task_id: str, needs_id: str, *, inherited: bool = False) -> Dependency:
    """The dependency between two tasks. Its id depends only on the two, so there is never more than one."""
    return Dependency(
        id=f"{task_id}>{needs_id}", workflow_id=workflow_id, task_id=task_id, needs_id=needs_id, inherited=inherited
    )


def dependencies_of(unit: UnitOfWork, task_ids: Iterable[str]) -> list[Dependency]:
    """What these tasks wait for."""
    return list(found_by(unit, Dependency, "task_id", task_ids))
