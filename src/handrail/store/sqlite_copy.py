"""SQLite's side of a copy: reading everything in a file, and filling an empty file from any store. Also the mark of a
file that has moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from handrail.store import statements as sql
from handrail.store.marks import MOVED, MOVED_KEY, is_moved
from handrail.store.migrations import LATEST
from handrail.store.store_copy import COPIED, Copying, Rows, TableCopy, Tell

_LAST_EVENT = "SELECT coalesce(max(position), 0) FROM event"
_GO_ON_AFTER = "UPDATE counter SET position = ? WHERE one = 1"


class SqliteRows:
    """Everything that one connection sees. The caller holds a transaction, so that all of it is from one moment."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def count(self, table: TableCopy) -> int:
        return int(self._connection.execute(f"SELECT count(*) FROM {table.name}").get)  # noqa: S608 - our own names

    def rows(self, table: TableCopy) -> Iterator[Sequence[Any]]:
        return iter(self._connection.execute(f"SELECT {table.listed} FROM {table.name}"))  # noqa: S608 - as above

    def last_position(self) -> int:
        return max(int(self._connection.execute(sql.POSITION).get), int(self._connection.execute(_LAST_EVENT).get))


def fill(connection: apsw.Connection, source: Rows, tell: Tell) -> None:
    """Copies a whole store into an empty one, in one transaction."""
    copying = Copying(source, tell)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for table in COPIED:
            holes = ", ".join("?" * len(table.columns))
            put = f"INSERT INTO {table.name} ({table.listed}) VALUES ({holes})"  # noqa: S608 - our own names
            connection.executemany(put, copying.rows(table))
        connection.execute(_GO_ON_AFTER, (source.last_position(),))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class SqliteStill:
    """A file whose writers are kept out, in a transaction of the connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.rows: Rows = SqliteRows(connection)

    def mark(self, moved_to: str) -> None:
        self._connection.execute(sql.KEEP_META, (MOVED_KEY, moved_to))
        self._connection.execute(f"PRAGMA user_version = {MOVED + LATEST}")
        self._connection.execute("COMMIT")


def take_mark_away(connection: apsw.Connection) -> bool:
    """Makes a moved file an ordinary store again; False if somebody else was first."""
    connection.execute("BEGIN IMMEDIATE")
    schema = int(connection.execute("PRAGMA user_version").get)
    if is_moved(schema):
        connection.execute("DELETE FROM meta WHERE key = ?", (MOVED_KEY,))
        connection.execute(f"PRAGMA user_version = {schema - MOVED}")
    connection.execute("COMMIT")
    return is_moved(schema)


def moved_to(connection: apsw.Connection) -> str | None:
    """Where a marked file says it has moved to."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (MOVED_KEY,)).fetchone()
    return None if row is None else str(row[0])
