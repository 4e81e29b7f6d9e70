"""Where a server may listen, and with which rules; how long it waits for somebody to say what they want."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from handrail.protocol.http.connections import HttpConnections
from handrail.protocol.http.guard import LOOPBACK_NAMES, Guard
from handrail.protocol.http.serve import HEAD_S, _BoundedHead, binding_problem, listening_socket

NAMED = (*LOOPBACK_NAMES, "box.example")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "::1"])
@pytest.mark.parametrize("guard", [Guard(), Guard(token="T"), Guard(hosts=NAMED)])
def test_loopback_needs_nothing(host: str, guard: Guard) -> None:
    assert binding_problem(host, guard) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "192.168.1.5", "box.example", "", "127.0.0.1.evil.example"])
def test_other_machines_need_a_token_and_a_name(host: str) -> None:
    assert "token" in (binding_problem(host, Guard(hosts=NAMED)) or "")
    assert "name the host" in (binding_problem(host, Guard(token="T")) or "")
    assert binding_problem(host, Guard(hosts=NAMED, token="T")) is None


def test_an_empty_token_is_no_token() -> None:
    assert binding_problem("0.0.0.0", Guard(hosts=NAMED, token="")) is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_port_0_takes_a_free_one(host: str) -> None:
    with listening_socket(host, 0) as one, listening_socket(host, 0) as other:
        assert 0 < one.getsockname()[1] != other.getsockname()[1] > 0


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        listening_socket("127.0.0.1", taken.getsockname()[1])


# -- a head that does not come ---------------------------------------------------------------------------------------

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
REFUSED = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"


class Line(asyncio.Transport):
    """A connection whose other end says what a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


async def never(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.Event().wait()


class Waiting:
    """A protocol on a line, and what it waits for: nothing happens by itself, time passes when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, app: Any = hello) -> None:
        loop = asyncio.get_running_loop()
        self.timers: list[tuple[float, Callable[[], None], asyncio.TimerHandle]] = []
        monkeypatch.setattr(loop, "call_later", self._call_later)
        self.line = Line()
        config = uvicorn.Config(app, lifespan="off", ws="none", log_level="critical")
        self.protocol = _BoundedHead(config, ServerState(), {}, loop, among=HttpConnections(10))
        self.protocol.connection_made(self.line)

    def _call_later(self, delay: float, callback: Callable[[], None], *_: Any) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(0.0, callback, (), asyncio.get_running_loop())
        self.timers.append((delay, callback, handle))
        return handle

    async def hears(self, data: bytes) -> None:
        self.protocol.data_received(data)
        for _ in range(5):
            await asyncio.sleep(0)

    def time_passes(self) -> None:
        """As long as a head may take, and less than an idle connection is kept."""
        for delay, callback, handle in self.timers:
            if delay == HEAD_S and not handle.cancelled():
                callback()

    @property
    def expects_a_head(self) -> bool:
        return any(delay == HEAD_S and not handle.cancelled() for delay, _, handle in self.timers)


@pytest.mark.parametrize("said", [(), (b"\r\n",), (b"G",), (REQUEST[:-2],), (b"GET / HTTP/1.1\r\n", b"A: b\r\n")])
def test_whoever_never_says_what_they_want_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, said: tuple[bytes, ...]
) -> None:
    async def scene() -> None:
        waiting = Waiting(monkeypatch)
        for piece in said:
            await waiting.hears(piece)
        assert not waiting.line.closed
        waiting.time_passes()
        assert waiting.line.closed

    asyncio.run(scene())


@pytest.mark.parametrize("more", [b"\r\n", b"G", REQUEST[:-2]])
def test_the_next_request_of_a_connection_has_as_long(monkeypatch: pytest.MonkeyPatch, more: bytes) -> None:
    async def scene() -> None:
        waiting = Waiting(monkeypatch)
        await waiting.hears(REQUEST)
        assert waiting.line.sent.startswith(b"HTTP/1.1 200")
        assert not waiting.expects_a_head, "an idle connection is kept for as long as one may be"
        await waiting.hears(more)
        waiting.time_passes()
        assert waiting.line.closed

    asyncio.run(scene())


def test_a_body_that_nobody_reads_does_not_keep_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        waiting = Waiting(monkeypatch)
        await waiting.hears(REFUSED)
        assert waiting.line.sent.startswith(b"HTTP/1.1 200")
        await waiting.hears(b"x")
        waiting.time_passes()
        assert waiting.line.closed

    asyncio.run(scene())


def test_an_answer_takes_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        waiting = Waiting(monkeypatch, never)
        await waiting.hears(REQUEST[:20])
        await waiting.hears(REQUEST[20:] + REQUEST[:20])
        await waiting.hears(REQUEST[20:25])
        assert not waiting.expects_a_head
        waiting.time_passes()
        assert not waiting.line.closed

    asyncio.run(scene())


def test_a_connection_that_is_gone_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        waiting = Waiting(monkeypatch)
        waiting.protocol.connection_lost(None)
        assert not waiting.expects_a_head

    asyncio.run(scene())
