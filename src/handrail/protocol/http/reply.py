"""One HTTP response on ASGI: the body in, JSON or events out, and whether the client is still there."""

from __future__ import annotations

import asyncio
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
