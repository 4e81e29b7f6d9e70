"""What became of a commit whose connection was lost: the server process is ended, then the ledger is asked. So nothing
is written twice, and nothing that was acknowledged is lost.

If the server stays away, the caller is told that nobody knows. The commit is then settled on the first connection that
is made again, before anything else happens there: an old server process that still had the statement in hand must not
carry it out after somebody looked and saw nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import NamedTuple

from handrail.kernel.errors import StoreAway, StoreRefused
from handrail.store.postgres_connections import Connections
from handrail.store.postgres_session import PostgresSession
from handrail.store.writes import WriteSet

RESOLVE_S = 15.0
"""How long to look for the outcome of a commit whose connection was lost."""
LONGEST_PAUSE_S = 1.0

_EVENT_THERE = "SELECT position FROM event WHERE stream = %s AND seq = %s AND hash = %s"
_KEY_THERE = "SELECT 1 FROM idempotency WHERE scope = %s AND key = %s AND request_hash = %s AND response = %s"


class _Open(NamedTuple):
    """A commit that was answered as unknown."""

    lost: PostgresSession
    writes: WriteSet


class Outcomes:
    """Finds out what became of lost commits, over an engine's connections."""

    def __init__(self, connections: Connections, closing: threading.Event) -> None:
        self._connections = connections
        self._closing = closing
        self._open: list[_Open] = []
        self._lock = threading.Lock()

    def of(self, lost: PostgresSession, writes: WriteSet) -> int | None:
        """The position of a commit whose connection was lost; None if it did not happen and never will."""
        deadline = time.monotonic() + RESOLVE_S
        pause = 0.05
        while True:
            try:
                with self._connections.taken() as session:
                    if session.end(lost):
                        return _position_if_written(session, writes)
            except StoreRefused:
                self._connections.forget_idle()
            if time.monotonic() > deadline or self._closing.wait(pause):
                self._leave_open(lost, writes)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def _leave_open(self, lost: PostgresSession, writes: WriteSet) -> None:
        with self._lock:
            self._open.append(_Open(lost, writes))
        self._connections.forget_idle()  # the next user makes a connection, and settles it
        raise StoreAway(
            f"the connection to {self._connections.location} was lost during a write; whether it was kept is not known",
            hint="when the store is back, look before you repeat the call; with the same idempotency key it is safe",
            outcome="unknown",
        )

    def settle(self, session: PostgresSession) -> None:
        """Settles on a new connection what was left open. Raises StoreRefused if that cannot be done yet."""
        with self._lock:
            while self._open:
                lost, writes = self._open[0]
                if not session.end(lost):
                    raise StoreAway(
                        f"{self._connections.location} still has an earlier write in hand",
                        hint="nothing was written by this call: call again",
                    )
                kept = _position_if_written(session, writes) is not None
                self._open.pop(0)
                what = ", ".join(f"{stream.stream} {stream.head.seq}" for stream in writes.streams) or "a kept answer"
                print(  # noqa: T201 - stderr is the log
                    f"handrail: a write whose outcome was not known ({what}) was {'kept' if kept else 'not kept'}",
                    file=sys.stderr,
                )


def _position_if_written(session: PostgresSession, writes: WriteSet) -> int | None:
    if writes.streams:
        event = writes.streams[-1].events[-1]
        row = session.row(_EVENT_THERE, (event.stream, event.seq, event.hash))
        return None if row is None else int(row[0])
    if writes.key is not None:
        return None if session.row(_KEY_THERE, writes.key[:4]) is None else 0
    return None
