"""A client for a server process over HTTP: whole answers, open streams, raw sockets, and gates that calls wait at.

Everything has a deadline: a stuck server fails a test, it never hangs it.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tests.process.child import Child

DEADLINE_S = 20.0
"""Far beyond any honest answer; reached only when something is stuck."""

ROOT = Path(__file__).parent.parent.parent
STATELESS = "2026-07-28"
META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ACCEPT = "application/json, text/event-stream"


class HttpProcess(Child):
    """A started server, its address and what it says on stderr."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            command, cwd=cwd, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self._lines: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._ready.wait(DEADLINE_S), f"the server says nothing: {self.errors()}"
        assert self.url, f"the server ended: {self.errors()}"

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.append(line)
            if ": serving http" in line:
                self._ready.set()
        self._ready.set()

    @property
    def url(self) -> str:
        return next(
            (line.partition(": serving ")[2].strip() for line in tuple(self._lines) if ": serving " in line), ""
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def close(self) -> None:
        self._reader.join(DEADLINE_S)
        super().close()

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self, within_s: float = DEADLINE_S) -> int:
        return self.process.wait(within_s)

    def end(self) -> str:
        """Asks the process to leave, checks that it did so in good order, and returns what it said on stderr."""
        self.terminate()
        assert self.wait() == 0
        self._reader.join(DEADLINE_S)
        return self.errors()

    def errors(self) -> str:
        return "".join(self._lines)

    def rss_kb(self) -> int:
        """The memory the process has in use."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")))


def handrail_http(folder: Path, *options: str, token: str = "T") -> HttpProcess:
    command = [sys.executable, "-m", "handrail", "serve", "--http", "127.0.0.1:0", "--token", token, *options]
    return HttpProcess(command, cwd=folder, env={"HOME": str(folder)})


def toy_http(folder: Path, **limits: Any) -> HttpProcess:
    """The protocol's toy server, without a Handrail word in it. `limits` are those of HttpLimits, and `token`."""
    command = [sys.executable, "-m", "tests.process.toy_http_server", msgspec.json.encode(limits).decode()]
    return HttpProcess(command, cwd=folder, env={"HOME": str(folder), "PYTHONPATH": str(ROOT)})


class Event(msgspec.Struct, frozen=True):
    """One server-sent event; `message` is None where it carries no data."""

    id: str | None
    message: dict[str, Any] | None
    retry: int | None = None


