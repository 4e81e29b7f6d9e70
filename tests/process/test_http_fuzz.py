"""Hostile requests over HTTP: each gets a response, a JSON-RPC request gets its id back, and the server lives."""

from __future__ import annotations

import base64
import http.client
import json
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.process.fuzz import METHODS, junk, lines
from tests.process.http_peer import (
    ACCEPT,
    DEADLINE_S,
    STATELESS,
    HttpProcess,
    Peer,
    handrail_http,
    request_of,
    toy_http,
)

TOKEN = "T"
STATUSES = {200, 202, 400, 401, 403, 404, 405, 406, 408, 413, 415, 431, 501, 503}
NAMES = (
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Protocol-Version",
    "Mcp-Session-Id",
    "Mcp-Param-X",
    "Last-Event-ID",
    "Accept",
    "Content-Type",
    "Content-Encoding",
    "Host",
    "Origin",
    "Authorization",
    "Cookie",
    "Expect",
    "X-Forwarded-For",
    "Upgrade",
    "Range",
    "If-None-Match",
)
VALUES = (
    "",
    " ",
    "x",
    "null",
    "*/*",
    "0",
    "-1",
    STATELESS,
    "2025-11-25",
    "1999-01-01",
    "tools/call",
    "=?base64?w6k=?=",
    "=?base64?!?=",
    "application/json",
    "text/event-stream",
    "Bearer T",
    "Bearer",
    "localhost",
    "evil.example",
    "http://evil.example",
    "0-0",
    "1-1",
    "99999999999999999999-99999999999999999999",
    "100-continue",
    "websocket",
    "h2c",
    "bytes=0-1",
    "gzip",
    "\u00e9\u00ff\u00b2",
    "a" * 5000,
    "b" * 60_000,
    "../" * 50,
    "%00%0d%0a",
)
PATHS = (
    "/mcp",
    "/mcp/",
    "/mcp/readonly",
    "/mcp/x/guide",
    "/mcp/x/nope",
    "/",
    "//",
    "/mcp/../..",
    "/%6dcp",
    "/mcp?x=1",
    "/mcp#f",
    "*",
    "http://evil.example/mcp",
    "/" + "a" * 5000,
    "/mcp/x/" + ",".join(["guide"] * 500),
    "/mcp/\u00e9",
)
VERBS = ("POST", "GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE")
BROKEN = (
    b"\r\n\r\n\r\n",
    b"NONSENSE\r\n\r\n",
    b"POST /mcp\r\n\r\n",
    b"POST /mcp HTTP/9.9\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nbad header\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: nonsense\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\nHost: \x00\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50,
)


class Line:
    """One kept-alive connection after another: sends a raw request, reads one response."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._socket: socket.socket | None = None
        self.connections = 0

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def say(self, raw: bytes, verb: str = "POST", *, first_event: bool = False) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body. Of a stream of events `first_event` reads one; then it is left, since it may stay
        open as long as its session."""
        if self._socket is None:
            self._socket = self._peer.socket()
            self.connections += 1
        self._socket.sendall(raw)
        response = http.client.HTTPResponse(self._socket, method=verb)
        try:
            response.begin()
            headers = {name.lower(): value for name, value in response.getheaders()}
            if headers.get("content-type") == "text/event-stream":
                body = response.readline() + response.readline() if first_event else b""
                self.drop()
            else:
                body = response.read()
            if response.will_close:
                self.drop()
            return response.status, headers, body
        finally:
            response.close()

    def broken(self, raw: bytes) -> bytes:
        """Sends what is no request on a connection of its own and returns whatever came back to its end."""
        self.drop()
        with self._peer.socket() as connection:
            connection.settimeout(DEADLINE_S)
            try:
                connection.sendall(raw)
                connection.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: connection.recv(65536), b""))
            except ConnectionError:
                return b""


def framed(verb: str, path: str, headers: list[tuple[str, str]], body: bytes) -> bytes:
    head = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), f"Content-Length: {len(body)}"]
    return "\r\n".join(head).encode("latin-1", "replace") + b"\r\n\r\n" + body


def good_headers(peer: Peer, *more: tuple[str, str]) -> list[tuple[str, str]]:
    own = [("Host", f"localhost:{peer.port}"), ("Content-Type", "application/json"), ("Accept", ACCEPT)]
    return [*own, ("Authorization", f"Bearer {TOKEN}"), *more]


def replied(headers: dict[str, str], body: bytes) -> Any:
    if headers.get("content-type") == "text/event-stream":
        return None
    return msgspec.json.decode(body) if body else None


# -- hostile bodies ---------------------------------------------------------------------------------------------------


