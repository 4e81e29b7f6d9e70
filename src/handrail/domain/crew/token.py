"""A bearer token of a person or an agent, for calls over HTTP. The token itself is known to its owner alone; a hash is
kept."""

from __future__ import annotations

import msgspec

RIGHTS = ("read", "write", "decide")
"""Look; change what agents change; sign in to the page as a person who answers gates. None includes another."""


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """One token, whoever carries it, and what it is good for."""

    id: str
    name: str
    rights: list[str]
    agent_id: str | None
    """The agent whose calls it proves to be its own, where it was made for one."""
    secret_hash: str
    created_at: int
    revoked_at: int | None

    @property
    def stream(self) -> str:
        return self.id