class Open:
    """A response whose head has come and whose body is read as it comes."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self.status = response.status
        self._refused: dict[str, Any] | None = None
        self.headers = {name.lower(): value for name, value in response.getheaders()}

    @property
    def is_events(self) -> bool:
        return self.headers.get("content-type") == "text/event-stream"

    def body(self) -> bytes:
        try:
            return self._response.read()
        finally:
            self.close()

    def json(self) -> Any:
        assert self.headers.get("content-type") == "application/json", self.headers
        return msgspec.json.decode(self.body())

    def error(self) -> dict[str, Any]:
        """The error of a refusal that is for nobody in particular."""
        if self._refused is None:
            refused = self.json()
            assert refused["id"] is None
            self._refused = refused["error"]
        return self._refused

    def event(self) -> Event | None:
        """The next event; None at the end of the stream. Comments are passed over."""
        fields: dict[str, str] = {}
        while line := self._response.readline():
            text = line.decode().rstrip("\n")
            if text.startswith(":"):
                continue
            if text:
                name, _, value = text.partition(": ")
                fields[name] = value
            elif fields:
                data = fields.get("data", "")
                retry = fields.get("retry")
                message = msgspec.json.decode(data) if data.strip() else None
                return Event(fields.get("id"), message, int(retry) if retry else None)
        return None

    def message(self) -> dict[str, Any]:
        """The next event that carries one."""
        while (event := self.event()) is not None:
            if event.message is not None:
                return event.message
        raise AssertionError("the stream ended")

    def events(self) -> list[Event]:
        """All that is left, to the end."""
        rest = list(iter(self.event, None))
        self.close()
        return rest

    def answer(self) -> dict[str, Any]:
        """The reply to a request, in whichever form it came."""
        reply = self.events()[-1].message if self.is_events else self.json()
        assert isinstance(reply, dict)
        return reply

    def close(self) -> None:
        self._response.close()
        self._connection.close()

    def __enter__(self) -> Open:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def request_of(method: str, request_id: int | str = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


class Peer:
    """Talks to one address. Headers given as None are left out. Closes, at its end, what was left open."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._opened: list[Open] = []
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.host, self.port, self.path = parts.hostname, parts.port, parts.path
        self._own = {"Authorization": f"Bearer {token}" if token else None}

    def at(self, path: str) -> Peer:
        """The same server under another path."""
        other = Peer(f"http://{self.host}:{self.port}{path}")
        other._own, other._opened = self._own, self._opened
        return other

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for response in self._opened:
            response.close()

    def open(self, method: str, body: Any = None, **headers: str | None) -> Open:
        """Sends a request and returns its response once the head is there."""
        given: dict[str, str | None] = {"Host": f"{self.host}:{self.port}", "Accept": ACCEPT, **self._own}
        raw = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        if raw is not None:
            given |= {"Content-Type": "application/json", "Content-Length": str(len(raw))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE_S)
        connection.putrequest(method, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(raw)
        opened = Open(connection, connection.getresponse())
        self._opened.append(opened)
        return opened

    def status(self, method: str, body: Any = None, **headers: str | None) -> int:
        with self.open(method, body, **headers) as response:
            return response.status

    # -- 2026-07-28 -------------------------------------------------------------------------------------------------

    def stateless(
        self,
        method: str,
        request_id: int | str = 1,
        *,
        can: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        meta: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> Open:
        """One request of the stateless era with the headers that go with it."""
        envelope = {META_VERSION: STATELESS, META_CAPABILITIES: dict(can or {}), **(meta or {})}
        given: dict[str, str | None] = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": method}
        name = params.get(NAMED_BY.get(method, "taskId"))
        if isinstance(name, str):
            given["Mcp-Name"] = name
        body = request_of(method, request_id, **params, _meta=envelope)
        return self.open("POST", body, **{**given, **(headers or {})})

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """A stateless tool call, to its result."""
        answer = self.stateless("tools/call", name=name, arguments=arguments).answer()
        assert "result" in answer, answer
        result = answer["result"]
        assert isinstance(result, dict)
        return result

    # -- the handshake ----------------------------------------------------------------------------------------------

    def session(self, version: str = "2025-11-25", can: Mapping[str, Any] | None = None) -> Session:
        return Session(self, version, can or {})

    # -- raw --------------------------------------------------------------------------------------------------------

    def socket(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=DEADLINE_S)


class Session:
    """A handshake client."""

    def __init__(self, peer: Peer, version: str, can: Mapping[str, Any]) -> None:
        self.peer = peer
        who = {"name": "test", "version": "1"}
        opened = peer.open(
            "POST", request_of("initialize", "init", protocolVersion=version, capabilities=dict(can), clientInfo=who)
        )
        assert opened.status == 200
        self.id = opened.headers["mcp-session-id"]
        self.initialized = opened.json()["result"]
        assert self.initialized["protocolVersion"] == version
        self.version = version
        assert self.send({"jsonrpc": "2.0", "method": "notifications/initialized"}) == 202

    def open(self, method: str, body: Any = None, **headers: str | None) -> Open:
        # The first two revisions know no such header.
        version = self.version if self.version >= "2025-06-18" else None
        given: dict[str, str | None] = {"Mcp-Session-Id": self.id, "Mcp-Protocol-Version": version}
        return self.peer.open(method, body, **{**given, **headers})

    def send(self, message: Any) -> int:
        """A notification or an answer of ours; its status."""
        with self.open("POST", message) as response:
            return response.status

    def ask(self, method: str, request_id: int | str = 1, **params: Any) -> Open:
        return self.open("POST", request_of(method, request_id, **params))

    def standing(self, last_event_id: str | None = None) -> Open:
        return self.open("GET", **{"Last-Event-ID": last_event_id})

    def end(self) -> int:
        with self.open("DELETE") as response:
            return response.status


class Gate:
    """Where a call of the toy server waits. Its port goes with the call."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(DEADLINE_S)
        self._arrived: socket.socket | None = None
        self.port: int = self._listening.getsockname()[1]

    def arrived(self) -> None:
        """Returns once the call is at the gate."""
        self._arrived, _ = self._listening.accept()
        self._arrived.settimeout(DEADLINE_S)

    def open(self) -> str:
        """Lets the call through: "wanted", or "cancelled" where it was by then."""
        if self._arrived is None:
            self.arrived()
        assert self._arrived is not None
        waiting = self._arrived
        waiting.sendall(b"x")
        return b"".join(iter(lambda: waiting.recv(64), b"")).decode()

    def close(self) -> None:
        for held in (self._arrived, self._listening):
            if held is not None:
                held.close()


def gates() -> Iterator[Gate]:
    """A pytest fixture's body: one gate, closed afterwards."""
    gate = Gate()
    yield gate
    gate.close()
