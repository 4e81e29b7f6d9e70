"""Posting: how a message gets into an inbox, and which messages are still to be read. No store.

An inbox is a stream: arrivals are numbered, so their order is the same for everybody. A message is dated later than the
one before it in its inbox, and a reply later than anything in its thread that its author could have read, whichever
machine's clock is ahead. So a thread reads in the order it was written, and asking for what came after a date misses
nothing.

Who a message is for: one recipient by id or name, or everybody who matches. No store.

Any agent that ever registered can be written to; its message waits until it is read. A broadcast goes only to agents
that are present.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.message import NEVER, PRIORITIES, Message
from handrail.domain.crew.presence import SHOWN, find_agent, is_present, status_of
from handrail.domain.work.task import Task
from handrail.kernel.errors import AgentNotFound, InvalidParams
from handrail.kernel.records import Query, UnitOfWork

HUMAN = "human"
"""The inbox of the people in charge: `handrail message`."""
SYSTEM = "handrail"
"""The sender of notices about what happened to an agent while it was away."""
CLAIM_LOST = "claim_lost"


class Letter(NamedTuple):
    """What is sent, without a recipient."""

    message_type: str
    body: Any
    subject: str | None = None
    priority: str = "normal"
    workflow_id: str | None = None
    task_id: str | None = None
    expires_at: int = NEVER
    ack_required: bool = False


def post(
    unit: UnitOfWork,
    sender_id: str,
    recipient_id: str,
    letter: Letter,
    *,
    answers: Message | None = None,
    thread_id: str | None = None,
) -> Message:
    """Records a message. `answers` is the one it replies to, whose thread it joins."""
    last = unit.select(Message, Query((("recipient_id", recipient_id),), ("-sequence",), 1))
    thread = answers.thread_id if answers is not None else thread_id or unit.new_id("thr")
    message = Message(
        id=unit.new_id("msg"),
        thread_id=thread,
        sender_id=sender_id,
        recipient_id=recipient_id,
        status="unread",
        reply_to_id=answers.id if answers is not None else None,
        created_at=_creation_time(unit, last, answers),
        read_at=None,
        sequence=(last[0].sequence if last else 0) + 1,
        urgency=PRIORITIES.index(letter.priority),
        **letter._asdict(),
    )
    unit.record("message.sent", message)
    return message


def _creation_time(unit: UnitOfWork, last: list[Message], answers: Message | None) -> int:
    before = list(last)
    if answers is not None:
        before += unit.select(Message, Query((("thread_id", answers.thread_id),), ("-created_at", "-id"), 1))
    return max(unit.now_ms(), *(message.created_at + 1 for message in before), 0)


def unread(agent_id: str, now_ms: int) -> Query:
    """What an agent has not read yet, or has read but must still acknowledge: most urgent first, then in order of
    arrival."""
    conditions = (("recipient_id", agent_id), ("status", "unread"), ("expires_at >", now_ms))
    return Query(conditions, ("-urgency", "sequence"))


def unread_count(unit: UnitOfWork, agent_id: str) -> int:
    return unit.count(Message, unread(agent_id, unit.now_ms()))


def post_takeover(unit: UnitOfWork, loser_id: str, task: Task, taker: Agent, fence: int) -> None:
    """Leaves a notice for an agent that another one has its task now."""
    _post_loss(unit, loser_id, task, {"now_held_by": taker.id, "name": taker.name, "fence": fence})


def post_released(unit: UnitOfWork, by_id: str, loser_id: str, task: Task, reason: str | None) -> None:
    """Leaves a notice for an agent that somebody else released its task."""
    _post_loss(unit, loser_id, task, {"released_by": by_id, **({"reason": reason} if reason else {})})


def _post_loss(unit: UnitOfWork, loser_id: str, task: Task, how: dict[str, Any]) -> None:
    body = {"event": CLAIM_LOST, "task_id": task.id, "task": task.name, **how, "at": unit.now_ms()}
    subject = f'You lost "{task.name}"'
    letter = Letter("notification", body, subject, "high", workflow_id=task.workflow_id, task_id=task.id)
    post(unit, SYSTEM, loser_id, letter)


def losses(unit: UnitOfWork, agent_id: str) -> list[dict[str, Any]]:
    """Losses that an agent has not read about yet, newest first."""
    told = unit.select(Message, unread(agent_id, unit.now_ms())._replace(order=("-sequence",), limit=200))
    found = [message.body for message in told if message.sender_id == SYSTEM and isinstance(message.body, dict)]
    return [{key: body[key] for key in body if key != "event"} for body in found if body.get("event") == CLAIM_LOST]


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
