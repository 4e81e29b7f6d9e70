"""The MCP server: turns a request into its result. One table of methods serves both eras; no transports, no threads.

`serve` answers one request synchronously and raises RpcError for anything it does not serve. It is safe to call from
several threads: state shared between connections changes only under a lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Any, Final

from handrail.protocol.client_requests import MAY_ASK, Answers, InputRequired, StateSeal
from handrail.protocol.exchange import LOG_LEVELS, Connection, Exchange, Send
from handrail.protocol.features import Handler, feature_methods, required
from handrail.protocol.offer import AsksPeople, Offer
from handrail.protocol.revisions import (
    META_LOG_LEVEL,
    META_SERVER,
    META_SUBSCRIPTION,
    META_VERSION,
    STATELESS_REVISIONS,
    negotiate,
    stateless_meta,
)
from handrail.protocol.subscriptions import Subscribers, Subscription
from handrail.protocol.tasks import TaskBoard, require_tasks
from handrail.protocol.wire import (
    METHOD_NOT_FOUND,
    Request,
    RpcError,
    encode,
    invalid_params,
    invalid_request,
    result_of,
)


class Era(Enum):
    """Which requests a method belongs to."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"
    BOTH = "both"


class HeldStream(Enum):
    """What `serve` returns for a listening stream, whose reply comes later or never."""

    OPEN = "open"


_BEFORE_INITIALIZE = ("initialize", "ping", "server/discover")
_CACHEABLE = (
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
)


def _utc_now() -> str:
    ms = time.time_ns() // 1_000_000
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03d}Z"


def _meta_of(request: Request) -> Mapping[str, Any]:
    meta = request.params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _check_level(name: str, level: object) -> None:
    if level not in LOG_LEVELS:
        details = f"{name} must be one of {', '.join(LOG_LEVELS)}"
        raise invalid_params(details)


