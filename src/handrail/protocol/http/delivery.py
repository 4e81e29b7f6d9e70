"""Runs handlers on worker threads and sends their replies to the client, as plain JSON or a stream of events.

A reply is plain JSON unless its handler sends something first or takes long. Who may call, and what a request means, is
decided in `endpoint.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from handrail.protocol.client_requests import MISSING_CAPABILITY
from handrail.protocol.exchange import Exchange
from handrail.protocol.http.headers import HEADER_MISMATCH
from handrail.protocol.http.reply import Reply, Stream, event_of, priming_event
from handrail.protocol.http.sessions import STANDING, HttpSession
from handrail.protocol.replies import answer, cancelled
from handrail.protocol.revisions import NEWEST_HANDSHAKE, UNSUPPORTED_VERSION
from handrail.protocol.server import Server
from handrail.protocol.wire import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, Request

ResultT = TypeVar("ResultT")

_STATELESS_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
_WATCH_AFTER_S = 0.02
"""A reply faster than this is not worth watching the client's connection for."""


def stateless_status(error_code: int | None) -> int:
    """The HTTP status of a stateless reply."""
    return _STATELESS_STATUS.get(error_code or 0, 200)


async def _always() -> bool:
    return True


class StreamReader:
    """The reader of a stream: its session, if it has one, and what to do when it leaves."""

    def __init__(
        self,
        session: HttpSession | None = None,
        *,
        on_leave: Callable[[], None] = lambda: None,
        is_welcome: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        self.session = session
        self.on_leave = on_leave
        """Called when the reader leaves before the end."""
        self.is_welcome = is_welcome
        """Called before anything is sent on a stream that has been open for a while."""


class Delivery:
    """The running handlers of one endpoint, and the streams that carry their replies."""

    def __init__(self, *, workers: int, waiting_calls: int, ping_s: float, retry_ms: int) -> None:
        self.workers = ThreadPoolExecutor(workers, thread_name_prefix="handrail-call")
        self._waiters = ThreadPoolExecutor(waiting_calls, thread_name_prefix="handrail-wait")
        self._ping_s = ping_s
        self._retry_ms = retry_ms
        self._open_streams: set[Stream] = set()
        self.draining = False
        self._running = 0
        self._counting = threading.Lock()

    def drain(self) -> None:
        """Ends listening streams with their reply, and standing ones; running calls continue to theirs."""
        self.draining = True
        for stream in tuple(self._open_streams):
            if stream.held:
                stream.finish(stream.farewell)
            elif stream.name == STANDING:
                stream.kick()

    def is_stuck(self) -> bool:
        """True while a handler has not returned."""
        return self._running > 0

    def close(self) -> None:
        """Stops waiting for handlers that are still running."""
        for pool in (self.workers, self._waiters):
            pool.shutdown(wait=False, cancel_futures=True)

    # -- handlers ---------------------------------------------------------------------------------------------------

    def start(
        self,
        server: Server,
        request: Request,
        exchange: Exchange,
        stream: Stream,
        done: Callable[[], object] = lambda: None,
    ) -> None:
        """Runs the handler, on a worker thread unless it is quick; its outcome goes to the stream."""

        def work() -> None:
            with self._counted():
                answered = answer(server, exchange)
            done()
            if answered.held:
                stream.hold(server.farewell(exchange))
                if self.draining:
                    stream.finish(stream.farewell)
            elif answered.data is None:
                stream.finish(cancelled(exchange.request_id))
            else:
                stream.finish(answered.data, stateless_status(answered.error_code) if exchange.stateless else 200)

        if server.is_quick(request):
            work()  # a thread would cost more than the call
        else:
            (self._waiters if server.waits(exchange.connection, request) else self.workers).submit(work)

    async def run(self, work: Callable[[], ResultT]) -> ResultT:
        """Runs `work` on a worker thread and returns its result."""

        def counted() -> ResultT:
            with self._counted():
                return work()

        return await asyncio.get_running_loop().run_in_executor(self.workers, counted)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Counts a running handler, for `is_stuck`."""
        with self._counting:
            self._running += 1
        try:
            yield
        finally:
            with self._counting:
                self._running -= 1

    # -- replies ----------------------------------------------------------------------------------------------------

    async def respond(self, reply: Reply, stream: Stream, reader: StreamReader) -> None:
        """Sends the reply of a handler that was started, in whichever form it takes."""
        session = reader.session
        if stream.finished and not stream.emitted:
            await _deliver(reply, stream, session)
            return
        loop = asyncio.get_running_loop()
        late = loop.call_later(self._ping_s, stream.wake.set)
        watch = loop.call_later(_WATCH_AFTER_S, lambda: reply.watch(stream.wake.set))
        self._open_streams.add(stream)
        try:
            await stream.wake.wait()
            late.cancel()
            watch.cancel()
            if stream.finished and not stream.emitted:
                await _deliver(reply, stream, session)
                return
            if not reply.gone:
                await reply.start_events()
                if session is not None and (session.connection.revision or "") >= NEWEST_HANDSHAKE:
                    await reply.write(priming_event(stream, self._retry_ms))
            await self.pump(reply, stream, 0, reader)
        finally:
            late.cancel()
            watch.cancel()
            self._open_streams.discard(stream)

    async def pump(self, reply: Reply, stream: Stream, after: int, reader: StreamReader) -> None:
        """Sends events until the stream ends, the reader leaves or is no longer welcome, or the server stops."""
        session = reader.session
        self._open_streams.add(stream)
        if session is not None:
            session.readers += 1
        reply.watch(stream.wake.set)
        # A message goes to one reader only: the newest takes over, and earlier ones leave.
        stream.readers += 1
        mine = stream.readers
        stream.wake.set()
        welcome = True
        try:
            while stream.readers == mine:
                stream.wake.clear()
                if stream.finished:
                    stream.seal_reply()
                if not (welcome := await reader.is_welcome()) or stream.readers != mine:
                    break
                for number, data in stream.after(after):
                    await reply.write(event_of(stream, number, data, resumable=session is not None))
                    after = stream.delivered = number
                leaving = self.draining and stream.name == STANDING
                if stream.finished or stream.kicked or reply.gone or leaving:
                    break
                try:
                    async with asyncio.timeout(self._ping_s):
                        await stream.wake.wait()
                except TimeoutError:
                    await reply.write(b": still here\n\n")
        finally:
            if stream.readers == mine:
                self._open_streams.discard(stream)
            if session is not None:
                session.readers -= 1
            if (reply.gone or not welcome) and not stream.finished:
                reader.on_leave()
            await reply.end()


async def _deliver(reply: Reply, stream: Stream, session: HttpSession | None) -> None:
    """Sends a reply that comes alone, as plain JSON."""
    await reply.json(stream.status, stream.reply or b"")
    if session is not None:
        session.forget(stream)  # delivered whole: nothing to come back for
