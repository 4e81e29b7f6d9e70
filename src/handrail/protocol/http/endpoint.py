"""The ASGI application: both eras on one address. Stateless requests stand alone; handshake clients get sessions.

This module decides what a request means and who sent it; `delivery.py` runs its handler and sends its reply. Handlers
run on worker threads, and the event loop only moves bytes. The order of requests is not kept, as the revisions allow.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from handrail.protocol.exchange import Connection, Exchange
from handrail.protocol.http.connections import welcome
from handrail.protocol.http.delivery import Delivery, StreamReader, stateless_status
from handrail.protocol.http.guard import Admission, Found, Guard, Principal, Rejection
from handrail.protocol.http.headers import check_headers, headers_of
from handrail.protocol.http.reply import TOO_LARGE, Reply, Stream, position_of
from handrail.protocol.http.sessions import HttpSession, Sessions
from handrail.protocol.replies import answer
from handrail.protocol.revisions import (
    BATCH_REVISION,
    HANDSHAKE_REVISIONS,
    META_VERSION,
    NEWEST_HANDSHAKE,
    STATELESS_REVISIONS,
)
from handrail.protocol.server import Server
from handrail.protocol.wire import (
    METHOD_NOT_FOUND,
    Batch,
    Malformed,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    RpcError,
    cancelled_id,
    encode,
    error_of,
    invalid_request,
    parse,
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_DECISIVE = ("host", "origin", "authorization")
"""Headers that decide who may call. If one is repeated, a proxy may have checked another value than we would."""


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one HTTP endpoint."""

    body_bytes: int
    body_s: float = 30.0
    depth: int = 128
    sessions: int = 1000
    session_idle_s: float = 3600.0
    workers: int = 64
    """Calls served at once. Threads are created when needed; a call that waits for a person's answer keeps its own."""
    waiting_calls: int = 128
    ping_s: float = 15.0
    retry_ms: int = 500


class HttpCaller(NamedTuple):
    """One request before its body is read: who sent it, and which server it is for."""

    server: Server
    headers: dict[str, str]
    repeated: str | None
    """The first header that was repeated and must not be."""
    principal: Principal | None
    """Who the token stands for; None for the server's own token, or if none is required."""

    def owns(self, connection: Connection) -> bool:
        """True if the connection was opened by the same principal."""
        other: Principal | None = connection.principal
        mine = self.principal
        return other is mine or (other is not None and mine is not None and other.id == mine.id)


