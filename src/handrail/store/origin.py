"""Where a SQLite store was made: the mark by which a machine recognises its own, kept in the store's notes. What marks
prove is in `kernel/provenance.py`; whose the file is, in `outside/store_files.py`.

A store without this machine's mark is not used before its user trusted it. Then it gets the mark, and what made its
sessions look alive where it came from ends: leases lapse, and answers kept for repeated calls are dropped.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import apsw

from handrail.kernel.errors import StoreNotTrusted, StoreUnusable
from handrail.kernel.provenance import NONCE_DIGITS, MachineKey
from handrail.store import statements as sql
from handrail.store.marks import is_moved, moved
from handrail.store.migrations import LATEST
from handrail.store.places import OTHER_FILE
from handrail.store.shapes import strangers
from handrail.store.sqlite_connections import inert
from handrail.store.sqlite_copy import moved_to
from handrail.store.sqlite_refusals import translated
from handrail.store.write_lock import WriteLock

APPLICATION_ID = 0x48524C31
BUSY_MS = 30_000
TRUST_HINT = (
    "if you know where it comes from, run `handrail db trust` once; to begin without it, move it away. "
    "One that an older Handrail made here needs that too"
)
_LAPSED = "UPDATE lease SET expires_ms = 0"
_NO_ANSWERS = "DELETE FROM idempotency"


def not_made_here(path: Path) -> StoreNotTrusted:
    return StoreNotTrusted(f"{path} was not made on this machine, so it is not used", hint=TRUST_HINT, path=str(path))


def is_marked(connection: apsw.Connection, key: MachineKey) -> bool:
    row = connection.execute(sql.NOTE, (key.mark_name,)).fetchone()
    return row is not None and key.is_mark(row[0])


def check_mark(connection: apsw.Connection, path: Path, key: MachineKey | None) -> None:
    """Raises StoreNotTrusted for a store that this machine does not recognise."""
    if key is not None and not is_marked(connection, key):
        raise not_made_here(path)


def put_mark(connection: apsw.Connection, key: MachineKey | None) -> None:
    """Marks a store as this machine's, in the caller's transaction."""
    if key is not None:
        nonce = os.urandom(NONCE_DIGITS // 2).hex()
        connection.execute(sql.KEEP_META, (key.mark_name, key.mark(nonce)))


def adopt(connection: apsw.Connection, key: MachineKey | None, *, lapse: bool = True) -> bool:
    """Marks a store that came from elsewhere; False if it has the mark already. Without `lapse` it is a copy of one
    that this machine used until now, and its sessions go on."""
    if key is None or is_marked(connection, key):
        return False
    if odd := why_foreign(connection, connection.filename):
        raise StoreUnusable(f"{connection.filename}: {odd[0]}", hint=OTHER_FILE, strangers=odd)
    connection.execute("BEGIN IMMEDIATE")
    try:
        put_mark(connection, key)
        if lapse:
            connection.execute(_LAPSED)
            connection.execute(_NO_ANSWERS)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return True


def why_foreign(connection: apsw.Connection, location: str) -> list[str]:
    """Why a database is no store of ours, or what in it is not part of one. Raises StoreUnusable if it has moved."""
    schema = int(connection.execute("PRAGMA user_version").get)
    if connection.execute("PRAGMA application_id").get != APPLICATION_ID or schema < 1:
        return ["it is a database of something else"]
    if is_moved(schema):
        raise moved(location, moved_to(connection))
    if schema > LATEST:
        return [f"it has schema {schema}, this Handrail knows {LATEST}"]
    return strangers(connection, schema)


def adopt_file(path: Path, key: MachineKey, *, lapse: bool = True) -> bool:
    """The same for a file that nobody has opened, whatever its schema."""
    gate = WriteLock(Path(f"{os.path.realpath(path)}.gate"), BUSY_MS / 1000)
    with contextlib.closing(gate), translated(path), gate.held(), _opened(path) as connection:
        return adopt(connection, key, lapse=lapse)


def made_here(path: Path, key: MachineKey) -> bool:
    """Whether a file has this machine's mark. Nothing is written; an empty file is nobody's yet."""
    with translated(path), _opened(path, apsw.SQLITE_OPEN_READONLY) as connection:
        return not connection.execute("PRAGMA user_version").get or is_marked(connection, key)


@contextlib.contextmanager
def _opened(path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE) -> Iterator[apsw.Connection]:
    with contextlib.closing(inert(str(path), flags)) as connection:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("PRAGMA trusted_schema = OFF").fetchall()
        filled = connection.execute("SELECT count(*) FROM sqlite_schema").get
        if filled and connection.execute("PRAGMA application_id").get != APPLICATION_ID:
            raise StoreUnusable(f"{path} is a database of something else", hint=OTHER_FILE)
        yield connection
