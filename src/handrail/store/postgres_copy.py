"""PostgreSQL's side of a copy: reading everything in a schema, and filling a schema from any store. Also the mark of a
store that has moved. A copy in a file is an ordinary SQLite store, so it can be opened, verified and restored anywhere;
for stores too large for that there is pg_dump."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from handrail.kernel.errors import StoreUnusable
from handrail.store import statements as sql
from handrail.store.marks import MOVED, MOVED_KEY
from handrail.store.migrations import LATEST, STEPS
from handrail.store.postgres_reads import stored_rows
from handrail.store.postgres_schema import NEEDS_KEY, NOW_MS, go_on
from handrail.store.postgres_session import PostgresSession
from handrail.store.postgres_writes import SCHEMA_KEY
from handrail.store.sqlite import SqliteEngine
from handrail.store.sqlite_connections import inert
from handrail.store.sqlite_copy import SqliteRows
from handrail.store.store_copy import COPIED, EMPTY_ONLY, EVENT, Copying, Rows, TableCopy, Tell

_NO_LEASE_FROM_THE_FUTURE = (
    f"UPDATE lease SET expires_ms = expires_ms - renewed_ms + {NOW_MS}, renewed_ms = {NOW_MS} "  # noqa: S608 - our own names
    f"WHERE renewed_ms > {NOW_MS}"
)
"""Where the leases come from, they may have been judged by a clock that is ahead of the server's."""
_KEEP_META = sql.KEEP_META.replace("?", "%s")
_FORGET_META = "DELETE FROM meta WHERE key = %s"
_CHANGE_META = "UPDATE meta SET value = %s WHERE key = %s AND value = %s RETURNING 1"
_LAST_EVENT = "SELECT coalesce(max(position), 0) FROM event"
UNHURRIED = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
"""A copy takes as long as it takes. If its process dies, the server notices and releases the locks."""
WRITERS_OUT = "LOCK TABLE stream, idempotency, lease IN EXCLUSIVE MODE"
"""Every write begins with one of these; they are in the order in which a commit locks them."""


class PostgresRows:
    """Everything that one session sees. The caller holds a transaction, so that all of it is from one moment."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    def count(self, table: TableCopy) -> int:
        row = self._session.row(f"SELECT count(*) FROM {table.name}")  # noqa: S608 - our own names
        assert row is not None
        return int(row[0])

    def rows(self, table: TableCopy) -> Iterator[Sequence[Any]]:
        return stored_rows(self._session, table, " ORDER BY position" if table is EVENT else "")

    def last_position(self) -> int:
        row = self._session.row(_LAST_EVENT)
        assert row is not None
        return int(row[0])


class PostgresStill:
    """A store whose writers are kept out by a transaction's locks."""

    def __init__(self, session: PostgresSession) -> None:
        self.session = session
        self.rows: Rows = PostgresRows(session)

    def mark(self, moved_to: str) -> None:
        self.session.do(_KEEP_META, (MOVED_KEY, moved_to))
        self.session.do(_KEEP_META, (SCHEMA_KEY, str(MOVED + LATEST)))
        self.session.do("COMMIT")


def take_mark_away(session: PostgresSession, schema: int) -> bool:
    """Makes a moved store an ordinary one again; False if somebody else was first."""
    session.do("BEGIN")
    done = session.row(_CHANGE_META, (str(schema - MOVED), SCHEMA_KEY, str(schema))) is not None
    if done:
        session.do(_FORGET_META, (MOVED_KEY,))
    session.do("COMMIT")
    return done


def write_file(source: Rows, target: Path, version: str, tell: Tell) -> None:
    """Copies a store into a new SQLite store."""
    engine = SqliteEngine(target, version=version)
    try:
        engine.fill(source, tell)
    finally:
        engine.close()
        with suppress(FileNotFoundError):
            target.with_name(target.name + ".gate").unlink()


@contextmanager
def rows_of_file(path: Path, version: str) -> Iterator[Rows]:
    """The content of a backup. Read from a temporary copy, so that the backup stays as it is, whatever its schema."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)
        SqliteEngine(copy, version=version).close()
        with closing(inert(str(copy))) as connection:
            connection.execute("BEGIN")
            yield SqliteRows(connection)


class FillChecks(NamedTuple):
    """What may refuse a fill: before anything is changed, and before anybody sees it."""

    before: Callable[[], object]
    after: Callable[[], None]


def fill(session: PostgresSession, source: Rows, tell: Tell, checks: FillChecks, *, instead: bool = False) -> None:
    """Copies a whole store into an empty one, in one transaction that the checks may still refuse. `instead`: replaces
    what is there."""
    session.do(f"BEGIN; {UNHURRIED}; {WRITERS_OUT}")
    try:
        checks.before()
        if instead:
            for table in COPIED:
                session.do(f"DELETE FROM {table.name}")  # noqa: S608 - our own names
        else:
            check_empty(session)
        copying = Copying(source, tell)
        for table in COPIED:
            _copy_in(session, table, copying.rows(table))
        session.do(_NO_LEASE_FROM_THE_FUTURE)
        go_on(session, source.last_position())
        checks.after()
        session.do("COMMIT")
    except BaseException:
        if not session.is_lost:
            session.do("ROLLBACK")
        raise


def replace_rows(session: PostgresSession, rows: Rows) -> None:
    """Puts rows in the place of everything but the events, in the transaction that is open."""
    session.do(_KEEP_META, (NEEDS_KEY, STEPS[-1].since))
    for table in COPIED:
        if table is not EVENT:
            session.do(f"DELETE FROM {table.name}")  # noqa: S608 - our own names
            _copy_in(session, table, rows.rows(table))


def check_empty(session: PostgresSession) -> None:
    """Raises StoreUnusable if something would be overwritten."""
    if not is_empty(session):
        raise StoreUnusable("what is to be filled holds something already", hint=EMPTY_ONLY)


def is_empty(session: PostgresSession) -> bool:
    return all(not session.row(f"SELECT EXISTS (SELECT 1 FROM {table.name})")[0] for table in COPIED)  # type: ignore[index]  # noqa: S608 - our own names


def _copy_in(session: PostgresSession, table: TableCopy, rows: Iterator[Sequence[Any]]) -> None:
    with session.connection.cursor().copy(f"COPY {table.name} ({table.listed}) FROM STDIN") as copying:
        for row in rows:
            copying.write_row(row)
