"""PostgreSQL: the engine for many machines. Imported only for `postgresql://` addresses; its driver is an extra.

A commit is one statement in a transaction of its own (`postgres_writes`), at READ COMMITTED: that every stream still
stands where the unit saw it is checked under the lock of its head, which is all the isolation it needs. Units on
different streams do not wait for each other.

Positions. A counter that every commit takes a number from would make all commits queue for it until each has reached
the disk; a sequence would not, but then a number can appear after a follower has passed it, and is missed. So a
position is made of the transaction's own number, shifted, plus the event's place in it: it grows, and never repeats. A
follower reads only below the oldest transaction that is still writing events, so nothing can appear behind it. The
price: positions have gaps, and a commit that takes long keeps later ones out of the feed until it ends; streams wait
for nobody. Who asks for the feed right after a commit of its own waits the moment until it is in.

When a connection is lost during a commit, nobody knows whether it was done: the server process is ended, then the
ledger is asked. So nothing is written twice, and nothing that was acknowledged is lost.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from handrail.kernel.errors import StoreRefused, StoreUnusable
from handrail.kernel.ledger import Event
from handrail.store import statements as sql
from handrail.store.migrations import LATEST
from handrail.store.queries import Query, count_by_sql, count_sql, select_sql
from handrail.store.reading import EngineInfo, Reader
from handrail.store.tables import TABLES, Table
from handrail.store.writes import NEW_STREAM, Conflict, Head, RowWrite, WriteSet, decode_event

try:
    import psycopg
    from psycopg import errors
except ImportError as missing:
    raise StoreUnusable(
        "PostgreSQL needs a driver that is not installed", hint="pip install handrail[postgres]"
    ) from missing

from handrail.store.postgres_backup import read_backup, write_backup
from handrail.store.postgres_connections import (
    KEEP_IDLE,
    WRITE_IDLE_TIMEOUT_MS,
    Connections,
    refusal_for,
    translated,
)
from handrail.store.postgres_news import Hints, Listener, Notifier
from handrail.store.postgres_schema import keep_growing, make_current, schema_of
from handrail.store.postgres_session import Session, Step
from handrail.store.postgres_writes import MOST_EVENTS, PLACE_BITS, statement

AnswerT = TypeVar("AnswerT")

POLL_S = 1.0
"""How often a watcher looks when nobody tells it anything."""
FIRST_POLL_S = 0.01
GIVE_UP_CHECK_S = 0.25
LOWEST = -(2**62)
SETTLE_S = 1.0
"""How long a feed waits for one's own last commit to be in it."""
RESOLVE_S = 15.0
"""How long to look for the outcome of a commit whose connection was lost."""

_SETTLED = f"""
WITH locks AS MATERIALIZED (
  SELECT locktype, database, relation, mode, virtualtransaction, transactionid::text::bigint AS number
  FROM pg_locks WHERE granted AND locktype IN ('relation', 'transactionid')
), elsewhere AS (
  SELECT theirs.number FROM locks theirs WHERE theirs.locktype = 'transactionid' AND theirs.mode = 'ExclusiveLock'
    AND NOT EXISTS (
      SELECT 1 FROM locks held WHERE held.virtualtransaction = theirs.virtualtransaction
        AND held.locktype = 'relation' AND held.mode = 'RowExclusiveLock' AND held.relation = 'event'::regclass
        AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
), writing AS (
  SELECT min(number) AS oldest FROM (SELECT pg_snapshot_xip(pg_current_snapshot())::text::bigint AS number) AS open
  WHERE open.number & 4294967295 NOT IN (SELECT elsewhere.number FROM elsewhere)
)
SELECT position + (coalesce(oldest, (CASE WHEN pg_is_in_recovery() THEN pg_snapshot_xmin(pg_current_snapshot())
  ELSE pg_snapshot_xmax(pg_current_snapshot()) END)::text::bigint) << {PLACE_BITS})
FROM counter, writing WHERE one = 1
"""  # noqa: S608 - our own names
"""Below this position nothing can appear any more, for a look that begins after this was asked: it is where the oldest
open transaction stands that may write events. Who writes events has the table's lock before it has a number, so an open
number whose holder is seen without that lock writes none. A number whose holder is not seen may be anybody's: the
server hands numbers out a moment before it shows whose they are. A standby shows neither, so there all of them count.
"""

