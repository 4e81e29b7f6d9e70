"""Reading an inbox: who may see it, which messages match, and what reading, acknowledging and archiving do.

A message that asks for acknowledgement counts as unread until it gets one, even if it has been read. An expired message
is no longer delivered or counted, but stays in the inbox. No store, no posting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from handrail.domain.crew.message import Message
from handrail.domain.crew.outbox import HUMAN, unread
from handrail.kernel.errors import MessageNotFound, NotAllowed
from handrail.kernel.records import Query, UnitOfWork

PEOPLES_CHANNELS = ("cli", "page")
"""The channels that people use; no agent uses them in its own name."""


class MailReader(NamedTuple):
    """Who asks for mail."""

    agent_id: str | None
    """The agent, if known."""
    person: bool
    """True for a person on a channel for people, who does not speak for an agent."""
    strict: bool
    """True if only an inbox's proven owner may look into it."""

    def owns(self, inbox_id: str) -> bool:
        """Whether the inbox is the caller's. An unknown caller is believed unless identity is strict, but never for the
        human's inbox."""
        if inbox_id == HUMAN:
            return self.person
        if self.agent_id is not None:
            return self.agent_id == inbox_id
        return not self.strict

    def sees(self, message: Message) -> bool:
        """Whether the caller may see a message. A person may see all of them."""
        if self.person:
            return True
        if self.agent_id is not None:
            return self.agent_id in (message.sender_id, message.recipient_id)
        return not self.strict


def caller_of(unit: UnitOfWork, agent_id: str | None, *, strict: bool) -> MailReader:
    return MailReader(agent_id, agent_id is None and unit.actor.channel in PEOPLES_CHANNELS, strict)


def check_sender(caller: MailReader, sender_id: str) -> None:
    """Raises NotAllowed if anyone but the person would write as the human."""
    if sender_id == HUMAN and not caller.person:
        raise NotAllowed(
            "only a person writes as the human, with `handrail message send`",
            hint="send it as yourself: sender_id is the id that agent_register gave you",
        )


def check_inbox(caller: MailReader, inbox_id: str) -> None:
    """Raises NotAllowed if the caller may not look into an inbox: the human's, where identity is strict."""
    if inbox_id == HUMAN and caller.strict and not caller.person:
        raise NotAllowed(
            "only the human reads the human's inbox here",
            hint="message_list shows your own inbox; message_send writes to the human",
        )


def find_message(unit: UnitOfWork, caller: MailReader, message_id: str) -> Message:
    """The message, if it exists and the caller may see it; else a refusal."""
    message = unit.get(Message, message_id)
    if message is None:
        raise MessageNotFound(
            f"there is no message {message_id}", hint="message_list lists messages with their ids", id=message_id
        )
    if not caller.sees(message):
        raise NotAllowed(
            f"{message.id} is between {message.sender_id} and {message.recipient_id}",
            hint=_who_you_are(caller),
            id=message.id,
        )
    return message


def find_own(unit: UnitOfWork, caller: MailReader, message_ids: Iterable[str]) -> list[Message]:
    """Messages in the caller's own inbox. If one belongs to somebody else, all are refused."""
    found = [find_message(unit, caller, message_id) for message_id in dict.fromkeys(message_ids)]
    for message in found:
        if not caller.owns(message.recipient_id):
            raise NotAllowed(
                f"{message.id} is in the inbox of {message.recipient_id}, who alone marks or archives it",
                hint=_who_you_are(caller),
                id=message.id,
                recipient_id=message.recipient_id,
            )
    return found


def _who_you_are(caller: MailReader) -> str:
    if caller.agent_id is not None:
        return f"you call as {caller.agent_id}; message_list shows your own"
    return "say who you are: agent_id and agent_secret, as agent_register gave them"


# -- what fits --------------------------------------------------------------------------------------------------------


class MailQuery(NamedTuple):
    """Which of an agent's messages are wanted. For a thread, that includes what the agent itself wrote in it."""

    agent_id: str
    status: str | None = "unread"
    """unread, read or all; None means everything that is not archived, which is how a thread is read."""
    message_types: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    workflow_id: str | None = None
    thread_id: str | None = None
    since: int | None = None


