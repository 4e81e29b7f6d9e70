"""Who a message is for: one recipient by id or name, or everybody who matches. No store, no posting.

Any agent that ever registered can be written to; its message waits until it is read. A broadcast goes only to agents
that are present.
"""

from __future__ import annotations

from typing import NamedTuple

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.outbox import HUMAN
from handrail.domain.crew.presence import SHOWN, find_agent, is_present, status_of
from handrail.kernel.errors import AgentNotFound, InvalidParams
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

AUDIENCE = 500
"""The most recipients of one broadcast: each copy is a write to a separate inbox, all in one transaction."""
_PAGE = 500


class Audience(NamedTuple):
    """Who is meant; an omitted field matches anybody."""

    role: str | None = None
    status: str | None = None
    runtime: str | None = None


def recipient(unit: UnitOfWork, text: str) -> str:
    """The id a message goes to: the human, an agent's id, or an agent's name. A name that several agents share means
    the only one of them that is present."""
    if text == HUMAN or unit.get(Agent, text) is not None:
        return text
    named = unit.select(Agent, Query((("name", text),), ("-created_at", "-id"), _PAGE))
    if not named:
        raise _agent_not_found(unit, text)
    there = [agent for agent in named if is_present(unit, agent.id)] if len(named) > 1 else named
    if len(there) == 1:
        return there[0].id
    listed = ", ".join(agent.id for agent in (there or named)[:SHOWN])
    raise AgentNotFound(f"{len(named)} agents are called {text}", hint=f"say which by its id: {listed}", id=text)


def _agent_not_found(unit: UnitOfWork, text: str) -> AgentNotFound:
    try:
        find_agent(unit, text)
    except AgentNotFound as unknown:
        return AgentNotFound(unknown.message, hint=f"{HUMAN} reaches the person; {unknown.hint}", **unknown.details)
    raise AssertionError(f"{text} was not there a moment ago")


def audience(unit: UnitOfWork, wanted: Audience, sender_id: str) -> list[Agent]:
    """Every matching agent that is present, except the sender, in order of registration."""
    named = (("role", wanted.role), ("runtime", wanted.runtime))
    conditions = tuple((column, value) for column, value in named if value is not None)
    found: list[Agent] = []
    offset = 0
    while page := unit.select(Agent, Query(conditions, ("created_at", "id"), _PAGE, offset)):
        found += [agent for agent in page if agent.id != sender_id and _fits(unit, agent, wanted.status)]
        if len(found) > AUDIENCE:
            raise InvalidParams(
                f"more than {AUDIENCE} agents fit, the most that one broadcast reaches",
                hint="narrow recipient_filter by role, status or runtime",
            )
        offset += len(page)
    return found


def _fits(unit: UnitOfWork, agent: Agent, status: str | None) -> bool:
    standing = status_of(unit, agent)
    return standing != "offline" if status is None else standing == status