class Server:
    """Answers requests using the providers in its offer."""

    def __init__(
        self,
        offer: Offer,
        *,
        state_key: bytes | None = None,
        new_id: Callable[[], str] = lambda: os.urandom(16).hex(),
        now: Callable[[], str] = _utc_now,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self.offer = offer
        self.subscribers = Subscribers()
        self._asks = offer.tools if isinstance(offer.tools, AsksPeople) else None
        self._now_s = now_s
        self._state_key = state_key if state_key is not None else os.urandom(32)
        self._board = TaskBoard(
            new_id=new_id, now=now, changed=lambda task: self.subscribers.task_changed(task.id, task.as_dict())
        )
        self._methods: Final[Mapping[str, tuple[Era, Handler]]] = self._method_table()

    def _method_table(self) -> dict[str, tuple[Era, Handler]]:
        table: dict[str, tuple[Era, Handler]] = {
            "initialize": (Era.HANDSHAKE, self._initialize),
            "ping": (Era.HANDSHAKE, lambda _: {}),
            "server/discover": (Era.BOTH, self._discover),
            "subscriptions/listen": (Era.STATELESS, self._listen),
            "shutdown": (Era.BOTH, self._shutdown),
        }
        for method, handler in feature_methods(self.offer, self._board).items():
            table[method] = (Era.BOTH, handler)
        if self.offer.changing.resource_updates:
            table["resources/subscribe"] = (Era.HANDSHAKE, self._subscribe)
            table["resources/unsubscribe"] = (Era.HANDSHAKE, self._unsubscribe)
        if self.offer.logs:
            table["logging/setLevel"] = (Era.HANDSHAKE, self._set_level)
        if self.offer.tasks:
            table["tasks/get"] = (Era.STATELESS, self._get_task)
            table["tasks/update"] = (Era.STATELESS, self._update_task)
            table["tasks/cancel"] = (Era.STATELESS, self._cancel_task)
        return table

    # -- dispatch ---------------------------------------------------------------------------------------------------

    def waits(self, connection: Connection, request: Request) -> bool:
        """True when the request may take long by design and must not hold up those behind it: it waits for news, or for
        a person's answer while it runs."""
        if request.method != "tools/call":
            if request.method in self._methods:  # MCP's own never wait, and finding that out must not load the offer
                return False
            methods = self.offer.methods
            waiting = methods is not None and methods.waits(request.method, request.params)
            return waiting or self._may_ask_live(connection, request, request.method)
        name = request.params.get("name")
        arguments = request.params.get("arguments")
        if not isinstance(name, str):
            return False
        waiting = self.offer.tools.waits(name, arguments if isinstance(arguments, dict) else {})
        return waiting or self._may_ask_live(connection, request, name)

    def _may_ask_live(self, connection: Connection, request: Request, name: str) -> bool:
        return (
            self._asks is not None
            and connection.has_forms
            and self._asks.asks(name)
            and META_VERSION not in _meta_of(request)
        )

    def is_quick(self, request: Request) -> bool:
        """True when serving the request cannot take long, so that a transport may serve it on the thread it is on."""
        name = request.params.get("name") if request.method == "tools/call" else request.method
        return isinstance(name, str) and self.offer.is_quick(name)

    def open(self, connection: Connection, request: Request, emit: Send) -> Exchange:
        """Determines the era of a request; raises RpcError if its envelope is wrong."""
        stateless = request.method != "initialize" and stateless_meta(request.params) is not None
        exchange = Exchange(connection, request.id, request.method, request.params, stateless=stateless, emit=emit)
        if stateless and self.offer.logs and (level := exchange.meta.get(META_LOG_LEVEL)) is not None:
            _check_level(f"_meta['{META_LOG_LEVEL}']", level)
        if stateless and request.method in MAY_ASK:
            exchange.answers = self._answers(request)
        return exchange

    def serve(self, exchange: Exchange) -> Any:
        """The result of one request. Raises RpcError if it is not served, Cancelled if it is no longer wanted."""
        method = exchange.method
        if not exchange.stateless and exchange.connection.revision is None and method not in _BEFORE_INITIALIZE:
            raise invalid_request("server not initialized")
        known = self._methods.get(method)
        if known is None or known[0] is (Era.HANDSHAKE if exchange.stateless else Era.STATELESS):
            return self._serve_extra(exchange)
        try:
            result = known[1](exchange)
        except InputRequired as question:
            result = self._ask_back(exchange, question)
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
        """Adds what 2026-07-28 requires on every result."""
        result.setdefault("resultType", "complete")
        result["_meta"] = {**result.get("_meta", {}), META_SERVER: self.offer.identity()}
        if method in _CACHEABLE:
            result.setdefault("ttlMs", 0)
            result.setdefault("cacheScope", "private")

    # -- asking back ------------------------------------------------------------------------------------------------

    def _seal(self) -> StateSeal:
        return StateSeal(self._state_key, now_s=self._now_s())

    def _answers(self, request: Request) -> Answers:
        fresh = request.params.get("inputResponses")
        sealed = request.params.get("requestState")
        kept: dict[str, Any] = {}
        if sealed is not None:
            try:
                kept = self._seal().open(request.method, request.params, sealed)
            except ValueError as problem:
                raise invalid_params(str(problem)) from None
        return Answers(fresh if isinstance(fresh, dict) else None, kept)

    def _ask_back(self, exchange: Exchange, question: InputRequired) -> dict[str, Any]:
        return {
            "resultType": "input_required",
            "inputRequests": {key: request.as_dict() for key, request in question.requests.items()},
            "requestState": self._seal().seal(exchange.method, exchange.params, question.answers),
        }

    # -- lifecycle --------------------------------------------------------------------------------------------------

    def _initialize(self, exchange: Exchange) -> dict[str, Any]:
        params = exchange.params
        requested = required(params, "protocolVersion", str)
        capabilities = required(params, "capabilities", dict)
        connection = exchange.connection
        connection.revision = negotiate(requested)
        connection.client_capabilities = capabilities
        client_info = params.get("clientInfo")
        connection.client_info = client_info if isinstance(client_info, dict) else {}
        return self._with_instructions(
            {
                "protocolVersion": connection.revision,
                "capabilities": self.offer.capabilities(stateless=False),
                "serverInfo": self.offer.identity(),
            }
        )

    def _discover(self, exchange: Exchange) -> dict[str, Any]:
        capabilities = self.offer.capabilities(stateless=True)
        result = self._with_instructions({"supportedVersions": list(STATELESS_REVISIONS), "capabilities": capabilities})
        if not exchange.stateless:  # a bare probe, from a client that does not know yet which era we speak
            self._stamp("server/discover", result)
        return result

    def _with_instructions(self, result: dict[str, Any]) -> dict[str, Any]:
        if self.offer.instructions is not None:
            result["instructions"] = self.offer.instructions
        return result

    def _shutdown(self, exchange: Exchange) -> None:
        exchange.connection.closing = True

    # -- subscriptions, levels, tasks -------------------------------------------------------------------------------

    def _listen(self, exchange: Exchange) -> HeldStream:
        asked = exchange.params.get("notifications")
        asked = asked if isinstance(asked, dict) else {}
        if asked.get("taskIds"):
            require_tasks(exchange)
        listener = Subscription(exchange, asked, offer=self.offer)
        granted = {"_meta": {META_SUBSCRIPTION: exchange.request_id}, "notifications": listener.granted()}
        with self._opening(exchange) if listener.resources else nullcontext():
            self.subscribers.listen(
                listener, lambda: exchange.notify("notifications/subscriptions/acknowledged", granted)
            )
        return HeldStream.OPEN

    def farewell(self, exchange: Exchange) -> bytes:
        """The final reply of a listening stream, sent when the server ends it."""
        result: dict[str, Any] = {"_meta": {META_SUBSCRIPTION: exchange.request_id}}
        self._stamp(exchange.method, result)
        return encode(result_of(exchange.request_id, result))

    def _subscribe(self, exchange: Exchange) -> dict[str, Any]:
        uri = required(exchange.params, "uri", str)
        if self.offer.watching is not None:
            self.offer.watching.check(exchange, uri)
        with self._opening(exchange):
            exchange.connection.subscribed.add(uri)
        return {}

    def _opening(self, exchange: Exchange) -> AbstractContextManager[None]:
        watching = self.offer.watching
        return watching.opening(exchange) if watching is not None else nullcontext()

    def _unsubscribe(self, exchange: Exchange) -> dict[str, Any]:
        exchange.connection.subscribed.discard(required(exchange.params, "uri", str))
        return {}

    def _set_level(self, exchange: Exchange) -> dict[str, Any]:
        level = required(exchange.params, "level", str)
        _check_level("level", level)
        exchange.connection.log_level = level
        return {}

    def _get_task(self, exchange: Exchange) -> dict[str, Any]:
        require_tasks(exchange)
        return self._board.find(exchange.params.get("taskId")).as_dict()

    def _update_task(self, exchange: Exchange) -> dict[str, Any]:
        require_tasks(exchange)
        task = self._board.find(exchange.params.get("taskId"))
        responses = exchange.params.get("inputResponses")
        task.answer(responses if isinstance(responses, dict) else {})
        return {}

    def _cancel_task(self, exchange: Exchange) -> dict[str, Any]:
        require_tasks(exchange)
        self._board.find(exchange.params.get("taskId")).cancel()
        return {}
