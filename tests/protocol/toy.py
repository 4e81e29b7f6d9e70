"""A small server that knows no Handrail word, for the protocol's own tests."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from handrail.protocol.exchange import Connection, Exchange
from handrail.protocol.offer import NoResources, Offer, TaskUse
from handrail.protocol.revisions import META_CAPABILITIES, META_VERSION, NEWEST
from handrail.protocol.server import Server
from handrail.protocol.wire import INVALID_PARAMS, Request, RpcError

STATELESS_META = {META_VERSION: NEWEST, META_CAPABILITIES: {}}


class ToyTools:
    """`echo` answers, `fail` raises, `count` reports progress, `wait` waits beside the lane until it is released."""

    def __init__(self, names: Sequence[str] = ("echo", "fail", "count", "wait")) -> None:
        self.names = list(names)
        self.release = threading.Event()
        self.started = threading.Event()

    def published(self) -> Sequence[Mapping[str, Any]]:
        return [{"name": name, "inputSchema": {"type": "object"}} for name in self.names]

    def waits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        return name == "wait"

    def task_use(self, name: str) -> TaskUse:
        return TaskUse.NEVER

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if name == "fail":
            raise ZeroDivisionError("a bug in a handler")
        if name == "count":
            for step in (1, 2, 2, 3):
                exchange.progress(step, total=3, message=f"step {step}")
        if name == "wait":
            self.started.set()
            assert self.release.wait(10)
            exchange.raise_if_cancelled()
        if name == "print":
            print("this must not reach the wire")
        if name not in (*self.names, "print"):
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}", {"name": name})
        return {"content": [{"type": "text", "text": str(arguments.get("text", ""))}]}


class ToyMethods:
    """One method beside MCP's own."""

    def knows(self, method: str) -> bool:
        return method == "shout"

    def waits(self, method: str, params: Mapping[str, Any]) -> bool:
        return False

    def call(self, exchange: Exchange, method: str, params: Mapping[str, Any]) -> Any:
        return {"shouted": str(params.get("text", "")).upper()}


def toy_offer(**changes: Any) -> Offer:
    parts: dict[str, Any] = {
        "name": "toy",
        "version": "1.2.3",
        "description": "a toy",
        "tools": ToyTools(),
        "methods": ToyMethods(),
        "resources": NoResources(),
    }
    return Offer(**{**parts, **changes})


class Client:
    """Talks to a server without a transport."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.heard: list[dict[str, Any]] = []
        self.connection = Connection(self.heard.append)
        server.subscribers.attach(self.connection)

    def ask(self, method: str, params: dict[str, Any] | None = None, request_id: str | int = 1) -> Any:
        request = Request(request_id, method, params or {})
        return self.server.serve(self.server.open(self.connection, request, self.heard.append))

    def ask_stateless(self, method: str, params: dict[str, Any] | None = None, request_id: str | int = 1) -> Any:
        return self.ask(method, {**(params or {}), "_meta": STATELESS_META}, request_id)

    def initialize(self, version: str = "2025-11-25") -> Any:
        return self.ask("initialize", {"protocolVersion": version, "capabilities": {}})
