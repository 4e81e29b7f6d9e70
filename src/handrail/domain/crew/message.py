"""A message from one agent (or a person) to another. How it is addressed and sent is in `outbox.py` and
`outbox.py`."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

Priority = Literal["low", "normal", "high", "urgent"]
PRIORITIES: tuple[str, ...] = get_args(Priority)
"""From least to most urgent: the index in this order is a message's `urgency`."""
NEVER = 2**53 - 1
"""The expiry of a message that never expires: the largest integer that every JSON reader represents exactly."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message, in the stream of its recipient's inbox."""

    id: str
    thread_id: str
    sender_id: str
    recipient_id: str
    message_type: str
    subject: str | None
    body: Any
    """A text or an object, as it was sent."""
    priority: str
    status: str
    workflow_id: str | None
    task_id: str | None
    reply_to_id: str | None
    created_at: int
    read_at: int | None
    sequence: int = 0
    """Its number in the inbox: messages are numbered as they arrive."""
    urgency: int = 1
    expires_at: int = NEVER
    """From this time on it is no longer delivered."""
    ack_required: bool = False
    acked_at: int | None = None

    @property
    def stream(self) -> str:
        return inbox_stream(self.recipient_id)


def inbox_stream(agent_id: str) -> str:
    return f"inbox:{agent_id}"
