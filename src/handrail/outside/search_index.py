"""The search index: a file beside the store, built from its ledger, used by one search at a time.

It can be deleted at any time: if it is missing, outdated, damaged or somebody else's, it is rebuilt, and if no file can
be kept, the search builds its index in memory. Nothing that writes to the store knows about it. Words come from
`domain/search`, so SQLite's full-text search only keeps and ranks them (BM25): it never sees text as a person wrote it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import apsw
import msgspec

from handrail.domain.search.documents import SOURCES, Row, SearchDocument, row_after
from handrail.domain.search.words import SearchTerms, Term, forms_in
from handrail.kernel.ledger import Change, Event
from handrail.kernel.records import PAGE
from handrail.outside.file_lock import FileLock

ResultT = TypeVar("ResultT")

FORMAT = 3
"""Incremented with every change to what is kept or to what counts as a word: an index of another format is rebuilt."""
APPLICATION_ID = 0x48524C53
WEIGHTS = (4.0, 1.0, 1.0)
"""How much a word counts in a title, in the text below it, and as a name in one piece."""
PAGES = 10
"""Pages of events per transaction: what a killed search can lose."""
PATIENCE_S = 30.0
"""How long a search waits for another one to update the index before it builds its own in memory."""
LAST_MS = 253_402_300_799_999
"""The last moment that has a date; code that shows one relies on it."""
_SCHEMA = """
CREATE TABLE stand (position INTEGER NOT NULL, hash TEXT NOT NULL, store TEXT NOT NULL);
CREATE TABLE kept (id INTEGER PRIMARY KEY, source TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL,
  row BLOB NOT NULL, UNIQUE (source, key));
CREATE TABLE document (id INTEGER PRIMARY KEY, kept INTEGER NOT NULL, place TEXT NOT NULL, part INTEGER NOT NULL,
  kind TEXT NOT NULL, workflow TEXT, repository TEXT, at INTEGER NOT NULL);
CREATE INDEX document_of ON document (kept);
CREATE INDEX document_here ON document (repository) WHERE repository IS NOT NULL;
CREATE VIRTUAL TABLE words USING fts5 (title, body, names, content = '', tokenize = 'ascii');
INSERT INTO stand VALUES (0, '', '');
"""
"""No index of prefixes: it made the file a third larger, and found them no sooner."""
_CAREFUL = """
PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL;
PRAGMA cache_size = -65536
"""


class EventFeed(Protocol):
    """The ledger's feed: events after a position, in order."""

    def __call__(self, *, after: int, limit: int) -> list[Event]: ...


class SearchQuery(NamedTuple):
    """What to search for, and where. Empty fields exclude nothing."""

    question: SearchTerms
    kind: str | None = None
    workflow: str | None = None
    repository: str | None = None
    """Only what belongs to this repository, and what belongs to no workflow at all."""
    since_ms: int = 0
    limit: int = 20


class Hit(NamedTuple):
    """One text that was found."""

    source: str
    """The table of its row."""
    key: str
    document: SearchDocument
    at: int
    score: float
    """Higher is better; comparable within one search."""


class SearchHits(NamedTuple):
    """The best texts, best first."""

    hits: list[Hit]
    total: int
    complete: bool
    """False if no text has everything that was searched for, and these have some of it."""


class _NotOurs(Exception):  # noqa: N818 - nothing went wrong: the file is replaced
    """A file that holds something else, or an older format."""


_SENSELESS = (LookupError, TypeError, ValueError, AttributeError)
"""What rows that we did not write can cause. If our own code is at fault, it fails again in memory, and is noticed."""


def with_index(
    path: Path | None, work: Callable[[SearchIndex], ResultT], *, store: str = "", patience_s: float = PATIENCE_S
) -> ResultT:
    """Runs `work` with the index in this file. It may be run again, with an empty index. `store` is the mark of the
    store it belongs to, which nobody elsewhere knows: a file that came with a repository is no index of it."""
    if path is not None:
        with _exclusive_file(path, patience_s) as descriptor:
            for _ in range(2 if descriptor is not None else 0):
                try:
                    with contextlib.closing(_open_index(path, store)) as connection:
                        return work(SearchIndex(connection))
                except (apsw.Error, msgspec.MsgspecError, _NotOurs, *_SENSELESS):
                    _empty(path, descriptor)
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        connection.execute(_SCHEMA)
        return work(SearchIndex(connection))


# -- the file ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _exclusive_file(path: Path, patience_s: float) -> Iterator[int | None]:
    """The file, created if missing, for this search alone; None if that is impossible. A link is not followed: it may
    have come with a repository, and lead anywhere."""
    try:
        lock = _lock_file(path, patience_s)
    except OSError:
        lock = None
    try:
        yield lock.descriptor if lock is not None else None
    finally:
        if lock is not None:
            lock.leave()


