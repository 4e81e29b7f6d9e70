"""Credentials in a store that this machine did not make: which there are, and letting them in if a person says so."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.token import Token
from handrail.domain.crew.verifiers import about, is_vouched, vouched
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork


class Strangers(NamedTuple):
    """Credentials that let nobody in here."""

    tokens: list[Token]
    """Those that were not revoked."""
    agents: list[Agent]


def strangers(unit: UnitOfWork) -> Strangers:
    tokens = unit.select(Token, Query((("revoked_at", None),), ("created_at",)))
    agents = unit.select(Agent, Query((), ("created_at",)))
    return Strangers(
        [token for token in tokens if not is_vouched(unit, token)],
        [agent for agent in agents if not is_vouched(unit, agent)],
    )


def let_in(unit: UnitOfWork) -> Strangers:
    """From now on the secrets of all of them prove what they proved where they were made."""
    found = strangers(unit)
    for token in found.tokens:
        unit.record("token.trusted", msgspec.structs.replace(token, secret_hash=_renewed(unit, token)))
    for agent in found.agents:
        unit.record("agent.trusted", msgspec.structs.replace(agent, secret_hash=_renewed(unit, agent)))
    return found


def _renewed(unit: UnitOfWork, credential: Agent | Token) -> str:
    return vouched(unit, about(credential), credential.secret_hash.partition(":")[0])
