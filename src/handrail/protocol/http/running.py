"""Runs an endpoint in this process: one socket, uvicorn with httptools and uvloop, an orderly end on SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Protocol

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from handrail.protocol.http.guard import LOOPBACK_NAMES, Guard

GRACE_S = 3
KEEP_ALIVE_S = 75
"""An agent thinks for longer than a few seconds between two calls on one connection."""
HEAD_BYTES = 512 * 1024
"""Request line and headers together: far above any client's, far below what would hurt."""


def binding_problem(host: str, guard: Guard) -> str | None:
    """Why this address must not be served with these rules; None where it may."""
    if host in LOOPBACK_NAMES or host == "::1":
        return None
    if not guard.token:
        return f"{host} can be reached from other machines: a token is needed"
    if set(guard.hosts) <= set(LOOPBACK_NAMES):
        return f"{host} can be reached from other machines: name the host that clients will use"
    return None


def listening_socket(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises OSError where the address is taken."""
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
    """uvicorn's protocol with a bound on what comes before a request's body, which the parser itself does not have."""

    _head_bytes = 0

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_bytes = -1
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        before = self._head_bytes
        super().data_received(data)
        if before == self._head_bytes and before >= 0:  # still within the head
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self.transport.close()


class Served(Protocol):
    """An application that can leave in good order: an endpoint, or one that wraps it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    def drain(self) -> None:
        """Leave soon: what would stay open without end, ends. Called within a signal's handler."""
        ...

    def is_stuck(self) -> bool:
        """True while something that was begun has not come back."""
        ...

    def close(self) -> None:
        """After the last connection."""
        ...


class _Process(uvicorn.Server):
    """uvicorn, with streams told to end before connections are waited for."""

    def __init__(self, config: uvicorn.Config, served: Served) -> None:
        super().__init__(config)
        self._served = served

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, but an orderly end is an end with 0: the signal is not raised again afterwards."""
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
    """Serves until SIGTERM or SIGINT; the process's exit code."""
    config = uvicorn.Config(
        served,
        http=_BoundedHead,
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    process = _Process(config, served)
    bound.listen(128)
    try:
        with process.capture_signals():  # whoever hears that we are ready may ask us to leave at once
            when_ready()
            process.run(sockets=[bound])
    finally:
        served.close()
    if served.is_stuck():  # a handler that does not come back must not keep the process: Python would wait for it
        sys.stderr.flush()
        os._exit(0)
    return 0
