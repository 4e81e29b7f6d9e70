"""The MCP server: from a request to its result. One table of methods for both eras; no transport, no thread.

`serve` answers one request synchronously and raises RpcError for what is not served. It is safe to call from several
threads: connections are the transport's to order, and the set of connections changes only under its lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from handrail.protocol.exchange import Connection, Exchange, Listener
from handrail.protocol.offer import Offer
from handrail.protocol.revisions import META_SERVER, META_SUBSCRIPTION, STATELESS_REVISIONS, negotiate, stateless_meta
from handrail.protocol.wire import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Request,
    RpcError,
    notification_of,
)

RESOURCE_NOT_FOUND = -32002
"""Handshake revisions only; 2026-07-28 retires the number for plain invalid params."""


class Era(Enum):
    """Which requests a method belongs to."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"
    BOTH = "both"


class Held(Enum):
    """What `serve` returns for a request whose reply comes later or never: a listening stream."""

    OPEN = "open"


Handler = Callable[[Exchange], Any]
_BEFORE_INITIALIZE = ("initialize", "ping", "server/discover")
_CACHEABLE = (
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
)
_LIST_CHANGES = {"toolsListChanged": "notifications/tools/list_changed"}


class Server:
    """Answers requests from what the offer holds."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self._connections: set[Connection] = set()
        self._connections_lock = threading.Lock()
        self._methods: Final[Mapping[str, tuple[Era, Handler]]] = self._method_table()

    def _method_table(self) -> dict[str, tuple[Era, Handler]]:
        table: dict[str, tuple[Era, Handler]] = {
            "initialize": (Era.HANDSHAKE, self._initialize),
            "ping": (Era.HANDSHAKE, lambda _: {}),
            "server/discover": (Era.BOTH, self._discover),
            "subscriptions/listen": (Era.STATELESS, self._listen),
            "shutdown": (Era.BOTH, self._shutdown),
            "tools/list": (Era.BOTH, self._list_tools),
            "tools/call": (Era.BOTH, self._call_tool),
        }
        if self.offer.resources is not None:
            table["resources/list"] = (Era.BOTH, self._list_resources)
            table["resources/templates/list"] = (Era.BOTH, self._list_templates)
            table["resources/read"] = (Era.BOTH, self._read_resource)
        if self.offer.prompts is not None:
            table["prompts/list"] = (Era.BOTH, self._list_prompts)
            table["prompts/get"] = (Era.BOTH, self._get_prompt)
        if self.offer.completions is not None:
            table["completion/complete"] = (Era.BOTH, self._complete)
        return table

    # -- connections ------------------------------------------------------------------------------------------------

    def attach(self, connection: Connection) -> None:
        with self._connections_lock:
            self._connections.add(connection)

    def detach(self, connection: Connection) -> None:
        with self._connections_lock:
            self._connections.discard(connection)

    def announce(self, change: str) -> None:
        """Tells every client that listens for it that a list changed. `change` is a key such as `toolsListChanged`."""
        method = _LIST_CHANGES[change]
        with self._connections_lock:
            connections = tuple(self._connections)
        for connection in connections:
            if connection.revision is not None:
                connection.send(notification_of(method))
            for request_id, listener in tuple(connection.listeners.items()):
                if change in listener.wanted:
                    listener.exchange.notify(method, {"_meta": {META_SUBSCRIPTION: request_id}})

    # -- dispatch ---------------------------------------------------------------------------------------------------

    def waits(self, request: Request) -> bool:
        """True when the request may take long by design and must not hold up the ones behind it."""
        if request.method == "tools/call":
            name = request.params.get("name")
            return isinstance(name, str) and self.offer.tools.waits(name)
        return self.offer.methods is not None and self.offer.methods.waits(request.method)

    def open(self, connection: Connection, request: Request, emit: Callable[[dict[str, Any]], None]) -> Exchange:
        """Settles the era of a request; raises RpcError where its envelope is wrong."""
        stateless = request.method != "initialize" and stateless_meta(request.params) is not None
        return Exchange(connection, request.id, request.method, request.params, stateless=stateless, emit=emit)

    def serve(self, exchange: Exchange) -> Any:
        """The result of one request. Raises RpcError when it is not served, Cancelled when nobody wants it any more."""
        method = exchange.method
        if not exchange.stateless and exchange.connection.revision is None and method not in _BEFORE_INITIALIZE:
            raise RpcError(INVALID_REQUEST, "Invalid Request", {"details": "server not initialized"})
        known = self._methods.get(method)
        if known is None or known[0] is (Era.HANDSHAKE if exchange.stateless else Era.STATELESS):
            return self._serve_extra(exchange)
        result = known[1](exchange)
        if exchange.stateless and isinstance(result, dict):
            self._stamp(method, result)
        return result

    def _serve_extra(self, exchange: Exchange) -> Any:
        methods = self.offer.methods
        if methods is None or not methods.knows(exchange.method):
            raise RpcError(METHOD_NOT_FOUND, "Method not found", {"method": exchange.method})
        params = {key: value for key, value in exchange.params.items() if key != "_meta"}
        return methods.call(exchange, exchange.method, params)

    def _stamp(self, method: str, result: dict[str, Any]) -> None:
        """What 2026-07-28 wants on every result."""
        result.setdefault("resultType", "complete")
        result["_meta"] = {**result.get("_meta", {}), META_SERVER: self.offer.identity()}
        if method in _CACHEABLE:
            result.setdefault("ttlMs", 0)
            result.setdefault("cacheScope", "private")

    # -- lifecycle --------------------------------------------------------------------------------------------------

    def _initialize(self, exchange: Exchange) -> dict[str, Any]:
        params = exchange.params
        requested = _required(params, "protocolVersion", str)
        capabilities = _required(params, "capabilities", dict)
        connection = exchange.connection
        connection.revision = negotiate(requested)
        connection.client_capabilities = capabilities
        client_info = params.get("clientInfo")
        connection.client_info = client_info if isinstance(client_info, dict) else {}
        return self._with_instructions(
            {
                "protocolVersion": connection.revision,
                "capabilities": self.offer.capabilities(),
                "serverInfo": self.offer.identity(),
            }
        )

    def _discover(self, exchange: Exchange) -> dict[str, Any]:
        result = self._with_instructions(
            {"supportedVersions": list(STATELESS_REVISIONS), "capabilities": self.offer.capabilities()}
        )
        if not exchange.stateless:  # a bare probe, sent before the client knows which era we speak
            self._stamp("server/discover", result)
        return result

    def _with_instructions(self, result: dict[str, Any]) -> dict[str, Any]:
        if self.offer.instructions is not None:
            result["instructions"] = self.offer.instructions
        return result

    def _shutdown(self, exchange: Exchange) -> None:
        exchange.connection.closing = True

    def _listen(self, exchange: Exchange) -> Held:
        wanted = exchange.params.get("notifications")
        asked = wanted if isinstance(wanted, dict) else {}
        granted = {change: True for change in _LIST_CHANGES if asked.get(change) is True and self.offer.tools_change}
        exchange.connection.listeners[exchange.request_id] = Listener(exchange, frozenset(granted))
        exchange.notify(
            "notifications/subscriptions/acknowledged",
            {"_meta": {META_SUBSCRIPTION: exchange.request_id}, "notifications": granted},
        )
        return Held.OPEN

    # -- tools ------------------------------------------------------------------------------------------------------

    def _list_tools(self, exchange: Exchange) -> dict[str, Any]:
        return self._page(exchange, "tools", self.offer.tools.published())

    def _call_tool(self, exchange: Exchange) -> dict[str, Any]:
        name = _required(exchange.params, "name", str)
        arguments = exchange.params.get("arguments")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "Invalid params", {"details": "arguments must be an object"})
        return self.offer.tools.call(exchange, name, arguments)

    # -- resources, prompts, completions ----------------------------------------------------------------------------

    def _list_resources(self, exchange: Exchange) -> dict[str, Any]:
        assert self.offer.resources is not None
        return self._page(exchange, "resources", self.offer.resources.published())

    def _list_templates(self, exchange: Exchange) -> dict[str, Any]:
        assert self.offer.resources is not None
        return self._page(exchange, "resourceTemplates", self.offer.resources.templates())

    def _read_resource(self, exchange: Exchange) -> dict[str, Any]:
        assert self.offer.resources is not None
        uri = _required(exchange.params, "uri", str)
        contents = self.offer.resources.read(exchange, uri)
        if contents is None:
            code = INVALID_PARAMS if exchange.stateless else RESOURCE_NOT_FOUND
            raise RpcError(code, "Resource not found", {"uri": uri})
        return {"contents": list(contents)}

    def _list_prompts(self, exchange: Exchange) -> dict[str, Any]:
        assert self.offer.prompts is not None
        return self._page(exchange, "prompts", self.offer.prompts.published())

    def _get_prompt(self, exchange: Exchange) -> dict[str, Any]:
        assert self.offer.prompts is not None
        name = _required(exchange.params, "name", str)
        arguments = exchange.params.get("arguments") or {}
        if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
            raise RpcError(INVALID_PARAMS, "Invalid params", {"details": "arguments must be an object of strings"})
        prompt = self.offer.prompts.get(exchange, name, arguments)
        if prompt is None:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {name}", {"name": name})
        return prompt

    def _complete(self, exchange: Exchange) -> dict[str, Any]:
        assert self.offer.completions is not None
        reference = _required(exchange.params, "ref", dict)
        argument = _required(exchange.params, "argument", dict)
        values = list(self.offer.completions.complete(exchange, reference, argument))
        return {"completion": {"values": values[:100], "total": len(values), "hasMore": len(values) > 100}}

    # -- paging -----------------------------------------------------------------------------------------------------

    def _page(self, exchange: Exchange, key: str, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """One page of a list. The cursor is the offset of the next item: opaque to clients, checked when it comes
        back."""
        cursor = exchange.params.get("cursor")
        start = 0
        if cursor is not None:
            if cursor not in (str(offset) for offset in range(self.offer.page_size, len(items), self.offer.page_size)):
                raise RpcError(INVALID_PARAMS, "Invalid params", {"details": "cursor is not one this server gave out"})
            start = int(cursor)
        end = start + self.offer.page_size
        result: dict[str, Any] = {key: list(items[start:end])}
        if end < len(items):
            result["nextCursor"] = str(end)
        return result


def _required(params: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    """A member every caller must send; the error names it the way guide.md does."""
    value = params.get(key)
    if value is None:
        raise RpcError(INVALID_PARAMS, "Invalid params", {"details": f"{key} is required"})
    if not isinstance(value, kind):
        expected = "a string" if kind is str else "an object"
        raise RpcError(INVALID_PARAMS, "Invalid params", {"details": f"{key} must be {expected}"})
    return value
