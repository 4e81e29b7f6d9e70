"""Connections to a SQLite store: set up for many processes, and so that nothing in the file can act by itself. Triggers
and views do not run whatever the file holds, its schema cannot be written to, and its functions are not trusted."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import apsw

from handrail.kernel.errors import StoreUnusable

OLDEST_SQLITE = (3, 51, 3)
"""Older versions can lose committed pages when many processes checkpoint one file."""

CONNECTION_PRAGMAS = (
    "wal_autocheckpoint = 4000",
    "journal_size_limit = 67108864",
    "cache_size = -16384",
    "temp_store = MEMORY",
    "trusted_schema = OFF",
    "cell_size_check = ON",
)
INERT = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
)
STATEMENTS = 256
"""How many prepared statements a connection keeps."""


def connect(path: Path, *, busy_ms: int, durable: bool) -> apsw.Connection:
    """A connection for a store's own work."""
    connection = apsw.Connection(str(path), statementcachesize=STATEMENTS)
    connection.set_busy_timeout(busy_ms)
    # Without this, a plan depends on bound values and is remade for each: reading a task took ten times as long.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    make_inert(connection)
    for pragma in (*CONNECTION_PRAGMAS, f"synchronous = {'FULL' if durable else 'NORMAL'}"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def inert(path: str, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """A connection for looking at a file that may be anybody's: it is not created, and nothing that it holds runs. Who
    only reads one without a log leaves nothing beside it, as SQLite otherwise would."""
    if flags == apsw.SQLITE_OPEN_READONLY and not os.path.exists(f"{os.path.realpath(path)}-wal"):  # noqa: PTH110 - never raises
        path, flags = f"file:{quote(path)}?immutable=1", flags | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(path, flags=flags)
    make_inert(connection)
    connection.execute("PRAGMA cell_size_check = ON").fetchall()
    return connection


def make_inert(connection: apsw.Connection) -> None:
    """Nothing that a file holds runs on this connection."""
    for option, value in INERT:
        connection.config(option, value)


def end_look(connection: apsw.Connection) -> None:
    """Ends a transaction that only read. One that met damage cannot be committed."""
    if connection.in_transaction:
        try:
            connection.execute("COMMIT")
        except apsw.CorruptError:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def check_library() -> None:
    """Raises StoreUnusable if the SQLite that is installed is too old."""
    found = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if found < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnusable(
            f"SQLite {apsw.sqlite_lib_version()} can lose data here", hint=f"install apsw with {needed}+"
        )
