"""What is kept for a handshake client between requests: its connection, its running requests, its streams.

Sessions are limited in number and expire when unused; both are checked whenever one is opened or looked up, so no
sweeper is needed. When full, a new session replaces the one idle the longest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from handrail.protocol.exchange import Connection, Exchange
from handrail.protocol.http.reply import Stream
from handrail.protocol.server import Server
from handrail.protocol.wire import RequestId

KEPT_STREAMS = 64
"""How many streams of one session can still be resumed."""

STANDING = "0"


class HttpSession:
    """One handshake client."""

    def __init__(self, session_id: str, server: Server, loop: asyncio.AbstractEventLoop, now_s: float) -> None:
        self.id = session_id
        self.server = server
        self.used_at_s = now_s
        self.readers = 0
        """Open responses; a session that is being read from does not expire."""
        self.running: dict[RequestId, Exchange] = {}
        self.standing = Stream(loop, STANDING)
        self.connection = Connection(self.standing.emit)
        self._loop = loop
        self._streams: dict[str, Stream] = {STANDING: self.standing}
        self._opened = 0

    @property
    def is_busy(self) -> bool:
        return self.readers > 0 or bool(self.running)

    def new_stream(self) -> Stream:
        self._opened += 1
        stream = Stream(self._loop, str(self._opened))
        self._streams[stream.name] = stream
        for name in list(self._streams)[1:-KEPT_STREAMS]:
            del self._streams[name]
        return stream

    def forget(self, stream: Stream) -> None:
        """Drops a stream that nobody will resume."""
        self._streams.pop(stream.name, None)

    def ended(self, exchange: Exchange) -> None:
        """The request is answered. If another has since arrived under the same id, that one stays."""
        if self.running.get(exchange.request_id) is exchange:
            del self.running[exchange.request_id]

    def stream(self, name: str) -> Stream | None:
        return self._streams.get(name)

    def close(self) -> None:
        for exchange in tuple(self.running.values()):
            exchange.cancel()
        self.server.subscribers.detach(self.connection)
        self.standing.finish(None)


class Sessions:
    """The sessions of one endpoint."""

    def __init__(self, *, most: int, idle_s: float, new_id: Callable[[], str], now_s: Callable[[], float]) -> None:
        self._most = most
        self._idle_s = idle_s
        self._new_id = new_id
        self._now_s = now_s
        self._by_id: dict[str, HttpSession] = {}

    def open(self, server: Server, loop: asyncio.AbstractEventLoop) -> HttpSession | None:
        """A session that is not yet kept; None if there are too many and all of them are busy."""
        self._expire()
        if len(self._by_id) >= self._most and all(session.is_busy for session in self._by_id.values()):
            return None
        return HttpSession(self._new_id(), server, loop, self._now_s())

    def keep(self, session: HttpSession) -> None:
        """Keeps the session. If there is no room, the one that has been idle the longest ends."""
        if len(self._by_id) >= self._most:
            quiet = [other for other in self._by_id.values() if not other.is_busy]
            self.end(min(quiet, key=lambda other: other.used_at_s))
        self._by_id[session.id] = session
        session.server.subscribers.attach(session.connection)

    def find(self, session_id: str) -> HttpSession | None:
        session = self._by_id.get(session_id)
        if session is None:
            return None
        if self._is_idle(session):
            self.end(session)
            return None
        session.used_at_s = self._now_s()
        return session

    def end(self, session: HttpSession) -> None:
        self._by_id.pop(session.id, None)
        session.close()

    def stop_asking(self) -> None:
        """Stops waiting for clients' answers."""
        for session in tuple(self._by_id.values()):
            session.connection.close()

    def end_all(self) -> None:
        for session in tuple(self._by_id.values()):
            self.end(session)

    def __len__(self) -> int:
        return len(self._by_id)

    def _expire(self) -> None:
        for session in tuple(self._by_id.values()):
            if self._is_idle(session):
                self.end(session)

    def _is_idle(self, session: HttpSession) -> bool:
        return not session.is_busy and self._now_s() - session.used_at_s > self._idle_s
