"""Issuing, finding, revoking and listing tokens. No store, no randomness: the secret is passed in.

A token's text is `hr_`, the letters of its id, `_` and the secret: it is looked up by id, and its secret is compared
with what the store keeps of it (`token.py`). The text itself is shown once and never stored.

Credentials in a store that this machine did not make: which there are, and letting them in if a person says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.outbox import HUMAN, SYSTEM
from handrail.domain.crew.presence import find_agent
from handrail.domain.crew.token import RIGHTS, Token, about, about_token, fits, is_vouched, secret_hash, vouched
from handrail.kernel.errors import InvalidParams, NotFound, SeveralOpen
from handrail.kernel.records import Query, UnitOfWork
from handrail.kernel.wording import did_you_mean

DECIDE = "decide"
DEFAULT_RIGHTS = ("read", "write")
NAME = 100
"""The most characters in a name."""
SHOWN = 10
"""How many tokens a refusal names."""
_ID = "tok"
_TEXT = re.compile(r"hr_([0-9a-z]{1,26})_([A-Za-z0-9_-]{1,200})", re.ASCII)
_LIKE_AN_ID = re.compile(r"hr_.*|[a-z]+_[0-9a-z]{26}", re.ASCII | re.DOTALL)


class Issued(NamedTuple):
    """A new token, and its text for whoever will use it."""

    token: Token
    text: str


def issue(unit: UnitOfWork, name: str, rights: Iterable[str], secret: str, *, agent_id: str | None = None) -> Issued:
    """Issues a token. Names are unique among active tokens, so that one can be revoked by name."""
    given = checked_rights(rights)
    _check_name(unit, name)
    if agent_id is not None:
        find_agent(unit, agent_id)
        if DECIDE in given:
            raise InvalidParams(
                "a token of an agent has no right to decide: agents do not approve work",
                hint=f"leave out decide, or leave out the agent; rights: {', '.join(RIGHTS)}",
            )
    token = Token(
        id=unit.new_id(_ID),
        name=name,
        rights=list(given),
        agent_id=agent_id,
        secret_hash=secret_hash(secret),
        created_at=unit.now_ms(),
        revoked_at=None,
    )
    kept = vouched(unit, about_token(token), token.secret_hash)
    token = msgspec.structs.replace(token, secret_hash=kept)
    unit.record("token.created", token)
    return Issued(token, f"hr_{token.id.removeprefix(f'{_ID}_')}_{secret}")


def checked_rights(rights: Iterable[str]) -> tuple[str, ...]:
    """The rights in the order of `RIGHTS`, each once; refuses unknown ones."""
    given = set(rights)
    for right in sorted(given):
        if right not in RIGHTS:
            raise InvalidParams(
                f"there is no right {right or 'without a name'}{did_you_mean(right, RIGHTS)}",
                hint=f"rights: {', '.join(RIGHTS)}",
            )
    if not given:
        raise InvalidParams("a token without a right is good for nothing", hint=f"rights: {', '.join(RIGHTS)}")
    if "write" in given and "read" not in given:
        raise InvalidParams("a token that writes must also read", hint="rights: read,write")
    if DECIDE in given and len(given) > 1:
        raise InvalidParams(
            "a token that may decide does nothing else: it would lie where agents read it",
            hint="two tokens: --rights decide to sign in to the page, --rights read,write for calls",
        )
    return tuple(right for right in RIGHTS if right in given)


def find(unit: UnitOfWork, text: str) -> Token | None:
    """The token with this text, unless it was revoked. None for one that this machine did not make."""
    token = look_up(unit, text)
    return token if token is not None and is_vouched(unit, token) else None


def look_up(unit: UnitOfWork, text: str) -> Token | None:
    """The same, whoever made it. It lets nobody in: its row may have come with a repository."""
    match = _TEXT.fullmatch(text)
    token = unit.get(Token, f"{_ID}_{match[1]}") if match is not None else None
    if match is None or token is None or token.revoked_at is not None:
        return None
    return token if fits(token, match[2]) else None


def is_token(text: str) -> bool:
    """Whether a text has the form of a token, so that it is worth looking up."""
    return _TEXT.fullmatch(text) is not None


def meant(unit: UnitOfWork, text: str) -> Token:
    """The token identified by an id, a name, or its whole text; of several with one name, the active one."""
    match = _TEXT.fullmatch(text)
    token = unit.get(Token, f"{_ID}_{match[1]}" if match is not None else text)
    if token is not None:
        return token
    named = unit.select(Token, Query((("name", text),), ("-created_at", "-id")))
    working = [one for one in named if one.revoked_at is None]
    if len(working) > 1:  # issued at the same moment
        raise SeveralOpen(
            f"{len(working)} tokens that work are called {text}",
            hint=f"name one by its id: {', '.join(one.id for one in working[:SHOWN])}",
        )
    if named:
        return (working or named)[0]
    newest = unit.select(Token, Query((("revoked_at", None),), ("-created_at", "-id"), SHOWN))
    known = ", ".join(f"{one.name} ({one.id})" for one in newest) or "none works"
    shown = "with this text" if match is not None else f"{text}{did_you_mean(text, [one.name for one in newest])}"
    raise NotFound(f"there is no token {shown}", hint=f"newest: {known}; all: handrail token list")


def revoke(unit: UnitOfWork, token: Token) -> Token:
    """Revokes a token. One that was revoked before stays as it is."""
    if token.revoked_at is not None:
        return token
    gone = msgspec.structs.replace(token, revoked_at=unit.now_ms())
    unit.record("token.revoked", gone)
    return gone


def listed(unit: UnitOfWork) -> list[Token]:
    """Every token ever issued, oldest first."""
    return unit.select(Token, Query((), ("created_at",)))


def _check_name(unit: UnitOfWork, name: str) -> None:
    if not name.strip() or name != name.strip() or not name.isprintable() or len(name) > NAME:
        raise InvalidParams(
            f"a token's name is 1 to {NAME} printable characters, without a space at either end",
            hint="name the person or agent that carries it",
        )
    if _LIKE_AN_ID.fullmatch(name) or name in (HUMAN, SYSTEM):
        raise InvalidParams(
            f"{name} would be taken for something else in the ledger", hint="name the person or agent that carries it"
        )
    others = unit.select(Token, Query((("name", name), ("revoked_at", None))))
    if others:
        raise InvalidParams(
            f"{name} has a token that works, {others[0].id}",
            hint="choose another name, or revoke that one first",
        )


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
