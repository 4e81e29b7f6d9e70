"""How a server is spoken to: JSON-RPC over pipes or over HTTP, without ever waiting for one of many. No measuring.

A line is one connection. What is sent is sent at once; what came back is taken when there is something.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from bench.started import Piped, Stuck

DEADLINE_S = 120.0
_CHUNK = 1 << 16
_CLIENT = {"name": "bench", "version": "1"}
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT}
NOT_FOUND = -32601


class Reply(msgspec.Struct, frozen=True):
    """What a tool answered."""

    refused: bool
    text: str
    structured: dict[str, Any] | None = None


class Line(Protocol):
    """One connection to a server."""

    def fileno(self) -> int: ...

    def call(self, number: int, tool: str, arguments: Mapping[str, Any]) -> None:
        """Asks for a tool; the reply comes under `number`."""
        ...

    def replies(self) -> list[tuple[int, Reply]]:
        """What came, once there is something to read."""
        ...

    def end(self) -> None: ...


def ask(line: Line, number: int, tool: str, arguments: Mapping[str, Any]) -> Reply:
    """One call and its reply, before or after what is measured."""
    line.call(number, tool, arguments)
    while True:
        if not select.select([line], [], [], DEADLINE_S)[0]:
            raise Stuck(f"{tool}: no answer within {DEADLINE_S:.0f} s")
        for told, reply in line.replies():
            if told == number:
                return reply


def reply_of(message: Mapping[str, Any]) -> Reply:
    """A tool's reply, or a refusal of the whole request."""
    result = message.get("result")
    if result is None:
        return Reply(True, str(message.get("error")))
    text = "\n".join(part.get("text", "") for part in result.get("content", ()))
    return Reply(bool(result.get("isError")), text, result.get("structuredContent"))


def _request(number: int, method: str, params: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def _call(number: int, tool: str, arguments: Mapping[str, Any]) -> bytes:
    return _request(number, "tools/call", {"name": tool, "arguments": arguments})


class PipeLine(Piped):
    """A server process of one's own, on its standard input and output."""

    def __init__(self, command: Sequence[str], cwd: Path, environ: Mapping[str, str], log: Path) -> None:
        super().__init__(command, cwd, environ, log)
        self._pending = b""
        self._say(_request(0, "initialize", INITIALIZE))

    def greet(self) -> None:
        """Waits until the server is there: apart from its start, so that many may start at once."""
        while True:
            if not select.select([self._out], [], [], DEADLINE_S)[0]:
                raise Stuck(f"no answer to initialize within {DEADLINE_S:.0f} s")
            if any(message.get("id") == 0 for message in self._messages()):
                break
        self._say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def fileno(self) -> int:
        return self._out.fileno()

    def call(self, number: int, tool: str, arguments: Mapping[str, Any]) -> None:
        self._say(_call(number, tool, arguments))

    def replies(self) -> list[tuple[int, Reply]]:
        return [(message["id"], reply_of(message)) for message in self._messages()]

    def _messages(self) -> list[dict[str, Any]]:
        """The replies among what came. What the server asks of its client is refused: this one can do nothing."""
        chunk = os.read(self._out.fileno(), _CHUNK)
        if not chunk:
            raise Stuck(f"the server ended{self.last_words()}")
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        replies = []
        for line in filter(None, lines):
            message = msgspec.json.decode(line)
            if "method" not in message:
                replies.append(message)
            elif "id" in message:
                refusal = {"code": NOT_FOUND, "message": "this client has nothing to offer"}
                self._say(msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], "error": refusal}))
        return replies

    def _say(self, line: bytes) -> None:
        os.write(self._in.fileno(), line + b"\n")


class HttpLine:
    """A connection of one's own to a server that many share. Understands whole replies and chunked event streams."""

    def __init__(self, url: str, *, greets: bool = True) -> None:
        """`greets` is left out where the server keeps no sessions and cuts off who is idle after a first reply."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._socket = socket.create_connection((parts.hostname, parts.port), DEADLINE_S)
        self._head = (
            f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
        )
        self._session = ""
        self._pending = b""
        if greets:
            self._greet()

    def _greet(self) -> None:
        self._post(_request(0, "initialize", INITIALIZE))
        head, _ = self._whole()
        for name, _, value in (line.partition(": ") for line in head.split("\r\n")):
            if name.lower() == "mcp-session-id":
                self._session = f"Mcp-Session-Id: {value}\r\n"
        self._post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        self._whole()

    def fileno(self) -> int:
        return self._socket.fileno()

    def call(self, number: int, tool: str, arguments: Mapping[str, Any]) -> None:
        self._post(_call(number, tool, arguments))

    def replies(self) -> list[tuple[int, Reply]]:
        self._read()
        found = []
        while (parts := split_reply(self._pending)) is not None:
            _, body, self._pending = parts
            found += [(message["id"], reply_of(message)) for message in messages_in(body)]
        return found

    def _post(self, body: bytes) -> None:
        self._socket.sendall(f"{self._head}{self._session}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def _whole(self) -> tuple[str, bytes]:
        while (parts := split_reply(self._pending)) is None:
            self._read()
        head, body, self._pending = parts
        return head, body

    def _read(self) -> None:
        chunk = self._socket.recv(_CHUNK)
        if not chunk:
            raise Stuck("the server closed the connection")
        self._pending += chunk

    def end(self) -> None:
        self._socket.close()


def split_reply(received: bytes) -> tuple[str, bytes, bytes] | None:
    """Head, body and what came after it, once one whole HTTP reply is there."""
    head, separator, rest = received.partition(b"\r\n\r\n")
    if not separator:
        return None
    names = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if ": " in line)
    if "chunked" not in names.get("transfer-encoding", ""):
        length = int(names.get("content-length", 0))
        return (head.decode(), rest[:length], rest[length:]) if len(rest) >= length else None
    body = b""
    while True:
        size, separator, rest = rest.partition(b"\r\n")
        length = int(size, 16) if separator else 0
        if not separator or len(rest) < length + 2:
            return None
        body, rest = body + rest[:length], rest[length + 2 :]
        if length == 0:
            return head.decode(), body, rest


def messages_in(body: bytes) -> list[dict[str, Any]]:
    """The replies in a body: one JSON text, or the data of an event stream."""
    if body.startswith(b"{"):
        return [msgspec.json.decode(body)]
    data = [line[5:] for line in body.replace(b"\r\n", b"\n").split(b"\n") if line.startswith(b"data:")]
    return [message for text in data if "method" not in (message := msgspec.json.decode(text))]