def bodies(peer: Peer, seed: int, count: int) -> None:
    """Hostile bodies with good headers: every request gets its id back, whichever era its envelope claims."""
    rng = random.Random(seed)
    session = peer.session(rng.choice(("2024-11-05", "2025-06-18", "2025-11-25")))
    with Line(peer) as line:
        for raw, (kind, value) in lines(seed, count):
            extra = [("Mcp-Session-Id", session.id)]
            if rng.random() < 0.3:
                extra += stateless_headers(raw)
            status, headers, body = line.say(framed("POST", "/mcp", good_headers(peer, *extra), raw))
            assert status in STATUSES, (seed, raw, status)
            answer = replied(headers, body)
            if kind == "id":
                assert isinstance(answer, dict), (seed, raw, status, body)
                assert answer["id"] == value, (seed, raw, answer)
                assert ("result" in answer) != ("error" in answer)
            elif kind == "null":
                assert status == 400, (seed, raw, status)
                assert answer["id"] is None, (seed, raw, answer)
            else:
                assert answer is None or answer["id"] is None, (seed, raw, answer)
        assert line.connections <= 3, "connections are kept alive"
    assert session.ask("ping", "alive").json()["id"] == "alive"


def stateless_headers(raw: bytes) -> list[tuple[str, str]]:
    """The headers that belong to a body, where it is one; headers of nothing in particular where it is not."""
    headers = [("Mcp-Protocol-Version", STATELESS)]
    try:
        message = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return [*headers, ("Mcp-Method", "tools/call")]
    if not isinstance(message, dict) or message.get("method") not in METHODS:
        return headers
    params = message.get("params")
    name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
    headers.append(("Mcp-Method", message["method"].replace("\x00", "")))
    return [*headers, ("Mcp-Name", name)] if isinstance(name, str) and name.isalpha() and name.isascii() else headers


FOLLOWS_TASKS: dict[str, Any] = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
STATES: tuple[Any, ...] = (
    "",
    ".",
    "YWJj.",
    "YWJj.00",
    "YWJj.\u00e9",
    "\u00e9.\u00e9",
    "." * 3000,
    "=.=",
    5,
    [],
    {"a": 1},
)
STATELESS_METHODS = (
    "tools/call",
    "tools/list",
    "prompts/get",
    "resources/read",
    "completion/complete",
    "server/discover",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "initialize",
    "ping",
    "logging/setLevel",
)