class HttpEndpoint:
    """Serves MCP under the paths that `server_for` knows; callers who may only read get `read_only_server_for`."""

    def __init__(
        self,
        server_for: Callable[[str], Server | None],
        *,
        guard: Guard,
        limits: HttpLimits,
        read_only_server_for: Callable[[str], Server | None] = lambda _: None,
        why_not: Callable[[str], str] = lambda _: "nothing is served at this path",
        new_id: Callable[[], str] = lambda: os.urandom(16).hex(),
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server_for = server_for
        self._read_only_server_for = read_only_server_for
        self._why_not = why_not
        self._admission = Admission(guard, now_s=now_s)
        self._limits = limits
        self.sessions = Sessions(most=limits.sessions, idle_s=limits.session_idle_s, new_id=new_id, now_s=now_s)
        self._delivery = Delivery(
            workers=limits.workers, waiting_calls=limits.waiting_calls, ping_s=limits.ping_s, retry_ms=limits.retry_ms
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers, repeated = headers_of(scope["headers"], _must_be_one)
        reply = Reply(receive, send)
        if repeated in _DECISIVE:
            await reply.refuse(400, f"the header {repeated} must not come twice")
            return
        admitted = await self._admission.admit(headers)
        if isinstance(admitted, Rejection):
            await reply.refuse(admitted.status, admitted.reason, admitted.headers)
            return
        welcome(scope)
        whole = admitted is None or admitted.may_write
        server = (self._server_for if whole else self._read_only_server_for)(scope["path"])
        if server is None:
            await reply.refuse(404, self._why_not(scope["path"]))
            return
        caller = HttpCaller(server, headers, repeated, admitted)
        if scope["method"] == "POST":
            await self._post(reply, caller)
        elif headers.get("mcp-protocol-version", NEWEST_HANDSHAKE) not in HANDSHAKE_REVISIONS:
            await reply.refuse(405, "this revision of the protocol has POST only", ((b"allow", b"POST"),))
        elif scope["method"] == "GET":
            await self._get(reply, caller)
        elif scope["method"] == "DELETE":
            await self._delete(reply, caller)
        else:
            await reply.refuse(405, "this address takes GET, POST and DELETE", ((b"allow", b"GET, POST, DELETE"),))

    async def admit(self, headers: Mapping[str, str]) -> Found:
        """The principal these headers stand for, or why they are refused: for anything else served at this address."""
        return await self._admission.admit(headers)

    def drain(self) -> None:
        """Stops soon: listening streams end with their reply, standing ones end; running calls continue to theirs
        unless they wait for an answer that can no longer come."""
        self._delivery.drain()
        self.sessions.stop_asking()

    def is_stuck(self) -> bool:
        """True while a handler or a lookup has not returned."""
        return self._delivery.is_stuck() or self._admission.is_asking()

    def close(self) -> None:
        """Called after the last connection: ends sessions and stops waiting for running handlers."""
        self.sessions.end_all()
        self._delivery.close()
        self._admission.close()

    # -- POST -------------------------------------------------------------------------------------------------------

    async def _post(self, reply: Reply, caller: HttpCaller) -> None:
        headers = caller.headers
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            await reply.refuse(415, "send the header Content-Type: application/json")
            return
        if not _accepts_both(headers.get("accept", "")):
            await reply.refuse(406, "send the header Accept: application/json, text/event-stream")
            return
        body = await reply.body(self._limits.body_bytes, self._limits.body_s)
        if isinstance(body, int):
            await reply.refuse(body, self._why_unread(body), ((b"connection", b"close"),))
            return
        message = parse(body, max_depth=self._limits.depth)
        if isinstance(message, Malformed):
            await reply.json(400, encode(error_of(message.id, message.error)))
        elif _is_stateless(message, headers.get("mcp-protocol-version")):
            await self._stateless(reply, caller, message)
        else:
            await self._handshake(reply, caller, message)

    def _why_unread(self, status: int) -> str:
        if status == TOO_LARGE:
            return f"the body is larger than {self._limits.body_bytes} bytes, the most this server reads"
        return f"the body did not come whole within {self._limits.body_s:g} s"

    async def _stateless(self, reply: Reply, caller: HttpCaller, message: Message) -> None:
        if not isinstance(message, Request):
            known = caller.headers.get("mcp-protocol-version") in STATELESS_REVISIONS
            if isinstance(message, Notification) and known:
                await reply.empty(202)
                return
            error = invalid_request("the body must be one request")
            await reply.json(400, encode(error_of(None, error)))
            return
        stream = Stream(asyncio.get_running_loop())
        try:
            exchange = _open_stateless(caller, message, stream)
        except RpcError as error:
            await reply.json(stateless_status(error.code), encode(error_of(message.id, error)))
            return
        self._delivery.start(caller.server, message, exchange, stream)
        reader = StreamReader(on_leave=exchange.cancel, is_welcome=lambda: self._is_welcome(caller))
        try:
            await self._delivery.respond(reply, stream, reader)
        finally:
            caller.server.subscribers.detach(exchange.connection)

    async def _handshake(self, reply: Reply, caller: HttpCaller, message: Message) -> None:
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(reply, caller, message)
            return
        session = self._session(caller)
        if session is None:
            status, details = _why_no_session(caller.headers)
            error = invalid_request(details)
            request_id = message.id if isinstance(message, Request) else None
            await reply.json(status, encode(error_of(request_id, error)))
        elif isinstance(message, Request):
            await self._in_session(reply, caller, session, message)
        elif isinstance(message, Batch):
            await self._batch(reply, session, message)
        else:
            if isinstance(message, Response):
                session.connection.settle(message)
            elif (unwanted := cancelled_id(message)) is not None:
                _cancel(session, unwanted)
            await reply.empty(202)

    async def _initialize(self, reply: Reply, caller: HttpCaller, request: Request) -> None:
        draining = self._delivery.draining
        session = None if draining else self.sessions.open(caller.server, asyncio.get_running_loop())
        if session is None:
            why = "the server is leaving" if draining else "too many sessions are at work; try again soon"
            await reply.refuse(503, why, ((b"retry-after", b"5"),))
            return
        session.connection.principal = caller.principal
        exchange = caller.server.open(session.connection, request, session.standing.emit)
        answered = answer(caller.server, exchange)
        extra: tuple[tuple[bytes, bytes], ...] = ()
        if session.connection.revision is not None:
            self.sessions.keep(session)
            extra = ((b"mcp-session-id", session.id.encode()),)
        await reply.json(200, answered.data or b"", extra)

    async def _in_session(self, reply: Reply, caller: HttpCaller, session: HttpSession, request: Request) -> None:
        stream = session.new_stream()
        exchange = session.server.open(session.connection, request, stream.emit)
        exchange.close_stream = stream.kick
        session.running[request.id] = exchange
        self._delivery.start(session.server, request, exchange, stream, done=lambda: session.ended(exchange))
        await self._delivery.respond(
            reply, stream, StreamReader(session, is_welcome=lambda: self._is_welcome(caller, session))
        )
        if session.connection.closing:
            self.sessions.end(session)

    async def _batch(self, reply: Reply, session: HttpSession, batch: Batch) -> None:
        """An array of messages, which only one revision allows; answered with plain JSON."""
        if session.connection.revision != BATCH_REVISION or not batch.messages:
            error = invalid_request("the body must be one message")
            await reply.json(400, encode(error_of(None, error)))
            return
        replies: list[bytes] = []
        for message in batch.messages:
            if isinstance(message, Malformed):
                replies.append(encode(error_of(message.id, message.error)))
            elif isinstance(message, Response):
                session.connection.settle(message)
            elif (unwanted := cancelled_id(message)) is not None:
                _cancel(session, unwanted)
            elif isinstance(message, Request):
                data = await self._delivery.run(partial(_answer_in_batch, session, message))
                replies.extend([data] if data is not None else [])
        if replies:
            await reply.json(200, b"[" + b",".join(replies) + b"]")
        else:
            await reply.empty(202)

    # -- GET and DELETE ---------------------------------------------------------------------------------------------

    def _session(self, caller: HttpCaller) -> HttpSession | None:
        """The session a request names, if the same principal opened it under the same path."""
        session = self.sessions.find(caller.headers.get("mcp-session-id", ""))
        if session is None or session.server is not caller.server or not caller.owns(session.connection):
            return None
        return session

    async def _is_welcome(self, caller: HttpCaller, session: HttpSession | None = None) -> bool:
        """Whether the caller would still be admitted. If not, their session ends; if only the lookup failed, just this
        reader is sent away."""
        if caller.principal is None:
            return True
        admitted = await self._admission.admit(caller.headers)
        if not isinstance(admitted, Rejection):
            return True
        if session is not None and admitted.status < 500:
            self.sessions.end(session)
        return False

    async def _get(self, reply: Reply, caller: HttpCaller) -> None:
        """The standing channel of a session, or an interrupted stream that is resumed."""
        headers = caller.headers
        session = self._session(caller)
        if session is None:
            await reply.refuse(*_why_no_session(headers))
            return
        if "text/event-stream" not in headers.get("accept", ""):
            await reply.refuse(406, "send the header Accept: text/event-stream")
            return
        stream: Stream | None = session.standing
        after = session.standing.delivered
        if (last := headers.get("last-event-id")) is not None:
            place = position_of(last)
            stream = session.stream(place[0]) if place is not None else None
            after = place[1] if place is not None else 0
        if stream is None:
            await reply.refuse(404, "there is nothing to resume under this Last-Event-ID; call again")
            return
        stream.kicked = False
        await reply.start_events()
        reader = StreamReader(session, is_welcome=lambda: self._is_welcome(caller, session))
        await self._delivery.pump(reply, stream, after, reader)

    async def _delete(self, reply: Reply, caller: HttpCaller) -> None:
        session = self._session(caller)
        if session is None:
            await reply.refuse(*_why_no_session(caller.headers))
            return
        self.sessions.end(session)
        await reply.empty(200)


def _must_be_one(name: str) -> bool:
    return name.startswith("mcp-") or name in _DECISIVE


def _why_no_session(headers: dict[str, str]) -> tuple[int, str]:
    if "mcp-session-id" in headers:
        return 404, "this session has ended; initialize again"
    return 400, "the header Mcp-Session-Id is missing; initialize gives it"


def _accepts_both(accept: str) -> bool:
    return "*/*" in accept or ("application/json" in accept and "text/event-stream" in accept)


def _is_stateless(message: Message, version: str | None) -> bool:
    meta = message.params.get("_meta") if isinstance(message, Request) else None
    enveloped = isinstance(meta, dict) and META_VERSION in meta
    if isinstance(message, Request) and message.method == "initialize":
        # A client that probed first may still send the stateless version in the header of a real handshake.
        return enveloped and version in STATELESS_REVISIONS
    return enveloped or (version is not None and version not in HANDSHAKE_REVISIONS)


def _open_stateless(caller: HttpCaller, request: Request, stream: Stream) -> Exchange:
    server = caller.server
    check_headers(caller.headers, caller.repeated, request, _named_tool(server, request))
    if request.method == "initialize":
        raise RpcError(METHOD_NOT_FOUND, "Method not found", {"method": request.method})
    connection = Connection(stream.emit, lasting=False)
    connection.principal = caller.principal
    return server.open(connection, request, stream.emit)


def _answer_in_batch(session: HttpSession, request: Request) -> bytes | None:
    try:
        exchange = session.server.open(session.connection, request, session.standing.emit)
    except RpcError as error:
        return encode(error_of(request.id, error))
    return answer(session.server, exchange).data


def _named_tool(server: Server, request: Request) -> Any:
    if request.method != "tools/call":
        return None
    name = request.params.get("name")
    return next((tool for tool in server.offer.tools.published() if tool["name"] == name), None)


def _cancel(session: HttpSession, request_id: RequestId) -> None:
    exchange = session.running.get(request_id)
    if exchange is not None:
        exchange.cancel()
