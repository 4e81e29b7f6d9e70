"""Connections to PostgreSQL: opened with our settings, kept for the next user, and their errors translated into
refusals.

What is asked over them is up to the engine. A broken connection is closed together with all idle ones: they led to the
same server.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from handrail.kernel.errors import InvalidParams, Refusal, StoreAway, StoreBusy, StoreFull, StoreUnusable
from handrail.store.addresses import ENCODE_HINT, check_readable, holds_secret, secrets_of, shown_server
from handrail.store.postgres_session import PostgresSession

OLDEST_SERVER = 140000
KEEP_IDLE = 8
LOCK_TIMEOUT_MS = 8_000
STATEMENT_TIMEOUT_MS = 60_000
IDLE_TIMEOUT_MS = 60_000
"""How long a read may pause between two statements."""
WRITE_IDLE_TIMEOUT_MS = 5_000
"""How long a write of several statements may pause: less than others wait for its locks, so they outlast a frozen
writer."""
CONNECT_TIMEOUT_S = 10
_KEPT_ALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
"""A server that vanishes without a word is noticed in about half a minute, not when the system gives up."""
AGAIN = "nothing was written: call again later"
BACK = "nothing was written: start the server, then call again"

_SETTINGS = f"""
SELECT set_config('lock_timeout', '{LOCK_TIMEOUT_MS}', false),
  set_config('statement_timeout', '{STATEMENT_TIMEOUT_MS}', false),
  set_config('idle_in_transaction_session_timeout', '{IDLE_TIMEOUT_MS}', false),
  set_config('default_transaction_isolation', 'read committed', false),
  set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
    ELSE current_setting('synchronous_commit') END, false),
  set_config('jit', 'off', false)
"""


class Connections:
    """The connections of one engine: as many as there are users at once, of which a few are kept."""

    def __init__(self, address: str) -> None:
        self._parameters = _parsed(address)
        self.location = shown_server(address)
        self._secrets = secrets_of(address)
        self.on_connect: Callable[[PostgresSession], None] = lambda _: None
        """What the engine does on every new connection."""
        self.was_open = False
        """Whether the engine has opened the store once: what is missing since then may come back."""
        self._idle: list[PostgresSession] = []
        self._lock = threading.Lock()
        self._closed = False

    def connect(self, **other: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """A separate connection, which the caller closes; with `other` parameters than the engine's."""
        try:
            return psycopg.connect(**{**self._parameters, **other}, autocommit=True)
        except psycopg.Error as error:
            said = _first_line(error)
            why = "" if holds_secret(said, self._secrets) else f": {said}"
            raise StoreAway(
                f"{self.location} does not answer{why}",
                hint=f"{BACK}; if it never answered, check host, database, user and password in the address",
            ) from None

    def take(self) -> PostgresSession:
        with self._lock:
            if self._closed:
                raise StoreUnusable(f"{self.location} was closed")
            if self._idle:
                return self._idle.pop()
        return self._new()

    def _new(self) -> PostgresSession:
        connection = self.connect()
        try:
            with translated(self.location):
                session = PostgresSession(connection, _SETTINGS)
                _check_server(session, self.location, was_open=self.was_open)
                self.on_connect(session)
        except BaseException:
            connection.close()
            raise
        return session

    def give(self, session: PostgresSession) -> None:
        """Takes a session back. One that is lost or in the middle of something is not kept."""
        if session.is_lost:
            self.forget_idle()
        elif session.is_idle:
            with self._lock:
                if not self._closed and len(self._idle) < KEEP_IDLE:
                    self._idle.append(session)
                    return
        session.close()

    def forget_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()

    @contextlib.contextmanager
    def taken(self) -> Iterator[PostgresSession]:
        """A session for single statements, its errors translated."""
        session = self.take()
        try:
            with translated(self.location):
                yield session
        finally:
            self.give(session)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.forget_idle()


def _parsed(address: str) -> dict[str, Any]:
    check_readable(address)
    try:
        parameters = conninfo_to_dict(address)
    except psycopg.ProgrammingError:  # its message would repeat the address, password included
        raise StoreUnusable("the PostgreSQL address cannot be read", hint=ENCODE_HINT) from None
    return {"application_name": "handrail", "connect_timeout": CONNECT_TIMEOUT_S, **_KEPT_ALIVE, **parameters}


def _check_server(session: PostgresSession, location: str, *, was_open: bool) -> None:
    if session.connection.info.server_version < OLDEST_SERVER:
        raise StoreUnusable(
            f"{location} is PostgreSQL {session.connection.info.server_version // 10000}",
            hint=f"PostgreSQL {OLDEST_SERVER // 10000} or newer is needed",
        )
    if session.encoding != "UTF8":
        raise StoreUnusable(
            f"{location} is encoded in {session.encoding}", hint="create the database with ENCODING 'UTF8'"
        )
    if session.schema is None:
        raise (StoreAway if was_open else StoreUnusable)(
            f"{location} has no schema to keep tables in", hint="create the schema that its search_path names"
        )


@contextlib.contextmanager
def translated(location: str) -> Iterator[None]:
    """Turns the server's errors into refusals that say what to do."""
    try:
        yield
    except psycopg.Error as error:
        raise refusal_for(error, location) from error


def refusal_for(error: psycopg.Error, location: str) -> Refusal:
    said = _first_line(error)
    if isinstance(error, errors.LockNotAvailable | errors.QueryCanceled):
        return StoreBusy(
            f"{location} has been held by another writer for too long", hint="call again; nothing was written"
        )
    if isinstance(error, errors.DiskFull):
        return StoreFull(f"there is no room to write {location}", hint="free some space, then call again")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return StoreAway(f"{location} cannot be written now: {said}", hint=f"{AGAIN}; only a primary server is written")
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreAway(f"{location} refuses its user: {said}", hint=f"{AGAIN}, with the rights to its tables granted")
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.DuplicateTable):
        return StoreAway(  # a user who may not use the schema sees no tables in it
            f"{location} does not show the tables Handrail made: {said}",
            hint=f"{AGAIN}, with the rights to its schema granted; else use a database or schema of its own",
        )
    if isinstance(error, psycopg.DataError):
        return InvalidParams(f"what was given cannot be kept: {said}", hint="numbers fit 64 bits, texts have no NUL")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreAway(f"{location} does not answer: {said}", hint=BACK)
    return StoreAway(f"{location} failed: {said}", hint=f"{AGAIN}; `handrail db check` looks closer")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