_SURE = (
    f"greatest(?, (SELECT position + (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << {PLACE_BITS}) "  # noqa: S608 - our own names
    "FROM counter WHERE one = 1))"
)
"""The same for a look that has begun already: there all transactions of the server count."""
_FEED = sql.FEED.replace("position > ?", f"position > ? AND position < {_SURE}")
_LATEST = sql.LATEST.replace("ORDER BY", f"WHERE position < {_SURE} ORDER BY")
_POSITION = f"SELECT coalesce(max(position), 0) FROM event WHERE position < {_SURE}"  # noqa: S608 - our own names
_HAS_NEWS = f"SELECT EXISTS (SELECT 1 FROM event WHERE position > ? AND position < {_SURE})"  # noqa: S608 - our own names
_EVENT_THERE = "SELECT position FROM event WHERE stream = %s AND seq = %s AND hash = %s"
_KEY_THERE = "SELECT 1 FROM idempotency WHERE scope = %s AND key = %s AND request_hash = %s AND response = %s"
_BEGIN_LOOK = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_COMMIT: Step = ("COMMIT", ())
_NOT_FROZEN = f"SET LOCAL idle_in_transaction_session_timeout = {WRITE_IDLE_TIMEOUT_MS}"
_RENEW = (
    "UPDATE lease SET expires_ms = greatest(expires_ms, %s), renewed_ms = %s WHERE id IN (SELECT id FROM lease "
    "WHERE holder = %s AND expires_ms > %s ORDER BY id FOR UPDATE SKIP LOCKED) RETURNING id"
)
"""What somebody else has locked is being written with its lease right now; waiting for it could go round in circles."""
_BAD_INDEXES = (
    "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class c ON c.oid = indrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace AND NOT indisvalid"
)
_BAD_PAGES = "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()"


@lru_cache(maxsize=1024)
def _own(text: str) -> str:
    """A shared statement with PostgreSQL's own placeholders."""
    return text.replace("?", "%s")


