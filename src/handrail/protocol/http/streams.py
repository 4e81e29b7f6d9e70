"""Carries one reply: takes messages from handler threads, gives server-sent events to the event loop.

A stream keeps what it sent, within limits, so that a handshake client whose connection broke can come back for the
rest. The first message decides the form: a lone reply is plain JSON; with anything before it, all become events.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any

from handrail.protocol.wire import encode

KEPT_BYTES = 1024 * 1024
"""How much a stream keeps for readers that are behind; beyond it the oldest messages are dropped."""


class Stream:
    """The messages of one request, or of a session's standing channel, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str = "") -> None:
        self.name = name
        self.wake = asyncio.Event()
        self.status = 200
        self.reply: bytes | None = None
        """The final reply, once there is one."""
        self.finished = False
        self.held = False
        """True for a stream that stays open without a handler, for a listening client."""
        self.farewell: bytes | None = None
        """The reply of a held stream, sent when the server ends it."""
        self.readers = 0
        """How many readers have started so far; only the latest is active."""
        self.delivered = 0
        """The last event sent to a reader."""
        self.kicked = False
        """True when the reader should leave and resume."""
        self._loop = loop
        self._events: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._count = 0
        self._lock = threading.Lock()

    @property
    def emitted(self) -> bool:
        return self._count > 0

    def emit(self, message: dict[str, Any]) -> None:
        """Adds a message. From any thread."""
        self._add(encode(message))
        self._wake_soon()

    def hold(self, farewell: bytes) -> None:
        """Keeps the stream open after its handler has returned. From any thread."""
        self.farewell, self.held = farewell, True
        self._wake_soon()

    def finish(self, reply: bytes | None, status: int = 200) -> None:
        """Ends the stream, with its reply if there is one. From any thread."""
        self.reply, self.status, self.finished = reply, status, True
        self._wake_soon()

    def kick(self) -> None:
        """Sends the reader away; the stream continues and can be resumed. From any thread."""
        self.kicked = True
        self._wake_soon()

    def seal_reply(self) -> None:
        """Makes the reply the last event, for readers of events."""
        with self._lock:
            reply, self.reply = self.reply, None
        if reply is not None:
            self._add(reply)

    def after(self, number: int) -> list[tuple[int, bytes]]:
        """The events after `number` that are still kept."""
        with self._lock:
            return [event for event in self._events if event[0] > number]

    def _add(self, data: bytes) -> None:
        with self._lock:
            self._count += 1
            self._events.append((self._count, data))
            self._kept_bytes += len(data)
            while self._kept_bytes > KEPT_BYTES and len(self._events) > 1:
                self._kept_bytes -= len(self._events.popleft()[1])

    def _wake_soon(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self.wake.set)
        except RuntimeError:
            return  # the loop is gone, and every possible reader with it


def event_of(stream: Stream, number: int, data: bytes, *, resumable: bool) -> bytes:
    """One server-sent event. Its id names the stream and the position in it, so that a reader can resume."""
    identity = f"id: {stream.name}-{number}\n".encode() if resumable else b""
    return identity + b"event: message\ndata: " + data + b"\n\n"


def priming_event(stream: Stream, retry_ms: int) -> bytes:
    """An empty first event that tells the client where to resume and how soon."""
    return f"id: {stream.name}-0\nretry: {retry_ms}\ndata: \n\n".encode()


def position_of(event_id: str) -> tuple[str, int] | None:
    """The stream and position that a Last-Event-ID names; None if it is not one of ours."""
    name, dash, number = event_id.rpartition("-")
    return (name, int(number)) if dash and number.isascii() and number.isdigit() and len(number) < 12 else None