def _lock_file(path: Path, patience_s: float) -> FileLock | None:
    deadline = time.monotonic() + patience_s
    while True:
        lock = FileLock(str(path))
        try:
            if lock.taken_within(deadline - time.monotonic()) and _is_there(path, lock.descriptor):
                if hasattr(os, "fchmod"):
                    os.fchmod(lock.descriptor, 0o600)
                return lock
        except BaseException:
            lock.leave()
            raise
        lock.leave()
        if time.monotonic() >= deadline:
            return None


def _is_there(path: Path, descriptor: int) -> bool:
    """Whether the file still has its name: somebody may have deleted it since it was opened."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    return False


def _open_index(path: Path, store: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(str(path.parent.resolve() / path.name), flags=flags)
    try:
        connection.execute(_CAREFUL)
        if not path.stat().st_size:
            connection.execute(f"BEGIN; {_SCHEMA}; PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("UPDATE stand SET store = ?", (store,))
            connection.execute(f"PRAGMA user_version = {FORMAT}; COMMIT")
        _check_ours(connection, store)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_ours(connection: apsw.Connection, store: str) -> None:
    marks = (connection.pragma("application_id"), connection.pragma("user_version"))
    if marks != (APPLICATION_ID, FORMAT) or _shape(connection) != _our_shape():
        raise _NotOurs
    if connection.execute("SELECT store FROM stand").fetchall() != [(store,)]:
        raise _NotOurs


def _empty(path: Path, descriptor: int | None) -> None:
    """Deletes what the file holds. It stays the same file: others may be waiting for it."""
    assert descriptor is not None
    with contextlib.suppress(OSError):  # then opening it fails again, and the search continues in memory
        for name in ("-journal", "-wal", "-shm"):
            path.with_name(path.name + name).unlink(missing_ok=True)
        os.ftruncate(descriptor, 0)


def _shape(connection: apsw.Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").fetchall()


@cache
def _our_shape() -> list[tuple[Any, ...]]:
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        connection.execute(_SCHEMA)
        return _shape(connection)


# -- the fold ---------------------------------------------------------------------------------------------------------


class SearchIndex:
    """An index over an open database, for one search at a time."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute

    def catch_up(self, feed: EventFeed, progress: Callable[[int], None] = lambda _: None) -> None:
        """Takes in the ledger's events since the last time; all of them if that was another ledger. `progress` gets the
        position, unless there is only one page."""
        position = self._checked_position(feed)
        more = True
        while more:
            with self._connection:
                for _ in range(PAGES):
                    page = feed(after=position, limit=PAGE)
                    more = len(page) == PAGE
                    if page:
                        self._take_in(page)
                        position = page[-1].position
                        self._execute("UPDATE stand SET position = ?, hash = ?", (position, page[-1].hash))
                    if not more:
                        break
                    progress(position)

    def _checked_position(self, feed: EventFeed) -> int:
        """The index's position, after checking that the ledger still has the event at that position."""
        stands = self._execute("SELECT position, hash FROM stand").fetchall()
        position, told = stands[0] if len(stands) == 1 else (None, None)
        if not isinstance(position, int) or not self._is_whole():
            raise _NotOurs
        if position == 0 and self._execute("SELECT EXISTS (SELECT 1 FROM kept)").get:
            self._forget_all()  # from an unknown ledger
        if position:
            there = feed(after=position - 1, limit=1)
            if not there or (there[0].position, there[0].hash) != (position, told):
                self._forget_all()
                return 0
        return position

    def _is_whole(self) -> bool:
        """Whether every text has its words, and every row its texts, judging by their numbers."""
        documents, of_rows = self._execute("SELECT count(*), count(DISTINCT kept) FROM document").get
        rows, words = self._execute("SELECT (SELECT count(*) FROM kept), (SELECT count(*) FROM words_docsize)").get
        return bool(documents == words and of_rows <= rows)

    def _forget_all(self) -> None:
        with self._connection:
            self._execute(
                "DELETE FROM kept; DELETE FROM document; UPDATE stand SET position = 0, hash = '';"
                "INSERT INTO words (words) VALUES ('delete-all')"
            )

    def _take_in(self, events: list[Event]) -> None:
        """Applies what these events did to rows, each row once."""
        touched: dict[tuple[str, str], tuple[Row | None, int]] = {}
        for event in events:
            for change in event.changes:
                if change.table not in SOURCES:
                    continue
                place = (change.table, change.key)
                if change.after is None:
                    touched[place] = (None, event.at_ms)
                    continue
                known = touched[place][0] if place in touched else self._row(change)
                after = row_after(change.table, known, change.after)
                if after is not None:
                    touched[place] = (after, event.at_ms)
        for (source, key), (row, at) in touched.items():
            self._take_out(source, key)
            if row is not None:
                self._add_row(source, key, row, at)

    def _row(self, change: Change) -> Row | None:
        """The row as it is kept. Newly created rows are not looked up."""
        if change.before is None:
            return None
        place = (change.table, change.key)
        found = self._execute("SELECT row FROM kept WHERE source = ? AND key = ?", place).fetchone()
        return None if found is None else msgspec.json.decode(found[0], type=dict[str, Any])

    def _take_out(self, source: str, key: str) -> None:
        """Removes a row's documents from the index. Their words are given again, because the index keeps no text to
        look them up in; this keeps its counts exact."""
        found = self._execute("SELECT id, row FROM kept WHERE source = ? AND key = ?", (source, key)).get
        if found is None:
            return
        kept, row = found
        documents = SOURCES[source].documents(key, msgspec.json.decode(row, type=dict[str, Any]))
        numbers = self._execute("SELECT id FROM document WHERE kept = ? ORDER BY part", (kept,)).fetchall()
        for (number,), one in zip(numbers, documents, strict=True):
            told = ("delete", number, *_columns(one))
            self._execute("INSERT INTO words (words, rowid, title, body, names) VALUES (?, ?, ?, ?, ?)", told)
        self._execute("DELETE FROM document WHERE kept = ?", (kept,))
        self._execute("DELETE FROM kept WHERE id = ?", (kept,))

    def _add_row(self, source: str, key: str, row: Row, at: int) -> None:
        self._execute(
            "INSERT INTO kept (source, key, at, row) VALUES (?, ?, ?, ?)", (source, key, at, msgspec.json.encode(row))
        )
        kept = self._connection.last_insert_rowid()
        for part, one in enumerate(SOURCES[source].documents(key, row)):
            when = at if one.at is None else one.at
            self._execute(
                "INSERT INTO document (kept, place, part, kind, workflow, repository, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (kept, f"{source} {key}", part, one.kind, one.workflow_id, one.repository, when),
            )
            told = (self._connection.last_insert_rowid(), *_columns(one))
            self._execute("INSERT INTO words (rowid, title, body, names) VALUES (?, ?, ?, ?)", told)

    # -- searching ----------------------------------------------------------------------------------------------------

    def search(self, sought: SearchQuery) -> SearchHits:
        """The best texts that have everything searched for; if there are none, those that have some of it."""
        complete = self._search(sought, " AND ")
        if complete.total or len(sought.question.wanted) == 1:
            return complete
        return self._search(sought, " OR ")._replace(complete=False)

    def _search(self, sought: SearchQuery, together: str) -> SearchHits:
        where, given = _conditions(sought)
        given["match"] = _expression(sought.question, together)
        tables = f"FROM words JOIN document d ON d.id = words.rowid WHERE words MATCH :match{where}"
        total = self._execute(f"SELECT count(*) {tables}", given).get
        score = f"bm25(words, {', '.join(map(str, WEIGHTS))})"
        best = f"SELECT d.kept AS kept, d.part AS part, d.at AS at, {score} AS score, d.place AS place {tables} "
        order = "ORDER BY score, at DESC, place, part"
        rows = self._execute(
            f"SELECT k.source, k.key, k.row, part, best.at, -score FROM ({best} {order} LIMIT :limit) best "  # noqa: S608
            f"JOIN kept k ON k.id = best.kept ORDER BY score, best.at DESC, place, part",
            given,
        )
        return SearchHits([_hit(*row) for row in rows], int(total), True)


