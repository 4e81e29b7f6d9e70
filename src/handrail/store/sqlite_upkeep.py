"""Maintaining a SQLite file: whether it is sound, what takes how much space, and returning free space. The engine
decides when, and keeps writers out if needed."""

from __future__ import annotations

from pathlib import Path

import apsw

from handrail.store import statements as sql
from handrail.store.migrations import LATEST, STEPS
from handrail.store.ports import Size, Vacuumed, grouped
from handrail.store.problems import FILE, ROWS, SCHEMA, Problem
from handrail.store.shapes import strangers
from handrail.store.sqlite_connections import end_look

CHECKPOINT_MS = 1_000
"""How long to wait for readers that still need the log. If they do not finish, it is emptied next time."""

MOST_FOUND = 100
"""How many of its findings SQLite lists."""
_GIVEN = "SELECT position FROM counter WHERE one = 1"
_LAST = "SELECT coalesce(max(position), 0) FROM event"
_NEEDS = "SELECT value FROM meta WHERE key = 'needs'"
_BYTES = (
    "SELECT s.tbl_name, sum(d.pgsize) FROM dbstat d JOIN sqlite_schema s ON s.name = d.name "
    "WHERE d.aggregate = TRUE GROUP BY s.tbl_name"
)


def damage(connection: apsw.Connection) -> list[str]:
    """What is not part of a store, what SQLite itself finds wrong with the file (pages, types, indexes that do not hold
    what their tables do), and numbers beside the tables that are not what they must be."""
    problems: list[str] = []
    connection.execute("BEGIN")  # all from one moment
    try:
        problems += [Problem(SCHEMA, odd) for odd in strangers(connection, LATEST)]
        problems += _found_by_engine(connection)
        problems += _counting(connection)
    except (apsw.CorruptError, apsw.SQLError, UnicodeDecodeError) as error:  # too damaged to go on
        problems.append(Problem(FILE, str(error)))
    finally:
        end_look(connection)
    return problems


def _found_by_engine(connection: apsw.Connection) -> list[str]:
    found = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({MOST_FOUND})")]
    return [] if found == ["ok"] else [Problem(FILE, text) for text in found]


def _counting(connection: apsw.Connection) -> list[str]:
    """The last position that was given out is the last event's, and the version noted is the last step's."""
    problems: list[str] = []
    given, last = connection.execute(_GIVEN).get, connection.execute(_LAST).get
    if given != last:
        problems.append(Problem(ROWS, f"the counter stands at {given!r}, the last event at {last!r}"))
    needs = connection.execute(_NEEDS).get
    if needs != STEPS[-1].since:
        problems.append(Problem(ROWS, f"the store says that it needs Handrail {needs!r}, not {STEPS[-1].since}"))
    return problems


def sizes(connection: apsw.Connection, path: Path) -> list[Size]:
    """What takes how much space."""
    room = {name: int(size) for name, size in connection.execute(_BYTES)}
    counts = {
        name: int(connection.execute(f'SELECT count(*) FROM "{name}"').get)  # noqa: S608 - our own names
        for name in room
        if not name.startswith("sqlite_")
    }
    page = int(connection.execute("PRAGMA page_size").get)
    free = int(connection.execute("PRAGMA freelist_count").get) * page
    used = int(connection.execute("PRAGMA page_count").get) * page - free
    return [*grouped(counts, room, used), Size("free", None, free), Size("log", None, _size(Path(f"{path}-wal")))]


def vacuum(connection: apsw.Connection, path: Path, now_ms: int, busy_ms: int) -> Vacuumed:
    """Removes expired keys, rewrites the file without its free pages, and empties the log."""
    before = file_bytes(path)
    connection.execute(sql.SWEEP_ALL_KEYS, (now_ms,))
    keys = connection.changes()
    connection.execute("VACUUM")
    connection.set_busy_timeout(CHECKPOINT_MS)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.set_busy_timeout(busy_ms)
    return Vacuumed(before, file_bytes(path), keys)


def file_bytes(path: Path) -> int:
    """The size of the file with its log."""
    return _size(path) + _size(Path(f"{path}-wal"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
