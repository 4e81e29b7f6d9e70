"""A reservation: paths that an agent asks others to leave alone for a while. The record; what overlaps is
`forecast.py`'s."""

from __future__ import annotations

import msgspec


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """Paths or globs of one repository, kept for one agent until they are released, expire, or the agent is lost."""

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
    """One stream a repository: of two agents that ask for the same path at once, one is second."""
    return f"paths:{repository}"