def _hit(source: str, key: str, row: bytes, part: int, at: int, score: float) -> Hit:
    kept = msgspec.json.decode(row, type=dict[str, Any])
    found = SOURCES[source].documents(key, kept)[part]
    ids = (found.workflow_id, found.task_id)
    if not all(isinstance(text, str) for text in (key, found.title, found.body, *filter(None, ids))):
        raise _NotOurs
    if not found.title and not found.body:  # no word can be in it
        raise _NotOurs
    return Hit(source, key, found, min(max(at, 0), LAST_MS), score)


def _columns(one: SearchDocument) -> tuple[str, str, str]:
    """A document as words separated by spaces, which the index takes as they are."""
    title, title_names = forms_in(one.title)
    body, body_names = forms_in(one.body)
    return " ".join(title), " ".join(body), " ".join([*title_names, *body_names])


def _conditions(sought: SearchQuery) -> tuple[str, dict[str, Any]]:
    parts: list[str] = []
    if sought.kind is not None:
        parts.append("d.kind = :kind")
    if sought.workflow is not None:
        parts.append("d.workflow = :workflow")
    if sought.repository is not None:
        here = "SELECT workflow FROM document WHERE repository = :repository"
        parts.append(f"(d.workflow IS NULL OR d.workflow IN ({here}))")
    if sought.since_ms:
        parts.append("d.at >= :since_ms")
    given = {name: value for name, value in sought._asdict().items() if name != "question"}
    return "".join(f" AND {part}" for part in parts), given


def _expression(question: SearchTerms, together: str) -> str:
    """The question in the index's query language. Only word forms get in, each in quotes: nothing typed is ever
    syntax."""
    wanted = together.join(map(_term, question.wanted))
    if not question.unwanted:
        return wanted
    return f"({wanted}) NOT ({' OR '.join(map(_term, question.unwanted))})"


def _term(term: Term) -> str:
    ways = [" ".join(term.forms), *([term.whole] if term.whole else [])]
    star = "*" if term.begins else ""
    return f"({' OR '.join(_quoted(way) + star for way in ways)})"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
