"""What hooks remember between two runs, in a small file of their own beside the store: which files were edited, which
tasks somebody was reminded of, and which conversations were compacted. For a store on a server it is in the user's
folder, if there is one.

Not in the store: its rows are explained by events, which only the server writes. And not evidence: the journal finds
out by itself what a task changed. A lost note costs nothing but the hint, so nothing here waits for a disk.

What is read here is told to an agent, and the file may have come with a repository: notes that do not name the mark of
the store beside them, which only this machine knows, are dropped.
"""

from __future__ import annotations

import os

import apsw

from handrail.hooks.place import Place

BUSY_MS = 500
KEPT_MS = 30 * 24 * 3600 * 1000
REMINDED_MS = 12 * 3600 * 1000
"""After this somebody may be reminded of the same task again."""
_SCHEMA = 3
_TABLES = f"""
CREATE TABLE store (mark TEXT NOT NULL) STRICT;
CREATE TABLE edited (
  directory TEXT NOT NULL, path TEXT NOT NULL, agent TEXT NOT NULL, at_ms INTEGER NOT NULL,
  PRIMARY KEY (directory, path, agent)
) STRICT, WITHOUT ROWID;
CREATE TABLE reminded (
  session TEXT NOT NULL, task TEXT NOT NULL, at_ms INTEGER NOT NULL, PRIMARY KEY (session, task)
) STRICT, WITHOUT ROWID;
CREATE TABLE compacted (session TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA user_version = {_SCHEMA};
"""


def notes_path(store: str) -> str:
    """The file beside a store. The project's .gitignore covers it as one of the database's files."""
    return f"{store}.hooks"


def note_edits(place: Place, files: list[tuple[str, str]], now_ms: int) -> None:
    """Notes that files were edited, each in a working copy, by whom and when, but not for which task: nobody knows for
    sure."""
    with _open(place) as notes:
        for directory, path in files:
            notes.execute("INSERT OR REPLACE INTO edited VALUES (?, ?, ?, ?)", (directory, path, place.agent, now_ms))
        notes.execute("DELETE FROM edited WHERE at_ms < ?", (now_ms - KEPT_MS,))


def edited_since(place: Place, directory: str, since_ms: int, limit: int) -> list[str]:
    """The files edited since then, latest first; for a named agent, without those that other agents edited."""
    if not os.path.isfile(notes_path(place.store)):  # noqa: PTH113 - pathlib is heavy
        return []
    notes = _connect(place, apsw.SQLITE_OPEN_READONLY)
    if not _are_ours(notes, place.mark):
        return []
    rows = notes.execute(
        "SELECT path FROM edited WHERE directory = ?1 AND at_ms >= ?2 AND (?3 = '' OR agent IN ('', ?3)) "
        "GROUP BY path ORDER BY max(at_ms) DESC, path LIMIT ?4",
        (directory, since_ms, place.agent, limit),
    )
    return [str(path) for (path,) in rows]


def not_reminded(place: Place, session: str, tasks: list[str], now_ms: int) -> list[str]:
    """The tasks that nobody was reminded of in this session; marks them as reminded."""
    remember = "INSERT OR IGNORE INTO reminded VALUES (?, ?, ?) RETURNING 1"
    new = []
    with _open(place) as notes:
        notes.execute("DELETE FROM reminded WHERE at_ms < ?", (now_ms - REMINDED_MS,))
        for task in tasks:
            if notes.execute(remember, (session, task, now_ms)).fetchall():
                new.append(task)
    return new


def note_compaction(place: Place, session: str, now_ms: int) -> None:
    """Notes that a conversation is about to lose what it was told."""
    with _open(place) as notes:
        notes.execute("INSERT OR REPLACE INTO compacted VALUES (?, ?)", (session, now_ms))
        notes.execute("DELETE FROM compacted WHERE at_ms < ?", (now_ms - REMINDED_MS,))


def was_compacted(place: Place, session: str) -> bool:
    """Whether a conversation was compacted since this was last asked."""
    with _open(place) as notes:
        gone = notes.execute("DELETE FROM compacted WHERE session = ? RETURNING 1", (session,)).fetchall()
    return bool(gone)


def _open(place: Place) -> apsw.Connection:
    """Opens the notes, creating them if there are none of this store. As a context manager it is one transaction."""
    notes = _made(place)
    if not _are_ours(notes, place.mark):
        notes.close()
        for ending in ("", "-journal", "-wal", "-shm"):
            if os.path.lexists(notes_path(place.store) + ending):
                os.unlink(notes_path(place.store) + ending)  # noqa: PTH108 - as above
        notes = _made(place)
    return notes


def _made(place: Place) -> apsw.Connection:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(notes_path(place.store), flags, 0o600))  # SQLite would let others read it
    notes = _connect(place, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    notes.execute("PRAGMA synchronous = OFF").fetchall()
    if notes.execute("PRAGMA user_version").get == 0:
        notes.execute("BEGIN IMMEDIATE")
        with notes:
            if notes.execute("SELECT count(*) FROM sqlite_schema").get == 0:  # nobody else was first
                notes.execute(_TABLES)
                notes.execute("INSERT INTO store VALUES (?)", (place.mark,))
        notes.execute("COMMIT")
    return notes


def _are_ours(notes: apsw.Connection, mark: str) -> bool:
    if notes.execute("PRAGMA user_version").get != _SCHEMA:
        return False
    there = notes.execute("SELECT type, name FROM sqlite_schema ORDER BY name").fetchall()
    if there != [("table", name) for name in ("compacted", "edited", "reminded", "store")]:
        return False
    return notes.execute("SELECT mark FROM store").fetchall() == [(mark,)]


def _connect(place: Place, flags: int) -> apsw.Connection:
    path = notes_path(place.store)
    if os.path.islink(path):  # noqa: PTH114 - it may have come with the repository, and lead anywhere
        raise ValueError(path)
    notes = apsw.Connection(path, flags=flags)
    notes.set_busy_timeout(BUSY_MS)
    notes.execute("PRAGMA trusted_schema = OFF").fetchall()
    return notes
