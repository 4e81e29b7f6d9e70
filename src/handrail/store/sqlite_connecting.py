"""Connections to a SQLite file, with our settings. What is done with them is up to the engine."""

from __future__ import annotations

from pathlib import Path

import apsw

from handrail.kernel.errors import StoreUnusable

OLDEST_SQLITE = (3, 51, 3)
"""Older versions can lose committed pages when many processes checkpoint one file."""

_PRAGMAS = (
    "wal_autocheckpoint = 4000",
    "journal_size_limit = 67108864",
    "cache_size = -16384",
    "temp_store = MEMORY",
    "trusted_schema = OFF",
    "cell_size_check = ON",
)


def connect(path: Path, busy_ms: int, *, durable: bool) -> apsw.Connection:
    connection = apsw.Connection(str(path), statementcachesize=256)
    connection.set_busy_timeout(busy_ms)
    # Without this, a plan depends on bound values and is remade for each: reading a task took ten times as long.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    for pragma in (*_PRAGMAS, f"synchronous = {'FULL' if durable else 'NORMAL'}"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def check_library() -> None:
    """Raises StoreUnusable if the SQLite that is installed is too old."""
    found = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if found < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnusable(
            f"SQLite {apsw.sqlite_lib_version()} can lose data here", hint=f"install apsw with {needed}+"
        )
