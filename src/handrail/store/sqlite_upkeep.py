"""Maintaining a SQLite file: whether it is sound, what takes how much space, and returning free space. The engine
decides when, and keeps writers out if needed."""

from __future__ import annotations

from pathlib import Path

import apsw

from handrail.store import statements as sql
from handrail.store.reading import Size, Vacuumed, grouped

CHECKPOINT_MS = 1_000
"""How long to wait for readers that still need the log. If they do not finish, it is emptied next time."""

_BYTES = (
    "SELECT s.tbl_name, sum(d.pgsize) FROM dbstat d JOIN sqlite_schema s ON s.name = d.name "
    "WHERE d.aggregate = TRUE GROUP BY s.tbl_name"
)


def damage(connection: apsw.Connection) -> list[str]:
    """What SQLite itself finds wrong with the file."""
    found: list[str] = []
    try:
        found.extend(row[0] for row in connection.execute("PRAGMA integrity_check"))
    except apsw.CorruptError as error:  # too damaged to go on
        found.append(str(error))
    return [] if found == ["ok"] else found


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
