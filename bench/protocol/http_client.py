"""A raw HTTP/1.1 client: keep-alive connections on one epoll, requests encoded before the clock runs. The same for all.

Knows the two shapes a reply may have, of a stated length or in chunks, and nothing else of HTTP.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bench.protocol.contestants import Contestant
from bench.protocol.conversation import (
    CLIENT,
    HANDSHAKE,
    INITIALIZE,
    INITIALIZED,
    STATELESS,
    NotEqual,
    head_of,
    notification,
    request,
)
from bench.protocol.processes import DEADLINE_MS
from bench.started import Stuck

_META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}


class HttpReply(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    head: bytes
    body: bytes


class Client:
    """One client: one connection and, in the handshake era, one session of its own."""

    def __init__(self, url: str, contestant: Contestant) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._stateless = contestant.revision == STATELESS
        fixed = {
            "Host": parts.netloc,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            **contestant.headers,
        }
        self._start = f"POST {parts.path} HTTP/1.1\r\n{_lines(fixed)}".encode()
        self._session: dict[str, str] = {}
        self._asked = 0
        self._pending = b""
        self.sent_ns = 0
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=DEADLINE_MS / 1000)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def open(self) -> None:
        """Whatever comes before the first call: the handshake, or one request that asks who is there."""
        if self._stateless:
            self.ask("server/discover", {})
            return
        reply = self._exchange(self._post(self._numbered("initialize", INITIALIZE), {}))
        session_id = _header(reply.head, b"mcp-session-id")
        if reply.status != 200 or session_id is None:
            raise NotEqual(f"no session: {reply.status} {reply.body.decode()}")
        self._session = {"Mcp-Session-Id": session_id.decode(), "MCP-Protocol-Version": HANDSHAKE}
        if self._exchange(self._post(notification(INITIALIZED), self._session)).status != 202:
            raise NotEqual("the handshake was not accepted")

    def ask(self, method: str, params: dict[str, Any]) -> bytes:
        reply = self._exchange(self.encoded(method, params))
        if reply.status != 200 or _header(reply.head, b"content-type") != b"application/json":
            raise NotEqual(f"no plain JSON reply: {reply.status} {reply.body.decode()}")
        return reply.body

    def encoded(self, method: str, params: dict[str, Any]) -> bytes:
        """The next request, ready to send."""
        if not self._stateless:
            return self._post(self._numbered(method, params), self._session)
        headers = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
        if method == "tools/call":
            headers["Mcp-Name"] = params["name"]
        return self._post(self._numbered(method, {**params, "_meta": _META}), headers)

    def send(self, data: bytes) -> None:
        self.sent_ns = time.perf_counter_ns()
        self.socket.sendall(data)

    def receive(self) -> HttpReply | None:
        """Takes what has arrived; the reply once it is whole."""
        chunk = self.socket.recv(1 << 16)
        if not chunk:
            raise Stuck("the server hung up")
        self._pending += chunk
        reply = _reply_in(self._pending)
        if reply is not None:
            self._pending = b""
        return reply

    def close(self) -> None:
        self.socket.close()

    def _numbered(self, method: str, params: dict[str, Any]) -> bytes:
        self._asked += 1
        return request(self._asked, method, params)

    def _post(self, body: bytes, headers: dict[str, str]) -> bytes:
        return self._start + f"{_lines(headers)}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def _exchange(self, data: bytes) -> HttpReply:
        self.send(data)
        while (reply := self.receive()) is None:
            continue
        return reply


def drive(clients: Sequence[Client], requests: Sequence[Sequence[bytes]]) -> list[int]:
    """Lets every client send its requests, each as soon as the one before is answered. The latencies in nanoseconds."""
    latencies_ns: list[int] = []
    by_descriptor = {client.socket.fileno(): (client, iter(own)) for client, own in zip(clients, requests, strict=True)}
    with select.epoll() as poll:
        for descriptor, (client, own) in by_descriptor.items():
            poll.register(descriptor, select.EPOLLIN)
            client.send(next(own))
        busy = len(clients)
        while busy:
            ready = poll.poll(DEADLINE_MS / 1000)
            if not ready:
                raise Stuck(f"no answer within {DEADLINE_MS // 1000} s")
            for descriptor, _ in ready:
                client, own = by_descriptor[descriptor]
                reply = client.receive()
                if reply is None:
                    continue
                latencies_ns.append(time.perf_counter_ns() - client.sent_ns)
                if reply.status != 200 or not head_of(reply.body).is_success:
                    raise NotEqual(f"refused: {reply.status} {reply.body.decode()}")
                following = next(own, None)
                if following is None:
                    busy -= 1
                else:
                    client.send(following)
    return latencies_ns


def _lines(headers: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


def _header(head: bytes, name: bytes) -> bytes | None:
    """A header's value. `head` is in small letters."""
    start = head.find(b"\r\n" + name + b":")
    if start < 0:
        return None
    end = head.find(b"\r\n", start + 2)
    return head[start + len(name) + 3 : end if end >= 0 else None].strip()


def _reply_in(data: bytes) -> HttpReply | None:
    """The reply that `data` is; None while some of it is still to come."""
    head_end = data.find(b"\r\n\r\n")
    if head_end < 0:
        return None
    head, body = data[:head_end].lower(), data[head_end + 4 :]
    length = _header(head, b"content-length")
    if length is not None:
        return HttpReply(int(head[9:12]), head, body) if len(body) >= int(length) else None
    if _header(head, b"transfer-encoding") != b"chunked":
        return HttpReply(int(head[9:12]), head, b"")
    return HttpReply(int(head[9:12]), head, _joined(body)) if body.endswith(b"0\r\n\r\n") else None


def _joined(chunks: bytes) -> bytes:
    parts: list[bytes] = []
    while True:
        size, _, rest = chunks.partition(b"\r\n")
        if not (count := int(size, 16)):
            return b"".join(parts)
        parts.append(rest[:count])
        chunks = rest[count + 2 :]
