"""PostgreSQL: the engine for many machines. Imported only for `postgresql://` addresses; its driver is an extra.

A commit is one statement in a transaction of its own (`postgres_writes`), at READ COMMITTED. All the isolation it needs
is that each stream's head is locked before it is compared with what the unit saw. Units on different streams do not
wait for each other.

What a follower of the feed may rely on is described in `postgres_positions`. Asking for the feed right after one's own
commit waits briefly until that commit is in it.

When a connection is lost during a commit, nobody knows whether the commit happened: `postgres_outcomes` finds out.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from handrail.kernel.errors import StoreAway, StoreUnusable
from handrail.store import statements as sql
from handrail.store.lease_clock import OFF_MS, off_remark
from handrail.store.migrations import LATEST
from handrail.store.ports import EngineInfo, Reader, Size, Vacuumed
from handrail.store.rebuild import FoldedRows, Rebuilt
from handrail.store.store_copy import EVENT, Rows, Tell, differences, report_nothing
from handrail.store.tables import UNIQUE
from handrail.store.verification import problems_in
from handrail.store.writes import Conflict, RowWrite, WriteSet

try:
    import psycopg
    from psycopg import errors
except ImportError as missing:
    raise StoreUnusable(
        "PostgreSQL needs a driver that is not installed",
        hint="in Handrail's checkout: .venv/bin/python -m pip install -e '.[postgres]'",
    ) from missing

from handrail.store import postgres_copy as copying
from handrail.store import postgres_upkeep as upkeep
from handrail.store.postgres_connections import (
    AGAIN,
    KEEP_IDLE,
    WRITE_IDLE_TIMEOUT_MS,
    Connections,
    refusal_for,
    translated,
)
from handrail.store.postgres_news import Hints, NewsListener, Notifier
from handrail.store.postgres_outcomes import Outcomes
from handrail.store.postgres_reads import BEGIN_LOOK, PostgresReader, own
from handrail.store.postgres_schema import NOW_MS, SCHEMA_NOTED, check_here, keep_growing, make_current, schema_of
from handrail.store.postgres_session import LOWEST, SETTLED, PostgresSession, Step, sure
from handrail.store.postgres_writes import MOST_EVENTS, statement

AnswerT = TypeVar("AnswerT")

POLL_S = 1.0
"""The longest time between two polls of a watcher that gets no hints."""
FIRST_POLL_S = 0.01
GIVE_UP_CHECK_S = 0.25
SETTLE_S = 1.0
"""How long a feed waits for one's own last commit to appear in it."""
STILL_TRIES = 5

_HAS_NEWS = f"SELECT EXISTS (SELECT 1 FROM event WHERE position > $1 AND {sure('$2')}), ({SCHEMA_NOTED})"  # noqa: S608 - our own names
_WHICH = """
SELECT pg_postmaster_start_time()::text, (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
  current_schema()::regnamespace::oid::bigint
"""
_BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_COMMIT: Step = ("COMMIT", ())
_NOT_FROZEN = f"SET LOCAL idle_in_transaction_session_timeout = {WRITE_IDLE_TIMEOUT_MS}"
_RENEWED = (
    "UPDATE lease SET expires_ms = greatest(expires_ms, clock.ms + %s), renewed_ms = clock.ms FROM clock "
    "WHERE id IN (SELECT id FROM lease, clock "
    "WHERE holder = %s AND expires_ms > clock.ms ORDER BY id FOR UPDATE OF lease SKIP LOCKED)"
)
"""Skips locked rows: their writers are updating the leases right now, and waiting for them could deadlock."""
_RENEW = f"WITH clock AS MATERIALIZED (SELECT coalesce(%s::bigint, {NOW_MS}) AS ms), "
_RENEW += f"done AS ({_RENEWED} AND ({SCHEMA_NOTED}) = '{LATEST}' RETURNING 1) "
_RENEW += f"SELECT count(*), ({SCHEMA_NOTED}) FROM done"  # noqa: S608 - our own names


