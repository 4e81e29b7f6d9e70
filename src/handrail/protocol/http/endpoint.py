"""The ASGI application: both eras on one address. Stateless requests stand alone; handshake clients get sessions.

A reply is plain JSON unless its handler says something first, or takes long: then it is a stream of events. Handlers
run on worker threads; the event loop only moves bytes. Order between requests is not promised here, as the revisions
have it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from handrail.protocol.answering import answer, cancelled
from handrail.protocol.exchange import Connection, Exchange
from handrail.protocol.http.guard import Guard
from handrail.protocol.http.headers import check_headers
from handrail.protocol.http.reply import TOO_LARGE, Reply
from handrail.protocol.http.sessions import STANDING, Session, Sessions
from handrail.protocol.http.streams import Stream, event_of, position_of, priming_event
from handrail.protocol.revisions import (
    BATCH_REVISION,
    HANDSHAKE_REVISIONS,
    META_VERSION,
    NEWEST_HANDSHAKE,
    STATELESS_REVISIONS,
    UNSUPPORTED_VERSION,
)
from handrail.protocol.server import Server
from handrail.protocol.wire import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Batch,
    Malformed,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    RpcError,
    encode,
    error_of,
    parse,
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_STATELESS_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    -32020: 400,
    -32021: 400,
    UNSUPPORTED_VERSION: 400,
}
_DECISIVE = ("host", "origin", "authorization")
"""Headers that decide who may speak: given twice, nobody can tell which one another program went by."""
_WATCH_AFTER_S = 0.02
"""A reply faster than this is not worth watching the client's connection for."""


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one HTTP endpoint."""

    body_bytes: int
    body_s: float = 30.0
    depth: int = 128
    sessions: int = 1000
    session_idle_s: float = 3600.0
    workers: int = 64
    """Calls served at once. Threads are made when needed; one that waits for a person's answer keeps its own."""
    waiting_calls: int = 128
    ping_s: float = 15.0
    retry_ms: int = 500


