"""A reservation: paths that an agent asks others to leave alone for a while. Only the record; `forecast.py` finds
overlaps."""

from __future__ import annotations

import msgspec


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
