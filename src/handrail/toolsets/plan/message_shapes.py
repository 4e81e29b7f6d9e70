"""What the tools of toolset `message` take and return. Types only; plan.md says what each means."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.crew.message import NEVER, Priority
from handrail.kernel.limits import WAIT_MS

YEAR_MS = 366 * 24 * 60 * 60 * 1000
MessageType = Literal["task_assignment", "status_update", "query", "response", "notification"]
Id = Annotated[str, Meta(max_length=200)]
Subject = Annotated[str, Meta(max_length=300)]
Expiry = Annotated[int, Meta(ge=1, le=YEAR_MS)]
Ids = Annotated[list[Id], Meta(min_length=1, max_length=500)]


class SendMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent to whom."""

    sender_id: Id
    recipient_id: Annotated[Id, Meta(description='Id or unique name; "human"')]
    message_type: MessageType
    body: str | dict[str, Any]
    subject: Subject | None = None
    priority: Priority = "normal"
    workflow_id: Id | None = None
    task_id: Id | None = None
    reply_to_id: Id | None = None
    expires_in_ms: Expiry | None = None
    requires_ack: bool = False


class SentMessage(msgspec.Struct, frozen=True):
    """Where it lies."""

    id: str
    thread_id: str


class RecipientFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which of the agents that are there."""

    role: Literal["coordinator", "worker"] | None = None
    status: Literal["online", "busy"] | None = None
    runtime: Id | None = None


class BroadcastMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent to everybody who is there and fits."""

    sender_id: Id
    message_type: Literal["notification", "status_update"]
    body: str | dict[str, Any]
    recipient_filter: RecipientFilter = RecipientFilter()
    subject: Subject | None = None
    priority: Priority = "normal"
    workflow_id: Id | None = None
    expires_in_ms: Expiry | None = None
    requires_ack: bool = False


class SentMessages(msgspec.Struct, frozen=True):
    """One copy each, all of one thread."""

    sent_count: int
    message_ids: tuple[str, ...]
    thread_id: str | UnsetType = UNSET


class ListMessages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which messages of an agent."""

    agent_id: Id
    status: Annotated[Literal["unread", "read", "all"], Meta(description="Default unread")] | UnsetType = UNSET
    message_type: list[MessageType] = []
    priority: list[Priority] = []
    workflow_id: Id | None = None
    thread_id: Annotated[Id, Meta(description="All of a thread, in order, yours too")] | None = None
    limit: Annotated[int, Meta(ge=1, le=500, description="Default 20")] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=100_000)] = 0
    since: Annotated[int, Meta(ge=0, le=NEVER, description="ms")] | None = None
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS, description="Wait for one to arrive, at most 25000")] = 0
    full: Annotated[bool, Meta(description="Long bodies whole")] = False


class MessagePage(msgspec.Struct, frozen=True):
    """Messages, how many fit in all, and how many the agent has not read."""

    messages: tuple[dict[str, Any], ...]
    unread_count: int
    total: int


class GetMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which message, and what looking at it means."""

    id: Id
    mark_read: bool = True
    ack: Annotated[bool, Meta(description="Acknowledge it")] = False


class MarkRead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which messages were read."""

    message_ids: Ids
    ack: Annotated[bool, Meta(description="Acknowledge them; one that requires it stays unread until then")] = False


class ArchiveMessages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which messages are put away."""

    message_ids: Ids


class CountUnread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose messages are counted."""

    agent_id: Id
    priority: list[Priority] = []


class UnreadMessages(msgspec.Struct, frozen=True):
    """How many there are, and of which priority."""

    count: int
    by_priority: dict[str, int]