def found(unit: UnitOfWork, sought: MailQuery, limit: int, offset: int) -> tuple[list[Message], int]:
    """One page of matching messages, and the total. A thread is in the order it was written, unread messages are by
    urgency and then arrival, everything else is newest first."""
    queries = _queries(sought, unit.now_ms())
    total = sum(unit.count(Message, query) for query in queries)
    if len(queries) == 1:
        return unit.select(Message, queries[0]._replace(limit=limit, offset=offset)), total
    page = [message for query in queries for message in unit.select(Message, query._replace(limit=offset + limit))]
    page.sort(key=lambda message: (message.created_at, message.id))
    return page[offset : offset + limit], total


def _queries(sought: MailQuery, now_ms: int) -> list[Query]:
    """The request as queries that find disjoint sets of messages."""
    me, status, thread = sought.agent_id, sought.status, sought.thread_id
    narrowed = _conditions(sought)
    if status == "unread":
        incoming = unread(me, now_ms)
        incoming = incoming._replace(where=(*incoming.where, *narrowed))
    else:
        states = {"read": (("status", "read"),), None: (("status", ("unread", "read")),)}.get(status, ())
        incoming = Query((("recipient_id", me), *states, *narrowed), ("-sequence",))
    if thread is None:
        return [incoming]
    in_order = incoming._replace(order=("created_at",))
    if status in ("unread", "read"):
        return [in_order]
    mine = (("sender_id", me), *narrowed)
    others = ((("recipient_id <", me), *mine), (("recipient_id >", me), *mine))
    return [in_order, *(Query(conditions, ("created_at",)) for conditions in others)]


def _conditions(sought: MailQuery) -> tuple[tuple[str, Any], ...]:
    conditions: list[tuple[str, Any]] = []
    if sought.thread_id is not None:
        conditions.append(("thread_id", sought.thread_id))
    if sought.message_types:
        conditions.append(("message_type", sought.message_types))
    if sought.priorities:
        conditions.append(("priority", sought.priorities))
    if sought.workflow_id is not None:
        conditions.append(("workflow_id", sought.workflow_id))
    if sought.since is not None:
        conditions.append(("created_at >", sought.since))
    return tuple(conditions)


def unread_by_priority(unit: UnitOfWork, agent_id: str) -> dict[str, int]:
    counted = unit.count_by(Message, unread(agent_id, unit.now_ms()), ("priority",))
    return {priority: count for (priority,), count in counted.items()}


# -- what reading does ------------------------------------------------------------------------------------------------


def mark_read(unit: UnitOfWork, messages: Iterable[Message], *, ack: bool) -> list[Message]:
    """Marks messages as read and, with `ack`, as acknowledged."""
    now = unit.now_ms()
    return _change_each(
        unit, "message.acknowledged" if ack else "message.read", messages, lambda one: _as_read(one, now, ack)
    )


def archive(unit: UnitOfWork, messages: Iterable[Message]) -> list[Message]:
    """Archives messages. That does not acknowledge them: the sender sees that nobody did."""
    return _change_each(unit, "message.archived", messages, lambda one: msgspec.structs.replace(one, status="archived"))


def _as_read(message: Message, now_ms: int, ack: bool) -> Message:
    acked = message.acked_at if message.acked_at is not None or not ack else now_ms
    done = message.status == "unread" and (not message.ack_required or acked is not None)
    return msgspec.structs.replace(
        message,
        status="read" if done else message.status,
        read_at=message.read_at if message.read_at is not None else now_ms,
        acked_at=acked,
    )


def _change_each(unit: UnitOfWork, kind: str, messages: Iterable[Message], change: Any) -> list[Message]:
    """Applies a change to each message, with one event per inbox. Messages that would stay the same cause no event."""
    after = [(message, change(message)) for message in messages]
    by_inbox: dict[str, list[Message]] = {}
    for old, new in after:
        if new != old:
            by_inbox.setdefault(new.stream, []).append(new)
    for puts in by_inbox.values():
        unit.record(kind, *puts)
    return [new for _, new in after]
