"""A bearer token of a person or an agent, for calls over HTTP. Only its owner knows the token itself; the store keeps
what proves it (`verifiers.py`)."""

from __future__ import annotations

import msgspec

RIGHTS = ("read", "write", "decide")
"""Read; change what agents may change; sign in to the page as a person who answers gates. None includes another."""


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """One token, and what it permits."""

    id: str
    name: str
    rights: list[str]
    agent_id: str | None
    """The agent whose identity it proves, if it was issued for one."""
    secret_hash: str
    created_at: int
    revoked_at: int | None

    @property
    def stream(self) -> str:
        return self.id