class PostgresEngine:
    """A store in one schema of a PostgreSQL database."""

    def __init__(self, address: str, *, version: str) -> None:
        """Connects, and creates or upgrades the tables if needed. A current schema is not written to."""
        self._connections = Connections(address)
        self._version = version
        self._hints = Hints()
        self._notifier = Notifier(self._connections)
        self._listener = NewsListener(self._connections, self._hints)
        self._closing = threading.Event()
        self._outcomes = Outcomes(self._connections, self._closing)
        self._mine = threading.local()
        self._committed = 0
        self._ahead_ms = 0
        """By how much this machine's clock was ahead of the server's when they were last compared."""
        try:
            with self._connections.taken() as session:
                make_current(session, self.location, version)
                keep_growing(session)
                self._server = session.connection.info.server_version
        except BaseException:
            self._connections.close()
            raise
        self._connections.was_open = True
        self._connections.on_connect = self._begin

    def _begin(self, session: PostgresSession) -> None:
        """What happens on every new connection before anything else."""
        self._outcomes.settle(session)
        keep_growing(session)

    @property
    def location(self) -> str:
        return self._connections.location

    def info(self) -> EngineInfo:
        number = f"{self._server // 10000}.{self._server % 10000}"
        return EngineInfo("postgresql", self.location, number, LATEST)

    def clock_remark(self) -> str | None:
        return off_remark(self._ahead_ms)

    def heard_time(self, server_ms: int, took_s: float) -> None:
        """Compares this machine's clock with the server's, if the answer was quick enough to say anything."""
        if took_s * 1000 < OFF_MS / 4:
            self._ahead_ms = time.time_ns() // 1_000_000 - server_ms

    # -- reading ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self, *, aside: bool = False) -> Iterator[Reader]:  # noqa: ARG002 - each has its own connection
        reader = PostgresReader(self, self._connections.take())
        try:
            yield reader
        finally:
            reader.end()
            self._connections.give(reader.session)

    def another_session(self, lost: PostgresSession) -> PostgresSession:
        """A session to replace one whose connection is gone."""
        self._connections.give(lost)
        return self._connections.take()

    def owes(self, session: PostgresSession) -> bool:
        """Whether this engine committed something that the feed is not yet known to hold."""
        return self._committed >= session.sure

    def settled(self, session: PostgresSession) -> int:
        """The position below which nothing can appear any more. Waits briefly until it is past this engine's own
        commits."""
        mine = self._committed
        deadline = time.monotonic() + SETTLE_S
        try:
            while row := session.row(SETTLED):
                if session.note(row[0]) > mine or time.monotonic() > deadline or self._closing.wait(0.001):
                    return session.sure
        except psycopg.Error as error:
            if not session.is_lost:
                raise refusal_for(error, self.location) from error
        return LOWEST  # the next query will find out for itself that the connection is gone

    # -- writing ----------------------------------------------------------------------------------------------------

    def commit(self, writes: WriteSet) -> int:
        assert sum(len(stream.events) for stream in writes.streams) <= MOST_EVENTS, "too many events for one unit"
        position = self._commit(writes)
        self._committed = max(self._committed, position)
        self._hints.give()
        self._notifier.tell()
        return position

    def _commit(self, writes: WriteSet) -> int:
        alone: PostgresSession | None = getattr(self._mine, "session", None)
        session = alone if alone is not None and not alone.is_idle else self._connections.take()
        try:
            return self._write(session, writes)
        except psycopg.Error as error:
            if not session.is_lost:
                raise self._as_refusal(error) from error
        finally:
            if session is not alone:
                self._connections.give(session)
        done = self._outcomes.of(session, writes)
        if done is None:
            raise Conflict(f"the connection to {self.location} was lost; nothing was written")
        return done

    def _as_refusal(self, error: psycopg.Error) -> Exception:
        if isinstance(error, errors.UniqueViolation | errors.SerializationFailure | errors.DeadlockDetected):
            return Conflict(error.diag.message_primary)
        return refusal_for(error, self.location)

    def _write(self, session: PostgresSession, writes: WriteSet) -> int:
        """Writes in one statement if possible; in a short transaction if the order of rows matters, and within `alone`,
        which has already begun one."""
        in_order = _order_counts(writes.rows)
        ledger = statement(writes, with_rows=not in_order)
        if session.is_idle and not in_order:
            return self._position_of(session, writes, session.rows(*ledger))
        begin = [(_BEGIN_WRITE, ()), (_NOT_FROZEN, ())] if session.is_idle else []
        try:
            if not in_order:  # if its streams have moved on it has written nothing, so there is nothing to undo
                answer, _ = session.together(ledger, _COMMIT)
                return self._position_of(session, writes, answer)
            *_, answer = session.together(*begin, ledger)
            position = self._position_of(session, writes, answer)
            session.together(*map(_row_step, writes.rows), _COMMIT)
        except BaseException:
            if not session.is_lost and not session.is_idle:
                session.do("ROLLBACK")
            raise
        return position

    def _position_of(self, session: PostgresSession, writes: WriteSet, answer: Sequence[tuple[Any, ...]]) -> int:
        base, schema = answer[0]
        if base is None:
            if schema != str(LATEST):  # a newer Handrail may have been here since we opened it
                schema_of(session, self.location, self._version)
            raise Conflict(", ".join(stream.stream for stream in writes.streams))
        return int(base) + sum(len(stream.events) for stream in writes.streams)

    def renew(self, holder: str, ttl_ms: int, now_ms: int | None = None) -> int:
        def question(session: PostgresSession) -> int:
            row = session.row(_RENEW, (now_ms, ttl_ms, holder))
            if row is None or row[1] != str(LATEST):
                schema_of(session, self.location, self._version)
            return 0 if row is None else int(row[0])

        return self._ask_any_connection(question)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Holds the lock that every commit needs, until this thread's own commit releases it at its end."""
        if getattr(self._mine, "session", None) is not None:
            yield
            return
        session = self._connections.take()
        try:
            with translated(self.location):
                session.do(f"{_BEGIN_WRITE}; {_NOT_FROZEN}; LOCK TABLE stream IN EXCLUSIVE MODE")
            self._mine.session = session
            yield
        finally:
            self._mine.session = None
            if not session.is_lost and not session.is_idle:
                with contextlib.suppress(psycopg.Error):
                    session.do("ROLLBACK")
            self._connections.give(session)

    # -- news -------------------------------------------------------------------------------------------------------

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        self._listener.start()
        deadline = time.monotonic() + timeout_s
        pause = FIRST_POLL_S
        while not cancelled() and not self._closing.is_set():
            heard = self._hints.count
            if self._has_news(position):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            hinted = self._wait_for_hint(heard, min(pause, left), cancelled)
            pause = FIRST_POLL_S if hinted else min(pause * 2, POLL_S)
        return False

    def _wait_for_hint(self, heard: int, pause_s: float, cancelled: Callable[[], bool]) -> bool:
        """True at the next hint; False when the pause is over or the caller gives up."""
        until = time.monotonic() + pause_s
        while not cancelled() and not self._closing.is_set():
            left = until - time.monotonic()
            if left <= 0:
                return False
            if self._hints.wait(heard, min(left, GIVE_UP_CHECK_S)):
                return True
        return False

    def _has_news(self, position: int) -> bool:
        def question(session: PostgresSession) -> bool:
            for bound in self._bounds(session):
                row = session.row(_HAS_NEWS, (position, bound))
                assert row is not None
                check_here(session, self.location, row[1])  # a moved store gets no more events
                if row[0]:
                    return True
            return False

        return self._ask_any_connection(question)

    def _ask_any_connection(self, question: Callable[[PostgresSession], AnswerT]) -> AnswerT:
        """Asks a question that may be asked twice: if a connection turns out to be gone, the next one is tried."""
        for _ in range(KEEP_IDLE):
            session = self._connections.take()
            try:
                return question(session)
            except psycopg.Error as error:
                if not session.is_lost:
                    raise refusal_for(error, self.location) from error
            finally:
                self._connections.give(session)
        raise StoreAway(f"{self.location} drops every connection", hint=f"{AGAIN}; the server's log says why")

    @staticmethod
    def _bounds(session: PostgresSession) -> Iterator[int]:
        """First the bound that costs nothing, then one that holds even while others on the server run long
        transactions."""
        yield session.sure
        row = session.row(SETTLED)
        assert row is not None
        yield session.note(row[0])

    def is_same_place(self, other: PostgresEngine) -> bool:
        """Whether both are the same schema of the same server, however their addresses spell it."""
        with self._connections.taken() as here, other._connections.taken() as there:
            return here.row(_WHICH) == there.row(_WHICH)

    # -- upkeep -----------------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        with self._connections.taken() as session:
            return upkeep.damage(session)

    def sizes(self) -> list[Size]:
        with self._connections.taken() as session:
            return upkeep.sizes(session)

    def is_empty(self) -> bool:
        with self._connections.taken() as session:
            return copying.is_empty(session)

    def vacuum(self, now_ms: int, *, full: bool = False) -> Vacuumed:
        with self._connections.taken() as session:
            schema_of(session, self.location, self._version)
            return upkeep.vacuum(session, now_ms, full=full)

    @contextlib.contextmanager
    def still(self) -> Iterator[copying.PostgresStill]:
        session = self._connections.take()
        try:
            with translated(self.location):
                self._keep_writers_out(session)
                yield copying.PostgresStill(session)
        finally:
            if not session.is_lost and not session.is_idle:
                with contextlib.suppress(psycopg.Error):
                    session.do("ROLLBACK")
            self._connections.give(session)

    def _keep_writers_out(self, session: PostgresSession) -> None:
        """Keeps writers out until the session's transaction ends. After a deadlock with a writer that took its locks in
        another order, lets that one pass and tries again."""
        for attempt in range(1, STILL_TRIES + 1):
            try:
                session.do(f"{_BEGIN_WRITE}; {copying.UNHURRIED}; {copying.WRITERS_OUT}")
            except errors.DeadlockDetected:
                session.do("ROLLBACK")
                if attempt == STILL_TRIES:
                    raise
            else:
                break
        schema_of(session, self.location, self._version)

    def backup(self, target: str, tell: Tell = report_nothing) -> None:
        """Makes a consistent copy, as a SQLite store, while others write."""
        with self._connections.taken() as session:
            session.do(f"{BEGIN_LOOK[0]}; {copying.UNHURRIED}")
            copying.write_file(copying.PostgresRows(session), Path(target), self._version, tell)
            session.do("COMMIT")

    def restore(self, source: str, tell: Tell = report_nothing) -> None:
        """Replaces our content with a backup's, in one transaction."""
        with copying.rows_of_file(Path(source), self._version) as rows:
            self._fill(rows, tell, instead=True)

    def fill(self, source: Rows, tell: Tell = report_nothing) -> None:
        self._fill(source, tell, instead=False)

    def rebuild(self, tell: Tell = report_nothing) -> Rebuilt:
        """Makes every row anew from the ledger, in one transaction."""
        with self.still() as still:
            reader = PostgresReader.within(self, still.session)
            rows = FoldedRows(reader, lambda seen: tell("reading events", seen, 0))
            copying.replace_rows(still.session, rows)
            if problems := problems_in(reader):
                raise StoreUnusable(f"the ledger makes no sound store: {problems[0]}", hint="nothing was changed")
            still.session.do("COMMIT")
        return rows.counts()

    def _fill(self, source: Rows, tell: Tell, *, instead: bool) -> None:
        with self._connections.taken() as session:

            def check() -> None:
                """Runs before anybody else sees the copy, while it can still be rolled back."""
                total = source.count(EVENT)
                reader = PostgresReader.within(self, session)
                problems = differences(source, copying.PostgresRows(session))
                problems = problems or problems_in(reader, lambda seen: tell("verifying", seen, total))
                if problems:
                    raise StoreUnusable(f"{self.location} got no true copy: {problems[0]}", hint="nothing was changed")

            checks = copying.FillChecks(lambda: schema_of(session, self.location, self._version), check)
            copying.fill(session, source, tell, checks, instead=instead)
        self._hints.give()
        self._notifier.tell()

    def close(self) -> None:
        self._closing.set()
        self._hints.give()
        self._notifier.close()
        self._listener.close()
        self._connections.close()


