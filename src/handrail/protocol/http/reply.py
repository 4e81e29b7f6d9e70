"""One HTTP response on ASGI: the body in, JSON or events out, and whether the client is still there.

Carries one reply: takes messages from handler threads, gives server-sent events to the event loop.

A stream keeps what it sent, within limits, so that a handshake client whose connection broke can come back for the
rest. The first message decides the form: a lone reply is plain JSON; with anything before it, all become events.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from handrail.protocol.wire import INVALID_REQUEST, RpcError, encode, error_of

Headers = tuple[tuple[bytes, bytes], ...]

_EVENTS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
TOO_LARGE = 413
TOO_SLOW = 408
WENT_AWAY = 400


class Reply:
    """The two halves of one ASGI exchange."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        self._receive = receive
        self._send = send
        self._watcher: asyncio.Task[None] | None = None
        self.gone = False
        """True once the client has hung up."""

    async def body(self, most_bytes: int, most_s: float) -> bytes | int:
        """The request's body, or the status to refuse it with."""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(most_s):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        return WENT_AWAY
                    part = message.get("body", b"")
                    size += len(part)
                    if size > most_bytes:
                        return TOO_LARGE
                    parts.append(part)
                    if not message.get("more_body"):
                        return parts[0] if len(parts) == 1 else b"".join(parts)
        except TimeoutError:
            return TOO_SLOW

    def watch(self, on_leave: Callable[[], object]) -> None:
        """From now on, notices when the client hangs up. Later calls have no effect."""
        if self._watcher is None:
            self._watcher = asyncio.ensure_future(self._wait_for_leave(on_leave))

    async def _wait_for_leave(self, on_leave: Callable[[], object]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            continue
        self.gone = True
        on_leave()

    async def json(self, status: int, data: bytes, extra: Headers = ()) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode()), *extra]
        await self._send_whole(status, headers, data)

    async def refuse(self, status: int, details: str, extra: Headers = ()) -> None:
        """Answers without serving a message: an error without an id that says what would be right."""
        error = RpcError(INVALID_REQUEST, HTTPStatus(status).phrase, {"details": details})
        await self.json(status, encode(error_of(None, error)), extra)

    async def empty(self, status: int, extra: Headers = ()) -> None:
        await self._send_whole(status, [(b"content-length", b"0"), *extra], b"")

    async def whole(self, status: int, headers: Headers, data: bytes) -> None:
        """A whole answer of any kind; `headers` includes its length."""
        await self._send_whole(status, list(headers), data)

    async def _send_whole(self, status: int, headers: list[tuple[bytes, bytes]], data: bytes) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": data})
        self._unwatch()

    async def start_events(self, extra: Headers = ()) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *extra]})

    async def write(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        if not self.gone:
            await self._send({"type": "http.response.body", "body": b""})
        self._unwatch()

    def abandon(self) -> None:
        """Sends nothing more to a client that no longer reads; the server of the connection closes it."""
        self._unwatch()

    def _unwatch(self) -> None:
        if self._watcher is not None and not self.gone:
            self._watcher.cancel()


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
