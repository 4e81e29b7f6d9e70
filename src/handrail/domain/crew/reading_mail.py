"""Reading an inbox: who may look into it, which messages fit, and what reading, acknowledging and archiving do.

A message that asks to be acknowledged counts as unread until it is, whoever has looked at it. One that has expired is
no longer delivered and no longer counted; it stays where it is. No store, no posting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from handrail.domain.crew.message import Message
from handrail.domain.crew.posting import HUMAN, unread
from handrail.kernel.errors import MessageNotFound, NotAllowed
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

PEOPLES_CHANNELS = ("cli", "page")
"""The doors through which a person comes; no agent comes through them in its own name."""


class Caller(NamedTuple):
    """Who asks for mail."""

    agent_id: str | None
    """The agent, where one is known."""
    person: bool
    """True for a person at a door of their own, who speaks for no agent."""
    strict: bool
    """True where nobody may look into an inbox without having proved to be its owner."""

    def owns(self, inbox_id: str) -> bool:
        """Whether the inbox is the caller's. A caller nobody knows is believed, unless identity is strict; never for
        the person's own inbox."""
        if inbox_id == HUMAN:
            return self.person
        if self.agent_id is not None:
            return self.agent_id == inbox_id
        return not self.strict

    def sees(self, message: Message) -> bool:
        """Whether the caller may look at a message. A person may look at all of them."""
        if self.person:
            return True
        if self.agent_id is not None:
            return self.agent_id in (message.sender_id, message.recipient_id)
        return not self.strict


def caller_of(unit: UnitOfWork, agent_id: str | None, *, strict: bool) -> Caller:
    return Caller(agent_id, agent_id is None and unit.actor.channel in PEOPLES_CHANNELS, strict)


def check_sender(caller: Caller, sender_id: str) -> None:
    """Raises NotAllowed where somebody else would speak for the person."""
    if sender_id == HUMAN and not caller.person:
        raise NotAllowed(
            "only a person writes as the human, with `handrail message send`",
            hint="send it as yourself: sender_id is the id that agent_register gave you",
        )


def check_inbox(caller: Caller, inbox_id: str) -> None:
    """Raises NotAllowed where an inbox is not the caller's to look into: the person's own, where identity is strict."""
    if inbox_id == HUMAN and caller.strict and not caller.person:
        raise NotAllowed(
            "the human's inbox is read by the human alone here", hint="message_list shows your own; message_send writes"
        )


def find_message(unit: UnitOfWork, caller: Caller, message_id: str) -> Message:
    """The message, where it is there and the caller may see it."""
    message = unit.get(Message, message_id)
    if message is None:
        raise MessageNotFound(
            f"there is no message {message_id}", hint="message_list shows messages by id", id=message_id
        )
    if not caller.sees(message):
        raise NotAllowed(
            f"{message.id} is between {message.sender_id} and {message.recipient_id}",
            hint=_who_you_are(caller),
            id=message.id,
        )
    return message


def find_own(unit: UnitOfWork, caller: Caller, message_ids: Iterable[str]) -> list[Message]:
    """Messages of the caller's own inbox. One that is another's refuses all of them."""
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


def _who_you_are(caller: Caller) -> str:
    if caller.agent_id is not None:
        return f"you call as {caller.agent_id}; message_list shows your own"
    return "say who you are: agent_id and agent_secret, as agent_register gave them"


# -- what fits --------------------------------------------------------------------------------------------------------


class Sought(NamedTuple):
    """Which messages of an agent. With a thread, what the agent wrote in it belongs to it too."""

    agent_id: str
    status: str | None = "unread"
    """unread, read or all; None means whatever is not archived, which is how a thread is read."""
    message_types: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    workflow_id: str | None = None
    thread_id: str | None = None
    since: int | None = None


def found(unit: UnitOfWork, sought: Sought, limit: int, offset: int) -> tuple[list[Message], int]:
    """One page of what fits, and how much fits in all. A thread comes in the order of writing, unread messages by
    urgency and then as they came, everything else newest first."""
    queries = _queries(sought, unit.now_ms())
    total = sum(unit.count(Message, query) for query in queries)
    if len(queries) == 1:
        return unit.select(Message, queries[0]._replace(limit=limit, offset=offset)), total
    page = [message for query in queries for message in unit.select(Message, query._replace(limit=offset + limit))]
    page.sort(key=lambda message: (message.created_at, message.id))
    return page[offset : offset + limit], total


def _queries(sought: Sought, now_ms: int) -> list[Query]:
    """What is asked for, as queries no two of which find the same message."""
    me, status, thread = sought.agent_id, sought.status, sought.thread_id
    narrowed = _narrowed(sought)
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


def _narrowed(sought: Sought) -> tuple[tuple[str, Any], ...]:
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
    """The messages, read from now on, and acknowledged where that is said."""
    now = unit.now_ms()
    return _changed(unit, "message.acknowledged" if ack else "message.read", messages, lambda one: _read(one, now, ack))


def archive(unit: UnitOfWork, messages: Iterable[Message]) -> list[Message]:
    """The messages, put away. That is no acknowledgement: the sender sees that there was none."""
    return _changed(unit, "message.archived", messages, lambda one: msgspec.structs.replace(one, status="archived"))


def _read(message: Message, now_ms: int, ack: bool) -> Message:
    acked = message.acked_at if message.acked_at is not None or not ack else now_ms
    done = message.status == "unread" and (not message.ack_required or acked is not None)
    return msgspec.structs.replace(
        message,
        status="read" if done else message.status,
        read_at=message.read_at if message.read_at is not None else now_ms,
        acked_at=acked,
    )


def _changed(unit: UnitOfWork, kind: str, messages: Iterable[Message], change: Any) -> list[Message]:
    """Each as it is now, one event an inbox; what is so already leaves no trace."""
    after = [(message, change(message)) for message in messages]
    by_inbox: dict[str, list[Message]] = {}
    for old, new in after:
        if new != old:
            by_inbox.setdefault(new.stream, []).append(new)
    for puts in by_inbox.values():
        unit.record(kind, *puts)
    return [new for _, new in after]
