"""A model that follows a script: it stands on loopback where a client expects its provider, and keeps every request.

It judges nothing. A turn is a text or calls of tools; a request without Handrail's tools (a title, a summary, a look at
what is next) is not part of the conversation and gets a fixed answer. Each client of a test has a model of its own.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tests.clients.real.dialects import DIALECTS, Answer, Asked, Body, Dialect, strings

OVER = "The script is over."
ASIDE = "So far, rails were laid."
"""What it says to requests that are not the conversation: a title, or the summary of what is compacted."""
DEADLINE_S = 60.0
"""Far beyond what a test waits for; a held turn is let go then, so that nothing hangs."""

IDS = {"<workflow>": r"wf_[0-9a-z]{20,}", "<task>": r"task_[0-9a-z]{20,}"}
"""What stands in a script for the newest id of its kind in the conversation."""


@dataclass(frozen=True)
class Call:
    """Wants a tool called, by the name Handrail gave it; `arguments` may hold the placeholders of IDS."""

    tool: str
    arguments: Body = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """One answer of the model. `tokens`: how long it claims the conversation is. `held`: it waits for this first."""

    text: str = ""
    calls: Sequence[Call] = ()
    tokens: int = 100
    held: threading.Event | None = None


def say(text: str, *, tokens: int = 100) -> Turn:
    return Turn(text=text, tokens=tokens)


def call(tool: str, *, held: threading.Event | None = None, tokens: int = 100, **arguments: object) -> Turn:
    return Turn(calls=(Call(tool, arguments),), held=held, tokens=tokens)


@dataclass(frozen=True)
class Received:
    """One request to the model."""

    api: str
    body: Body
    tools: Sequence[str]
    results: Sequence[str]
    aside: bool
    """Not part of the conversation: Handrail's tools were not offered."""

    @property
    def words(self) -> str:
        """Everything the model reads, except the declarations of tools."""
        return "\n".join(strings({name: value for name, value in self.body.items() if name != "tools"}))


class ScriptedModel:
    """The server, from `with` to its end."""

    def __init__(self, *script: Turn, marker: str = "start_task") -> None:
        self.requests: list[Received] = []
        self._script = list(script)
        self._marker = marker
        self._news = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(DEADLINE_S)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def play(self, *script: Turn) -> int:
        """Another script from here on. Returns how many requests there were before it."""
        with self._news:
            self._script = list(script)
            return len(self.requests)

    def conversation(self, since: int = 0) -> list[Received]:
        """The requests that Handrail's tools came with."""
        with self._news:
            return [received for received in self.requests[since:] if not received.aside]

    def wait_for(self, reached: Callable[[list[Received]], bool], within_s: float = DEADLINE_S) -> bool:
        """Waits until the requests are as wanted; whether they came to be."""
        with self._news:
            return self._news.wait_for(lambda: reached(self.requests), within_s)

    def answer(self, dialect: Dialect, body: Body) -> Answer:
        offered = dialect.tools(body)
        aside = not any(name.endswith(self._marker) for name, _ in offered)
        names = tuple(f"{space}.{name}" if space else name for name, space in offered)
        received = Received(dialect.name, body, names, tuple(dialect.results(body)), aside)
        with self._news:
            self.requests.append(received)
            number = len(self.requests)
            turn = Turn(text=ASIDE) if aside else self._script.pop(0) if self._script else Turn(text=OVER)
            self._news.notify_all()
        if turn.held is not None:
            turn.held.wait(DEADLINE_S)
        asked = [_asked(wanted, offered, received.words) for wanted in turn.calls]
        return Answer(number, str(body.get("model", "scripted")), turn.text, asked, turn.tokens)


def _asked(wanted: Call, offered: list[tuple[str, str]], words: str) -> Asked:
    """The call with the client's name for the tool, which is the longest it may be: `mcp__handrail__start_task`."""
    listed = [one for one in offered if one[0].endswith(wanted.tool)]
    name, space = min(listed, key=lambda one: len(one[0]), default=(wanted.tool, ""))
    return Asked(name, _filled(wanted.arguments, words), space)


def _filled(value: Any, words: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(part, words) for name, part in value.items()}
    if isinstance(value, str) and value in IDS:
        found = re.findall(IDS[value], words)
        return found[-1] if found else value
    return value


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it is called with
            pass

        def do_GET(self) -> None:
            models = [{"id": "scripted", "object": "model"}]
            self._send("application/json", msgspec.json.encode({"object": "list", "data": models}))

        def do_HEAD(self) -> None:
            self._send("application/json", b"")

        def do_POST(self) -> None:
            body = msgspec.json.decode(self._body() or b"{}", type=dict[str, Any])
            path = urlsplit(self.path).path
            dialect = next((one for one in DIALECTS if one.speaks(path)), None)
            if dialect is None:  # counting tokens, telemetry: nothing a conversation hangs on
                count = {"input_tokens": 100, "totalTokens": 100}
                self._send("application/json", msgspec.json.encode(count))
                return
            answer = model.answer(dialect, body)
            if dialect.streams(path, body):
                lines = [_event(name, data) for name, data in dialect.events(answer)]
                self._send("text/event-stream", b"".join(lines))
            else:
                self._send("application/json", msgspec.json.encode(dialect.whole(answer)))

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _send(self, kind: str, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # the client was killed
                self.wfile.write(content)

    return Handler


def _event(name: str, data: object) -> bytes:
    shown = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + shown + b"\n\n"
