"""News between processes on PostgreSQL: NOTIFY sent off the write path, LISTEN on a connection of its own.

These are only hints: a lost one delays a watcher until its next poll and never costs it an event. A NOTIFY inside a
write would make all writers queue for one lock, so a small thread sends one for everything committed in the last few
milliseconds.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading

import psycopg

from handrail.kernel.errors import Refusal, StoreRefused
from handrail.store.postgres_connections import Connections

COALESCE_S = 0.01
LISTEN_AGAIN_S = 1.0
_NOTIFY = (
    "SELECT set_config('synchronous_commit', 'off', true), "
    "pg_notify('handrail_' || (current_schema()::regnamespace::oid)::text, '')"
)
"""A hint need not survive a crash, so it does not wait for the disk."""


class Hints:
    """A count of hints that threads can wait on."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.count = 0

    def give(self) -> None:
        with self._condition:
            self.count += 1
            self._condition.notify_all()

    def wait(self, seen: int, timeout_s: float) -> bool:
        """True if there was a hint after the first `seen`."""
        with self._condition:
            return self._condition.wait_for(lambda: self.count > seen, timeout_s)


class Notifier:
    """Tells other processes that something was committed. One thread, started by the first commit."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._pending = threading.Event()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def tell(self) -> None:
        self._pending.set()
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._send, name="handrail-notify", daemon=True)
                self._thread.start()

    def _send(self) -> None:
        while True:
            self._pending.wait()
            self._closing.wait(COALESCE_S)
            self._pending.clear()
            closing = self._closing.is_set()  # read only now: `close` may have been called while we waited
            with contextlib.suppress(Refusal), self._connections.taken() as session:  # only a hint is lost
                session.do(_NOTIFY)
            if closing:
                return

    def close(self) -> None:
        """Sends what is still pending, and ends."""
        with self._lock:
            self._closing.set()
        if self._thread is not None:
            self._pending.set()
            self._thread.join()


class NewsListener:
    """Hears what other processes announce. One thread and one connection, started by the first waiter."""

    def __init__(self, connections: Connections, hints: Hints) -> None:
        self._connections = connections
        self._hints = hints
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._bell: socket.socket | None = None
        self._rope: socket.socket | None = None

    def start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                self._bell, self._rope = socket.socketpair()
                self._thread = threading.Thread(target=self._listen, name="handrail-listen", daemon=True)
                self._thread.start()

    def _listen(self) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(StoreRefused, psycopg.Error), self._connections.connect() as connection:
                self._listen_on(connection)
            self._closing.wait(LISTEN_AGAIN_S)

    def _listen_on(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        found = connection.execute("SELECT (current_schema()::regnamespace::oid)::text").fetchone()
        assert self._bell is not None
        if found is None or found[0] is None:  # we may not use the schema now, so nobody would be heard
            return
        connection.execute(f'LISTEN "handrail_{found[0]}"')
        self._hints.give()  # whatever happened before now went unheard
        with selectors.DefaultSelector() as ready:
            ready.register(connection.fileno(), selectors.EVENT_READ)
            ready.register(self._bell, selectors.EVENT_READ)
            while not self._closing.is_set():
                ready.select()
                for _ in connection.notifies(timeout=0):
                    self._hints.give()

    def close(self) -> None:
        with self._lock:
            self._closing.set()
        if self._thread is not None and self._bell is not None and self._rope is not None:
            self._rope.send(b"\0")
            self._thread.join()
            self._bell.close()
            self._rope.close()
