"""The toy server over HTTP as a process: every exchange style, and tools that stop where a test wants them to.

A tool that takes a `gate` connects to that port of loopback and waits there for a byte: whoever listens knows that the
call has arrived, decides when it goes on, and hears whether it was cancelled meanwhile.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from handrail.protocol.client_requests import elicitation
from handrail.protocol.exchange import Exchange
from handrail.protocol.http.endpoint import HttpEndpoint, HttpLimits
from handrail.protocol.http.guard import Guard
from handrail.protocol.http.serve import listening_socket, serve_http
from handrail.protocol.offer import Changing, Offer, TaskUse
from handrail.protocol.server import Server
from handrail.protocol.wire import INVALID_PARAMS, RpcError

TOKEN = "toy-token"
FORM = {"type": "object", "properties": {"v": {"type": "string"}}}
SEARCH = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "limit": {"type": "integer", "x-mcp-header": "Limit"},
    },
}
NAMES = ("echo", "fail", "count", "gated", "hang", "ask", "change", "touch", "job", "search", "quiet", "patient")


def wait_at(gate: object, exchange: Exchange) -> None:
    """Waits until the gate is opened, and tells it whether anybody still wants the answer."""
    assert isinstance(gate, int)
    with socket.create_connection(("127.0.0.1", gate)) as connection:
        connection.recv(1)
        connection.sendall(b"cancelled" if exchange.cancelled else b"wanted")


class ToyHttpTools:
    """Tools for every way a reply can come: at once, after events, later, never, after questions, as a task."""

    server: Server

    def published(self) -> Sequence[Mapping[str, Any]]:
        return [{"name": name, "inputSchema": SEARCH if name == "search" else {"type": "object"}} for name in NAMES]

    def waits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        return name in ("gated", "ask", "job", "quiet", "patient")

    def task_use(self, name: str) -> TaskUse:
        return TaskUse.MAY if name == "job" else TaskUse.NEVER

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        act = getattr(self, f"_{name}", None) if name in NAMES else None
        if act is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}", {"name": name})
        return {"content": [{"type": "text", "text": str(act(exchange, arguments))}]}

    def _echo(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        return arguments.get("text", "")

    def _search(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        return "found"

    def _fail(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        raise ZeroDivisionError("a bug in a handler")

    def _count(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        for step in range(1, int(arguments.get("to", 3)) + 1):
            exchange.progress(step, message=str(arguments.get("text", "")))
        return "counted"

    def _gated(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        """Two steps before the gate, two after it; `leave` sends the reader away in between."""
        exchange.progress(1)
        exchange.progress(2)
        if arguments.get("leave"):
            exchange.close_stream()
        wait_at(arguments["gate"], exchange)
        exchange.progress(3)
        exchange.progress(4)
        return "through"

    def _quiet(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        wait_at(arguments["gate"], exchange)
        return "through"

    def _patient(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        """Goes on until nobody wants the answer any more, and tells the gate when that is so."""
        never = threading.Event()
        exchange.progress(1)
        with socket.create_connection(("127.0.0.1", int(arguments["gate"]))) as connection:
            connection.recv(1)
            while not exchange.cancelled:
                never.wait(0.005)
            connection.sendall(b"cancelled")
        return "never seen"

    def _hang(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        with socket.create_connection(("127.0.0.1", int(arguments["gate"]))):
            threading.Event().wait(60)
        return "never seen"

    def _ask(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        first = exchange.elicit("first?", FORM, key="first")
        second = exchange.elicit("second?", FORM, key="second")
        return f"{first['content']['v']} {second['content']['v']}"

    def _change(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        self.server.subscribers.list_changed("toolsListChanged")
        return "changed"

    def _touch(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        self.server.subscribers.resource_updated(str(arguments["uri"]))
        return "touched"

    def _job(self, exchange: Exchange, arguments: Mapping[str, Any]) -> object:
        exchange.detach()
        answers = exchange.ask({"go": elicitation("go on?", FORM)})
        return answers["go"]["content"]["v"]


class ToyResources:
    """One resource that exists."""

    def published(self) -> Sequence[Mapping[str, Any]]:
        return [{"uri": "toy://one", "name": "one"}]

    def templates(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def read(self, exchange: Exchange, uri: str) -> Sequence[Mapping[str, Any]] | None:
        return [{"uri": uri, "text": "one"}] if uri == "toy://one" else None


def main() -> int:
    """`python -m tests.process.toy_http_server '{"body_s": 0.5}'`: members of HttpLimits, and `token`."""
    given: dict[str, Any] = msgspec.json.decode(sys.argv[1]) if len(sys.argv) > 1 else {}
    token = given.pop("token", None)
    tools = ToyHttpTools()
    changing = Changing(tools=True, resources=True, resource_updates=True)
    server = Server(
        Offer(
            name="toy",
            version="1.2.3",
            description="a toy",
            tools=tools,
            resources=ToyResources(),
            changing=changing,
            logs=True,
            tasks=True,
        )
    )
    tools.server = server
    bound = listening_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
    limits = HttpLimits(**{"body_bytes": 65536, "depth": 64, **given})
    endpoint = HttpEndpoint(lambda path: server if path == "/mcp" else None, guard=Guard(token=token), limits=limits)
    return serve_http(endpoint, bound, when_ready=lambda: print(f"toy: serving {url}", file=sys.stderr, flush=True))


if __name__ == "__main__":
    sys.exit(main())