class HttpEndpoint:
    """Serves MCP under the paths that `server_for` knows."""

    def __init__(
        self,
        server_for: Callable[[str], Server | None],
        *,
        guard: Guard,
        limits: HttpLimits,
        why_not: Callable[[str], str] = lambda _: "nothing is served at this path",
        new_id: Callable[[], str] = lambda: os.urandom(16).hex(),
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server_for = server_for
        self._why_not = why_not
        self._guard = guard
        self._limits = limits
        self.sessions = Sessions(most=limits.sessions, idle_s=limits.session_idle_s, new_id=new_id, now_s=now_s)
        self._workers = ThreadPoolExecutor(limits.workers, thread_name_prefix="handrail-call")
        self._waiters = ThreadPoolExecutor(limits.waiting_calls, thread_name_prefix="handrail-wait")
        self._open_streams: set[Stream] = set()
        self._draining = False
        self._running = 0
        self._counting = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers, repeated = _headers_of(scope)
        reply = Reply(receive, send)
        if repeated in _DECISIVE:
            await reply.refuse(400, f"the header {repeated} must not come twice")
            return
        rejection = self._guard.check(headers)
        if rejection is not None:
            await reply.refuse(rejection.status, rejection.reason, rejection.headers)
            return
        server = self._server_for(scope["path"])
        if server is None:
            await reply.refuse(404, self._why_not(scope["path"]))
        elif scope["method"] == "POST":
            await self._post(reply, server, headers, repeated)
        elif headers.get("mcp-protocol-version", NEWEST_HANDSHAKE) not in HANDSHAKE_REVISIONS:
            await reply.refuse(405, "this revision of the protocol has POST only", ((b"allow", b"POST"),))
        elif scope["method"] == "GET":
            await self._get(reply, server, headers)
        elif scope["method"] == "DELETE":
            await self._delete(reply, server, headers)
        else:
            await reply.refuse(405, "this address takes GET, POST and DELETE", ((b"allow", b"GET, POST, DELETE"),))

    def drain(self) -> None:
        """Leave soon: listening streams end with their reply and standing ones end; running calls go on to theirs,
        unless they wait for an answer that cannot come any more."""
        self._draining = True
        for stream in tuple(self._open_streams):
            if stream.held:
                stream.finish(stream.farewell)
            elif stream.name == STANDING:
                stream.kick()
        self.sessions.stop_asking()

    def is_stuck(self) -> bool:
        """True while a handler has not come back."""
        return self._running > 0

    def close(self) -> None:
        """After the last connection: ends sessions and lets running handlers go."""
        self.sessions.end_all()
        for pool in (self._workers, self._waiters):
            pool.shutdown(wait=False, cancel_futures=True)

    # -- POST -------------------------------------------------------------------------------------------------------

    async def _post(self, reply: Reply, server: Server, headers: dict[str, str], repeated: str | None) -> None:
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
            await self._stateless(reply, server, message, headers, repeated)
        else:
            await self._handshake(reply, server, message, headers)

    def _why_unread(self, status: int) -> str:
        if status == TOO_LARGE:
            return f"the body is larger than {self._limits.body_bytes} bytes, the most this server reads"
        return f"the body did not come whole within {self._limits.body_s:g} s"

    async def _stateless(
        self, reply: Reply, server: Server, message: Message, headers: dict[str, str], repeated: str | None
    ) -> None:
        if not isinstance(message, Request):
            known = headers.get("mcp-protocol-version") in STATELESS_REVISIONS
            if isinstance(message, Notification) and known:
                await reply.empty(202)
                return
            error = RpcError(INVALID_REQUEST, "Invalid Request", {"details": "the body must be one request"})
            await reply.json(400, encode(error_of(None, error)))
            return
        stream = Stream(asyncio.get_running_loop())
        try:
            exchange = _open_stateless(server, message, headers, repeated, stream)
        except RpcError as error:
            await reply.json(_STATELESS_STATUS.get(error.code, 200), encode(error_of(message.id, error)))
            return
        self._start(server, message, exchange, stream)
        try:
            await self._respond(reply, stream, on_leave=exchange.cancel)
        finally:
            server.subscribers.detach(exchange.connection)

    async def _handshake(self, reply: Reply, server: Server, message: Message, headers: dict[str, str]) -> None:
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(reply, server, message)
            return
        session = self._session(server, headers)
        if session is None:
            status, details = _why_no_session(headers)
            error = RpcError(INVALID_REQUEST, "Invalid Request", {"details": details})
            request_id = message.id if isinstance(message, Request) else None
            await reply.json(status, encode(error_of(request_id, error)))
        elif isinstance(message, Request):
            await self._in_session(reply, session, message)
        elif isinstance(message, Batch):
            await self._batch(reply, session, message)
        else:
            if isinstance(message, Response):
                session.connection.settle(message)
            elif isinstance(message, Notification) and message.method == "notifications/cancelled":
                _cancel(session, message.params.get("requestId"))
            await reply.empty(202)

    async def _initialize(self, reply: Reply, server: Server, request: Request) -> None:
        session = None if self._draining else self.sessions.open(server, asyncio.get_running_loop())
        if session is None:
            why = "the server is leaving" if self._draining else "too many sessions are at work; try again soon"
            await reply.refuse(503, why, ((b"retry-after", b"5"),))
            return
        exchange = server.open(session.connection, request, session.standing.emit)
        answered = answer(server, exchange)
        extra: tuple[tuple[bytes, bytes], ...] = ()
        if session.connection.revision is not None:
            self.sessions.keep(session)
            extra = ((b"mcp-session-id", session.id.encode()),)
        await reply.json(200, answered.data or b"", extra)

    async def _in_session(self, reply: Reply, session: Session, request: Request) -> None:
        stream = session.new_stream()
        exchange = session.server.open(session.connection, request, stream.emit)
        exchange.close_stream = stream.kick
        session.running[request.id] = exchange
        self._start(session.server, request, exchange, stream, done=lambda: session.ended(exchange))
        await self._respond(reply, stream, session=session)
        if session.connection.closing:
            self.sessions.end(session)

    async def _batch(self, reply: Reply, session: Session, batch: Batch) -> None:
        """An array of messages, which only one revision has; answered with plain JSON."""
        if session.connection.revision != BATCH_REVISION or not batch.messages:
            error = RpcError(INVALID_REQUEST, "Invalid Request", {"details": "the body must be one message"})
            await reply.json(400, encode(error_of(None, error)))
            return
        loop = asyncio.get_running_loop()
        replies: list[bytes] = []
        for message in batch.messages:
            if isinstance(message, Malformed):
                replies.append(encode(error_of(message.id, message.error)))
            elif isinstance(message, Response):
                session.connection.settle(message)
            elif isinstance(message, Notification) and message.method == "notifications/cancelled":
                _cancel(session, message.params.get("requestId"))
            elif isinstance(message, Request):
                data = await loop.run_in_executor(self._workers, self._answer_in_batch, session, message)
                replies.extend([data] if data is not None else [])
        if replies:
            await reply.json(200, b"[" + b",".join(replies) + b"]")
        else:
            await reply.empty(202)

    def _answer_in_batch(self, session: Session, request: Request) -> bytes | None:
        with self._counted():
            try:
                exchange = session.server.open(session.connection, request, session.standing.emit)
            except RpcError as error:
                return encode(error_of(request.id, error))
            return answer(session.server, exchange).data

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """A handler at work, for who asks whether one is stuck."""
        with self._counting:
            self._running += 1
        try:
            yield
        finally:
            with self._counting:
                self._running -= 1

    # -- GET and DELETE ---------------------------------------------------------------------------------------------

    def _session(self, server: Server, headers: dict[str, str]) -> Session | None:
        """The session a request names, if it was opened under the same path."""
        session = self.sessions.find(headers.get("mcp-session-id", ""))
        return session if session is not None and session.server is server else None

    async def _get(self, reply: Reply, server: Server, headers: dict[str, str]) -> None:
        """The standing channel of a session, or a stream that was left and is resumed."""
        session = self._session(server, headers)
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
        await self._pump(reply, stream, after, session=session, on_leave=lambda: None)

    async def _delete(self, reply: Reply, server: Server, headers: dict[str, str]) -> None:
        session = self._session(server, headers)
        if session is None:
            await reply.refuse(*_why_no_session(headers))
            return
        self.sessions.end(session)
        await reply.empty(200)

    # -- answering --------------------------------------------------------------------------------------------------

    def _start(
        self,
        server: Server,
        request: Request,
        exchange: Exchange,
        stream: Stream,
        done: Callable[[], object] = lambda: None,
    ) -> None:
        """Runs the handler, on a worker thread unless it is quick; the stream hears of its end."""

        def work() -> None:
            with self._counted():
                answered = answer(server, exchange)
            done()
            if answered.held:
                stream.hold(server.farewell(exchange))
                if self._draining:
                    stream.finish(stream.farewell)
            elif answered.data is None:
                stream.finish(cancelled(exchange.request_id))
            else:
                status = _STATELESS_STATUS.get(answered.error_code or 0, 200) if exchange.stateless else 200
                stream.finish(answered.data, status)

        if server.is_quick(request):
            work()  # a thread would cost more than the call
        else:
            (self._waiters if server.waits(request) else self._workers).submit(work)

    async def _respond(
        self,
        reply: Reply,
        stream: Stream,
        *,
        session: Session | None = None,
        on_leave: Callable[[], None] = lambda: None,
    ) -> None:
        if stream.finished and not stream.emitted:
            await self._deliver(reply, stream, session)
            return
        loop = asyncio.get_running_loop()
        late = loop.call_later(self._limits.ping_s, stream.wake.set)
        watch = loop.call_later(_WATCH_AFTER_S, lambda: reply.watch(stream.wake.set))
        self._open_streams.add(stream)
        try:
            await stream.wake.wait()
            late.cancel()
            watch.cancel()
            if stream.finished and not stream.emitted:
                await self._deliver(reply, stream, session)
                return
            if not reply.gone:
                await reply.start_events()
                if session is not None and (session.connection.revision or "") >= NEWEST_HANDSHAKE:
                    await reply.write(priming_event(stream, self._limits.retry_ms))
            await self._pump(reply, stream, 0, session=session, on_leave=on_leave)
        finally:
            late.cancel()
            watch.cancel()
            self._open_streams.discard(stream)

    @staticmethod
    async def _deliver(reply: Reply, stream: Stream, session: Session | None) -> None:
        """A reply that comes alone, as plain JSON."""
        await reply.json(stream.status, stream.reply or b"")
        if session is not None:
            session.forget(stream)  # delivered whole: nothing to come back for

    async def _pump(
        self, reply: Reply, stream: Stream, after: int, *, session: Session | None, on_leave: Callable[[], None]
    ) -> None:
        """Events to the reader until the stream ends, the reader leaves, or the server does."""
        self._open_streams.add(stream)
        if session is not None:
            session.readers += 1
        reply.watch(stream.wake.set)
        # A message goes to one reader only: the newest takes over, whoever read before leaves.
        stream.readers += 1
        mine = stream.readers
        stream.wake.set()
        try:
            while stream.readers == mine:
                stream.wake.clear()
                if stream.finished:
                    stream.seal_reply()
                for number, data in stream.after(after):
                    await reply.write(event_of(stream, number, data, resumable=session is not None))
                    after = stream.delivered = number
                leaving = self._draining and stream.name == STANDING
                if stream.finished or stream.kicked or reply.gone or leaving:
                    break
                try:
                    async with asyncio.timeout(self._limits.ping_s):
                        await stream.wake.wait()
                except TimeoutError:
                    await reply.write(b": still here\n\n")
        finally:
            if stream.readers == mine:
                self._open_streams.discard(stream)
            if session is not None:
                session.readers -= 1
            if reply.gone and not stream.finished:
                on_leave()
            await reply.end()


def _headers_of(scope: Scope) -> tuple[dict[str, str], str | None]:
    """The headers by name, and the first that is given twice and must not be."""
    headers: dict[str, str] = {}
    repeated = None
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1")
        if name in headers and (name.startswith("mcp-") or name in _DECISIVE):
            repeated = repeated or name
        headers[name] = raw_value.decode("latin-1").strip()
    return headers, repeated


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
        # A client that probed first may still name the stateless version in the header of a real handshake.
        return enveloped and version in STATELESS_REVISIONS
    return enveloped or (version is not None and version not in HANDSHAKE_REVISIONS)


def _open_stateless(
    server: Server, request: Request, headers: dict[str, str], repeated: str | None, stream: Stream
) -> Exchange:
    check_headers(headers, repeated, request, _named_tool(server, request))
    if request.method == "initialize":
        raise RpcError(METHOD_NOT_FOUND, "Method not found", {"method": request.method})
    return server.open(Connection(stream.emit), request, stream.emit)


def _named_tool(server: Server, request: Request) -> Any:
    if request.method != "tools/call":
        return None
    name = request.params.get("name")
    return next((tool for tool in server.offer.tools.published() if tool["name"] == name), None)


def _cancel(session: Session, request_id: object) -> None:
    is_id = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    key: RequestId | None = request_id if is_id else None  # type: ignore[assignment]
    exchange = session.running.get(key) if key is not None else None
    if exchange is not None:
        exchange.cancel()