def connections_to(address: str) -> Connections:
    """Connections for inspecting an address before anything is opened."""
    return Connections(address)


def clock_ahead_ms(address: str, within_s: int) -> int:
    """By how much this machine's clock is ahead of a server's, in a database that need not hold a store."""
    with connections_to(address).connect(connect_timeout=within_s) as connection:
        before_ms = time.time_ns() // 1_000_000
        found = connection.execute(f"SELECT {NOW_MS}").fetchone()
        assert found is not None
        return (before_ms + time.time_ns() // 1_000_000) // 2 - int(found[0])


def _order_counts(rows: Sequence[RowWrite]) -> bool:
    """Whether one row makes room for another: it is removed, or gives up a name that must be unique. Within one
    statement the server would choose the order."""
    for row in rows:
        if row.values is None:
            return True
        renamed = any(column in columns for columns in UNIQUE.get(row.table, ()) for column in row.changed or ())
        if renamed and sum(other.table == row.table for other in rows) > 1:
            return True
    return False


def _row_step(row: RowWrite) -> Step:
    if row.values is None:
        return own(sql.REMOVE[row.table]), (row.key,)
    if row.changed:
        text, chosen = sql.change(row.table, row.changed)
        return own(text), chosen(row.values)
    return own(sql.PUT[row.table]), row.values