class PostgresReader:
    """One look: a transaction that reads from one snapshot, begun by the first question."""

    def __init__(self, engine: PostgresEngine, session: Session) -> None:
        self._engine = engine
        self.session = session
        self._looked = False
        self._bound = LOWEST

    def _rows(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The first question of a look is asked again on a new connection when the old one turns out to be gone."""
        try:
            return self._ask(text, parameters)
        except psycopg.Error as error:
            if not self.session.is_lost:
                raise refusal_for(error, self._engine.location) from error
            if self._looked or self._bound != LOWEST:  # what is sure there need not be sure on another server
                raise Conflict(f"the connection to {self._engine.location} was lost in the middle of a look") from error
        self.session = self._engine.another_session(self.session)
        with translated(self._engine.location):
            return self._ask(text, parameters)

    def _ask(self, text: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        if self._looked:
            return self.session.rows(_own(text), parameters)
        _, found = self.session.together((_BEGIN_LOOK, ()), (_own(text), parameters))
        self._looked = True
        return found

    def end(self) -> None:
        if self._looked and not self.session.is_lost:
            with contextlib.suppress(psycopg.Error):  # nothing was written, so nothing is lost with it
                self.session.leave("COMMIT")

    def get(self, table: Table, key: str) -> tuple[Any, Head] | None:
        rows = self._rows(sql.GET[table.name], (key,))
        return (table.record_of(rows[0]), Head(*rows[0][-2:])) if rows else None

    def select(self, table: Table, query: Query) -> list[tuple[Any, Head]]:
        text, parameters = select_sql(table.name, table.columns, query)
        return [(table.record_of(row), Head(*row[-2:])) for row in self._rows(text, parameters)]

    def count(self, table: Table, query: Query) -> int:
        return int(self._rows(*count_sql(table.name, query))[0][0])

    def count_by(self, table: Table, query: Query, columns: tuple[str, ...]) -> dict[tuple[Any, ...], int]:
        return {tuple(row[:-1]): row[-1] for row in self._rows(*count_by_sql(table.name, query, columns))}

    def head(self, stream: str) -> Head:
        rows = self._rows(sql.HEAD, (stream,))
        return Head(*rows[0]) if rows else NEW_STREAM

    def key_answer(self, scope: str, key: str, now_ms: int) -> tuple[str, bytes] | None:
        rows = self._rows(sql.KEY_ANSWER, (scope, key, now_ms))
        return (rows[0][0], rows[0][1]) if rows else None

    def events(self, stream: str, after: int, limit: int) -> list[Event]:
        return [_event(row) for row in self._rows(sql.STREAM_EVENTS, (stream, after, limit))]

    def feed(self, after: int, limit: int) -> list[Event]:
        return [_event(row) for row in self._rows(_FEED, (after, self._settled(), limit))]

    def latest(self, limit: int) -> list[Event]:
        return [_event(row) for row in self._rows(_LATEST, (self._settled(), limit))]

    def position(self) -> int:
        return int(self._rows(_POSITION, (self._settled(),))[0][0])

    def _settled(self) -> int:
        """Up to where the feed is sure. It must be asked before the look begins."""
        if not self._looked:
            self._bound = self._engine.settled(self.session)
        return self._bound

    def everything(self, after: int, limit: int) -> list[Event]:
        """The feed with what is not settled yet: for a copy of all that this look shows."""
        return [_event(row) for row in self._rows(sql.FEED, (after, limit))]

    def last_by(self, actor: str, limit: int) -> list[Event]:
        return [_event(row) for row in self._rows(sql.LAST_BY, (actor, limit))]

    def streams(self) -> Iterator[tuple[str, Head]]:
        for name, head, digest in self._rows(sql.STREAMS):
            yield name, Head(head, digest)


class PostgresEngine:
    """A store in one schema of a PostgreSQL database."""

    def __init__(self, address: str, *, version: str) -> None:
        """Connects, and creates or upgrades the tables where needed. A current schema is not written to."""
        self._connections = Connections(address)
        self._version = version
        self._hints = Hints()
        self._notifier = Notifier(self._connections)
        self._listener = Listener(self._connections, self._hints)
        self._closing = threading.Event()
        self._mine = threading.local()
        self._committed = 0
        try:
            with self._connections.taken() as session:
                make_current(session, self.location, version)
                keep_growing(session)
                self._server = session.connection.info.server_version
        except BaseException:
            self._connections.close()
            raise
        self._connections.on_connect = keep_growing

    @property
    def location(self) -> str:
        return self._connections.location

    def info(self) -> EngineInfo:
        number = f"{self._server // 10000}.{self._server % 10000}"
        return EngineInfo("postgresql", self.location, number, LATEST)

    # -- reading ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reader]:
        reader = PostgresReader(self, self._connections.take())
        try:
            yield reader
        finally:
            reader.end()
            self._connections.give(reader.session)

    def another_session(self, lost: Session) -> Session:
        """A session in place of one whose connection is gone."""
        self._connections.give(lost)
        return self._connections.take()

    def settled(self, session: Session) -> int:
        """The position below which nothing can appear any more. Waits the moment until it is past what this engine
        committed itself."""
        mine = self._committed
        deadline = time.monotonic() + SETTLE_S
        try:
            while row := session.row(_SETTLED):
                if row[0] > mine or time.monotonic() > deadline or self._closing.wait(0.001):
                    return int(row[0])
        except psycopg.Error as error:
            if not session.is_lost:
                raise refusal_for(error, self.location) from error
        return LOWEST  # the question that follows finds out for itself that the connection is gone

    # -- writing ----------------------------------------------------------------------------------------------------

    def commit(self, writes: WriteSet) -> int:
        assert sum(len(stream.events) for stream in writes.streams) <= MOST_EVENTS, "too many events for one unit"
        position = self._commit(writes)
        self._committed = max(self._committed, position)
        self._hints.give()
        self._notifier.tell()
        return position

    def _commit(self, writes: WriteSet) -> int:
        alone: Session | None = getattr(self._mine, "session", None)
        session = alone if alone is not None and not alone.is_idle else self._connections.take()
        try:
            return self._write(session, writes)
        except psycopg.Error as error:
            if not session.is_lost:
                raise self._told(error) from error
        finally:
            if session is not alone:
                self._connections.give(session)
        done = self._outcome(session, writes)
        if done is None:
            raise Conflict(f"the connection to {self.location} was lost; nothing was written")
        return done

    def _told(self, error: psycopg.Error) -> Exception:
        if isinstance(error, errors.UniqueViolation | errors.SerializationFailure | errors.DeadlockDetected):
            return Conflict(error.diag.message_primary)
        return refusal_for(error, self.location)

    def _write(self, session: Session, writes: WriteSet) -> int:
        """One statement where that is possible; a short transaction where rows are removed, because then their order
        counts, and within `alone`, which has begun one already."""
        removes = any(row.values is None for row in writes.rows)
        ledger = statement(writes, with_rows=not removes)
        if session.is_idle and not removes:
            return self._position_of(session, writes, session.rows(*ledger))
        begin = [(_BEGIN_WRITE, ()), (_NOT_FROZEN, ())] if session.is_idle else []
        try:
            if not removes:  # what finds its streams moved on has written nothing, and there is nothing to take back
                told, _ = session.together(ledger, _COMMIT)
                return self._position_of(session, writes, told)
            *_, told = session.together(*begin, ledger)
            position = self._position_of(session, writes, told)
            session.together(*map(_row_step, writes.rows), _COMMIT)
        except BaseException:
            if not session.is_lost and not session.is_idle:
                session.do("ROLLBACK")
            raise
        return position

    def _position_of(self, session: Session, writes: WriteSet, told: Sequence[tuple[Any, ...]]) -> int:
        base, schema = told[0]
        if base is None:
            if schema != str(LATEST):  # a newer Handrail may have been here since we opened it
                schema_of(session, self.location, self._version)
            raise Conflict(", ".join(stream.stream for stream in writes.streams))
        return int(base) + sum(len(stream.events) for stream in writes.streams)

    def _outcome(self, lost: Session, writes: WriteSet) -> int | None:
        """Whether a commit whose connection was lost was done: its position, or None when it was not and never will
        be."""
        deadline = time.monotonic() + RESOLVE_S
        pause = 0.05
        while True:
            try:
                with self._connections.taken() as session:
                    if session.end(lost):
                        return self._found(session, writes)
            except StoreRefused:
                self._connections.forget_idle()
            if time.monotonic() > deadline or self._closing.wait(pause):
                raise StoreUnusable(
                    f"the connection to {self.location} was lost during a write; whether it was kept is not known",
                    hint="look before you repeat it; a call with the same idempotency key is safe",
                    outcome="unknown",
                )
            pause = min(pause * 2, 1.0)

    @staticmethod
    def _found(session: Session, writes: WriteSet) -> int | None:
        if writes.streams:
            event = writes.streams[-1].events[-1]
            row = session.row(_EVENT_THERE, (event.stream, event.seq, event.hash))
            return None if row is None else int(row[0])
        if writes.key is not None:
            return None if session.row(_KEY_THERE, writes.key[:4]) is None else 0
        return None

    def renew(self, holder: str, now_ms: int, expires_ms: int) -> int:
        return len(self._asked(lambda session: session.rows(_RENEW, (expires_ms, now_ms, holder, now_ms))))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Holds the lock that every commit needs, until this thread's own commit lets go of it with its last word."""
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
            hinted = self._rest(heard, min(pause, left), cancelled)
            pause = FIRST_POLL_S if hinted else min(pause * 2, POLL_S)
        return False

    def _rest(self, heard: int, pause_s: float, cancelled: Callable[[], bool]) -> bool:
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
        return self._asked(
            lambda session: any(
                session.row(_own(_HAS_NEWS), (position, bound)) == (True,) for bound in self._bounds(session)
            )
        )

    def _asked(self, question: Callable[[Session], AnswerT]) -> AnswerT:
        """The answer to what may be asked twice: connections that turn out to be gone are passed over."""
        for _ in range(KEEP_IDLE):
            session = self._connections.take()
            try:
                return question(session)
            except psycopg.Error as error:
                if not session.is_lost:
                    raise refusal_for(error, self.location) from error
            finally:
                self._connections.give(session)
        raise StoreUnusable(f"{self.location} drops every connection", hint="look into the server's log")

    @staticmethod
    def _bounds(session: Session) -> Iterator[int]:
        """First what costs nothing, then what holds on a server where others have long transactions too."""
        yield LOWEST
        row = session.row(_SETTLED)
        assert row is not None
        yield row[0]

    # -- upkeep -----------------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        """Indexes the server knows to be unusable, pages it has found damaged, tables that cannot be read to the
        end."""
        problems: list[str] = []
        with self._connections.taken() as session:
            problems += [f"index {name} is not valid" for (name,) in session.rows(_BAD_INDEXES)]
            damaged = session.row(_BAD_PAGES)
            if damaged is not None and damaged[0]:
                problems.append(f"the server has found {damaged[0]} damaged pages")
            for table in ("event", "stream", "idempotency", *(table.name for table in TABLES)):
                try:
                    session.row(f"SELECT count(*), sum(length(t::text)) FROM {table} t")  # noqa: S608 - our own names
                except (psycopg.InternalError, psycopg.DataError, errors.DataCorrupted) as error:
                    problems.append(f"{table} cannot be read: {error}")
        return problems

    def backup(self, target: str) -> None:
        """A consistent copy as a SQLite store, made while others write."""
        with self.reading() as reader:
            assert isinstance(reader, PostgresReader)
            write_backup(reader, Path(target), self._version)

    def restore(self, source: str) -> None:
        """Takes a backup's content in place of our own, in one transaction."""
        with self._connections.taken() as session:
            read_backup(session, Path(source), self._version)
        self._hints.give()
        self._notifier.tell()

    def close(self) -> None:
        self._closing.set()
        self._hints.give()
        self._notifier.close()
        self._listener.close()
        self._connections.close()


def _row_step(row: RowWrite) -> Step:
    if row.values is None:
        return _own(sql.REMOVE[row.table]), (row.key,)
    if row.changed:
        text, chosen = sql.change(row.table, row.changed)
        return _own(text), chosen(row.values)
    return _own(sql.PUT[row.table]), row.values


def _event(row: tuple[Any, ...]) -> Event:
    return decode_event(row[0], row[1], row[2], row[3:])
