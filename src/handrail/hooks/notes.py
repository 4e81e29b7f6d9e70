"""What hooks remember between two runs, in a small file of their own beside the store: which files were edited, and
which tasks somebody was reminded of.

Not in the store: its rows are explained by events, which only the server writes. And not evidence: the journal finds
out by itself what a task changed. A lost note costs nothing but the hint, so nothing here waits for a disk.
"""

from __future__ import annotations

import os

import apsw

BUSY_MS = 500
KEPT_MS = 30 * 24 * 3600 * 1000
REMINDED_MS = 12 * 3600 * 1000
"""After this somebody may be reminded of the same task again."""
_SCHEMA = 1
_TABLES = f"""
CREATE TABLE edited (
  directory TEXT NOT NULL, path TEXT NOT NULL, agent TEXT NOT NULL, at_ms INTEGER NOT NULL,
  PRIMARY KEY (directory, path, agent)
) STRICT, WITHOUT ROWID;
CREATE TABLE reminded (
  session TEXT NOT NULL, task TEXT NOT NULL, at_ms INTEGER NOT NULL, PRIMARY KEY (session, task)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = {_SCHEMA};
"""


def notes_path(store: str) -> str:
    """The file beside a store. The project's .gitignore covers it as one of the database's files."""
    return f"{store}.hooks"


def note_edit(store: str, directory: str, path: str, agent: str, now_ms: int) -> None:
    """Notes that a file was edited in a working copy, by whom and when, but not for which task: nobody knows for
    sure."""
    with _open(store) as notes:
        notes.execute("INSERT OR REPLACE INTO edited VALUES (?, ?, ?, ?)", (directory, path, agent, now_ms))
        notes.execute("DELETE FROM edited WHERE at_ms < ?", (now_ms - KEPT_MS,))


def edited_since(store: str, directory: str, agent: str, since_ms: int, limit: int) -> list[str]:
    """The files edited since then, latest first; for a named agent, without those that other agents edited."""
    if not os.path.isfile(notes_path(store)):  # noqa: PTH113 - pathlib is heavy
        return []
    rows = _connect(store, apsw.SQLITE_OPEN_READONLY).execute(
        "SELECT path FROM edited WHERE directory = ?1 AND at_ms >= ?2 AND (?3 = '' OR agent IN ('', ?3)) "
        "GROUP BY path ORDER BY max(at_ms) DESC, path LIMIT ?4",
        (directory, since_ms, agent, limit),
    )
    return [str(path) for (path,) in rows]


def not_reminded(store: str, session: str, tasks: list[str], now_ms: int) -> list[str]:
    """The tasks that nobody was reminded of in this session; marks them as reminded."""
    remember = "INSERT OR IGNORE INTO reminded VALUES (?, ?, ?) RETURNING 1"
    new = []
    with _open(store) as notes:
        notes.execute("DELETE FROM reminded WHERE at_ms < ?", (now_ms - REMINDED_MS,))
        for task in tasks:
            if notes.execute(remember, (session, task, now_ms)).fetchall():
                new.append(task)
    return new


def _open(store: str) -> apsw.Connection:
    """Opens the notes, creating them if there are none. As a context manager it is one transaction."""
    notes = _connect(store, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    notes.execute("PRAGMA synchronous = OFF").fetchall()
    if notes.execute("PRAGMA user_version").get != _SCHEMA:
        notes.execute("BEGIN IMMEDIATE")
        with notes:
            if notes.execute("PRAGMA user_version").get == 0:  # nobody else was first
                notes.execute(_TABLES)
        notes.execute("COMMIT")
    return notes


def _connect(store: str, flags: int) -> apsw.Connection:
    path = notes_path(store)
    if os.path.islink(path):  # noqa: PTH114 - it may have come with the repository, and lead anywhere
        raise ValueError(path)
    notes = apsw.Connection(path, flags=flags)
    notes.set_busy_timeout(BUSY_MS)
    return notes
