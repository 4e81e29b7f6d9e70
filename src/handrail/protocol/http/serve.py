"""Runs an endpoint in this process: one socket, uvicorn with httptools and uvloop, an orderly exit on SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Protocol

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from handrail.protocol.http.connections import WELCOME, HttpConnections, room_for_connections
from handrail.protocol.http.guard import LOOPBACK_NAMES, Guard

GRACE_S = 3
KEEP_ALIVE_S = 75
"""Longer than an agent usually thinks between two calls on one connection."""
HEAD_BYTES = 512 * 1024
"""Request line and headers together: far above any client's, far below what would hurt."""
HEAD_S = 30.0
"""How long they may take to arrive, from when a connection opens or its next request begins."""


def binding_problem(host: str, guard: Guard) -> str | None:
    """Why this address must not be served with these rules; None if it may."""
    if host in LOOPBACK_NAMES or host == "::1":
        return None
    if not guard.token:
        return f"{host} can be reached from other machines: a token is needed"
    if set(guard.hosts) <= set(LOOPBACK_NAMES):
        return f"{host} can be reached from other machines: name the host that clients will use"
    return None


def listening_socket(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 picks a free one. Raises OSError if the address is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host.strip("[]"), port))
    except OSError:
        bound.close()
        raise
    return bound


class _BoundedHead(HttpToolsProtocol):
    """uvicorn's protocol with limits on the number of connections, and on the size and arrival time of a request's
    head, which uvicorn lacks: without them a client that connects and never sends a request would keep its connection
    forever."""

    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, *arguments: Any, among: HttpConnections, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._among = among

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_a_head()
        self._among.open(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._among.close(self)
        self._expect_nothing()
        super().connection_lost(exc)

    def give_way(self) -> None:
        """Ends the connection at once: somebody else needs the place."""
        self.transport.abort()

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()
        self.scope["state"][WELCOME] = lambda: self._among.welcome(self)

    def on_headers_complete(self) -> None:
        self._head_bytes = -1
        self._expect_nothing()
        self._among.ask(self)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        if not self.pipeline:
            self._among.rest(self)
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        before = self._head_bytes
        super().data_received(data)
        if before == self._head_bytes and before >= 0:  # still within the head
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self.transport.close()
            self._among.add_to_head(self, len(data))
        # uvicorn's types do not say so, but before the first request there is no cycle.
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]
            self._expect_a_head()  # nobody is being answered: this is a head, or an unread rest of a body

    def _expect_a_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_S, self.transport.close)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Served(Protocol):
    """An application that can stop in an orderly way: an endpoint, or one that wraps it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    def drain(self) -> None:
        """Stops soon: ends what would stay open indefinitely. Called from a signal handler."""
        ...

    def is_stuck(self) -> bool:
        """True while something that was started has not returned."""
        ...

    def close(self) -> None:
        """Called after the last connection."""
        ...


class _Process(uvicorn.Server):
    """uvicorn, with streams told to end before it waits for connections."""

    def __init__(self, config: uvicorn.Config, served: Served) -> None:
        super().__init__(config)
        self._served = served

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Like uvicorn's, but an orderly end exits with 0: the signal is not raised again afterwards."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._served.drain()
        super().handle_exit(sig, frame)


def serve_http(served: Served, bound: socket.socket, *, when_ready: Callable[[], None] = lambda: None) -> int:
    """Serves until SIGTERM or SIGINT; returns the exit code."""
    config = uvicorn.Config(
        served,
        http=functools.partial(_BoundedHead, among=HttpConnections(room_for_connections())),  # type: ignore[arg-type]
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="error",  # its warnings are lines that any stranger could make, as many as they like
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    process = _Process(config, served)
    bound.listen(128)
    try:
        with process.capture_signals():  # we may be asked to stop as soon as we say that we are ready
            when_ready()
            process.run(sockets=[bound])
    finally:
        served.close()
    if served.is_stuck():  # Python would wait forever for a handler that does not return
        sys.stderr.flush()
        os._exit(0)
    return 0
