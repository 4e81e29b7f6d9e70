"""A bearer token of a person or an agent, for calls over HTTP. Only its owner knows the token itself; the store keeps
what proves it.

What is kept of a secret, and whether that lets anybody in. No randomness and no key: the unit vouches for this machine.

Kept are a hash of the secret and, after a colon, this machine's word for it and for everything that it permits. A hash
without that word may have come with a repository, a backup or another machine, and proves nothing. In a store on a
server, which its users named and which several machines share, no word is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.kernel.late import late_module
from handrail.kernel.records import UnitOfWork

if TYPE_CHECKING:
    import hashlib
    import hmac
else:
    hashlib = late_module("hashlib")
    hmac = late_module("hmac")

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


def secret_hash(secret: str) -> str:
    """The hash of a secret. Secrets are long and random, so a plain hash is safe."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def about_agent(agent_id: str) -> str:
    return f"agent\0{agent_id}"


def about_token(token: Token) -> str:
    """Everything that a token permits: with any of it changed, the word no longer holds."""
    return "\0".join(("token", token.id, token.name, ",".join(token.rights), token.agent_id or ""))


def about(credential: Agent | Token) -> str:
    return about_token(credential) if isinstance(credential, Token) else about_agent(credential.id)


def vouched(unit: UnitOfWork, what: str, hashed: str) -> str:
    """What to keep of a hash so that it lets its owner in on this machine."""
    word = unit.vouch(f"{what}\0{hashed}")
    return f"{hashed}:{word}" if word else hashed


def is_vouched(unit: UnitOfWork, credential: Agent | Token) -> bool:
    """Whether this machine made the credential, or its user trusted it."""
    hashed, _, word = credential.secret_hash.partition(":")
    return unit.is_vouched(f"{about(credential)}\0{hashed}", word)


def fits(credential: Agent | Token, secret: str) -> bool:
    """Whether this is the credential's secret, whoever made it. Lets nobody in by itself."""
    return hmac.compare_digest(secret_hash(secret), credential.secret_hash.partition(":")[0])


def knows_secret(unit: UnitOfWork, agent: Agent, secret: str | None) -> bool:
    """Whether a caller is this agent."""
    return secret is not None and fits(agent, secret) and is_vouched(unit, agent)