def enveloped_params(rng: random.Random) -> dict[str, Any]:
    """Params of the stateless era, each member junk or nearly right."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": rng.choice((STATELESS,) * 8 + (junk(rng), "2025-11-25")),
        "io.modelcontextprotocol/clientCapabilities": rng.choice(({}, {"elicitation": {}}, FOLLOWS_TASKS, junk(rng))),
        "io.modelcontextprotocol/logLevel": rng.choice(("debug", junk(rng))),
        "progressToken": rng.choice((None, "p", 1, junk(rng))),
    }
    members = {
        "name": rng.choice(("ask", "count", "job", "search", "echo", "mcp_info", "workflow_next", junk(rng))),
        "arguments": rng.choice(({}, {"to": 3}, {"region": junk(rng), "limit": junk(rng)}, junk(rng))),
        "requestState": rng.choice((*STATES, junk(rng))),
        "inputResponses": rng.choice(({"first": {}}, {"first": junk(rng), "second": junk(rng)}, junk(rng))),
        "notifications": rng.choice(({"toolsListChanged": True}, {"taskIds": [junk(rng)]}, junk(rng))),
        "taskId": junk(rng),
        "uri": rng.choice(("toy://one", junk(rng))),
        "cursor": junk(rng),
        "ref": junk(rng),
        "argument": junk(rng),
        "level": junk(rng),
    }
    kept = rng.sample(sorted(members), rng.randrange(len(members)))
    return {**{name: members[name] for name in kept}, "_meta": meta}


def envelopes(peer: Peer, seed: int, count: int) -> None:
    """Requests of the stateless era with the headers that belong to them: past the headers, into the handlers."""
    rng = random.Random(seed)
    with Line(peer) as line:
        for number in range(count):
            method, params = rng.choice(STATELESS_METHODS), enveloped_params(rng)
            version = params["_meta"]["io.modelcontextprotocol/protocolVersion"]
            extra = [("Mcp-Protocol-Version", str(version)), ("Mcp-Method", method)]
            name = params.get({"resources/read": "uri"}.get(method, "taskId" if "tasks" in method else "name"))
            if isinstance(name, str):
                extra.append(("Mcp-Name", f"=?base64?{base64.b64encode(name.encode()).decode()}?="))
            for marked in ("region", "limit"):
                value = params["arguments"].get(marked) if isinstance(params.get("arguments"), dict) else None
                if value is not None:
                    text = msgspec.json.encode(value) if not isinstance(value, str) else value.encode()
                    extra.append((f"Mcp-Param-{marked}", f"=?base64?{base64.b64encode(text).decode()}?="))
            headers = [(known, value.replace("\n", "").replace("\r", "").replace("\0", "")) for known, value in extra]
            body = json.dumps(request_of(method, number, **params)).encode()
            status, answered, said = line.say(
                framed("POST", "/mcp", good_headers(peer, *headers), body), first_event=True
            )
            assert status in STATUSES, (seed, body, status)
            if answered.get("content-type") == "text/event-stream":
                assert said.startswith(b"event: message\ndata: {"), (seed, body, said)
            elif status != 400 or said:
                answer = msgspec.json.decode(said)
                assert answer["id"] == number, (seed, body, answer)
    assert peer.stateless("server/discover").status == 200


# -- hostile headers --------------------------------------------------------------------------------------------------


def heads(peer: Peer, seed: int, count: int) -> None:
    """Hostile headers, methods and paths around good and bad bodies: every one gets a response."""
    rng = random.Random(seed)
    session = peer.session()
    body_makers: list[Callable[[], bytes]] = [
        lambda: msgspec.json.encode(request_of("ping", rng.randrange(1000))),
        lambda: msgspec.json.encode(request_of("tools/call", name="mcp_info", arguments={})),
        lambda: b"",
        lambda: rng.randbytes(rng.randrange(200)),
        lambda: b"a" * 100_000,
    ]
    with Line(peer) as line:
        for number in range(count):
            if number % 40 == 39:
                said = line.broken(rng.choice(BROKEN))
                assert not said or said.startswith(b"HTTP/1."), (seed, number, said[:200])
                continue
            verb, path = rng.choice(VERBS), rng.choice(PATHS)
            headers = good_headers(peer) if rng.random() < 0.7 else []
            headers += [(rng.choice(NAMES), rng.choice(VALUES)) for _ in range(rng.randrange(5))]
            headers += [("Mcp-Session-Id", session.id)] if rng.random() < 0.5 else []
            rng.shuffle(headers)
            if rng.random() < 0.1:
                headers *= 2
            has_body = verb in ("POST", "PUT", "PATCH") or rng.random() < 0.1
            raw = framed(verb, path, headers, rng.choice(body_makers)() if has_body else b"")
            if verb == "DELETE" and session.id.encode() in raw:
                continue  # an orderly end, which the next requests would have to know of
            status, answered, body = line.say(raw, verb)
            assert status in STATUSES, (seed, number, raw[:300], status)
            if verb != "HEAD" and answered.get("content-type") == "application/json":
                assert isinstance(msgspec.json.decode(body), dict | list)
    assert session.ask("ping", "alive").json()["id"] == "alive"


def survived(process: HttpProcess) -> None:
    """The server lives, leaves when asked, and had nothing to complain about."""
    assert process.process.poll() is None, process.errors()
    said = process.end()
    traces = said.split("Traceback")[1:]
    assert [trace for trace in traces if "a bug in a handler" not in trace] == []


def test_thousands_of_hostile_bodies_are_answered(tmp_path: Path) -> None:
    with handrail_http(tmp_path, "--set", "max_message_bytes=65536", token=TOKEN) as process:
        with Peer(process.url, TOKEN) as peer:
            bodies(peer, seed=20261115, count=2500)
        survived(process)


def test_thousands_of_hostile_heads_are_answered(tmp_path: Path) -> None:
    with handrail_http(tmp_path, "--set", "max_message_bytes=65536", token=TOKEN) as process:
        with Peer(process.url, TOKEN) as peer:
            heads(peer, seed=20261115, count=2000)
        survived(process)


def test_a_server_with_every_feature_survives_the_same(tmp_path: Path) -> None:
    with toy_http(tmp_path, token=TOKEN) as process:
        with Peer(process.url, TOKEN) as peer:
            bodies(peer, seed=7, count=700)
            heads(peer, seed=7, count=700)
        survived(process)


def test_hostile_envelopes_are_answered_by_a_server_with_every_feature(tmp_path: Path) -> None:
    with toy_http(tmp_path, token=TOKEN) as process:
        with Peer(process.url, TOKEN) as peer:
            envelopes(peer, seed=20261115, count=1500)
        survived(process)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(30))
def test_storms_of_other_seeds(tmp_path: Path, seed: int) -> None:
    with handrail_http(tmp_path, "--set", "max_message_bytes=65536", token=TOKEN) as process:
        with Peer(process.url, TOKEN) as peer:
            bodies(peer, seed=seed, count=4000)
            heads(peer, seed=seed, count=4000)
        survived(process)
    with toy_http(tmp_path, token=TOKEN) as process:
        with Peer(process.url, TOKEN) as peer:
            envelopes(peer, seed=seed, count=4000)
        survived(process)
