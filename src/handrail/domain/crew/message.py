"""A message from one agent (or a person) to another."""

from __future__ import annotations

from typing import Any

import msgspec

MESSAGE_TYPES = ("task_assignment", "status_update", "query", "response", "notification")
PRIORITIES = ("low", "normal", "high", "urgent")


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message, in the stream of its recipient's inbox."""

    id: str
    thread_id: str
    sender_id: str
    recipient_id: str
    message_type: str
    subject: str | None
    body: dict[str, Any]
    priority: str
    status: str
    workflow_id: str | None
    task_id: str | None
    reply_to_id: str | None
    created_at: int
    read_at: int | None

    @property
    def stream(self) -> str:
        return f"inbox:{self.recipient_id}"
