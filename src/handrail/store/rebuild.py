"""Makes a store anew from its ledger: every row, head and index. What is in no event is taken over where it is sound:
answers kept for repeated calls, and how long leases still run. A ledger that is damaged itself is refused."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from handrail.kernel.errors import StoreUnusable
from handrail.store import statements as sql
from handrail.store.migrations import LATEST
from handrail.store.places import whole_file
from handrail.store.ports import Reader
from handrail.store.problems import LEDGER, parts_of
from handrail.store.shapes import strangers
from handrail.store.sqlite import BUSY_MS, SqliteEngine
from handrail.store.sqlite_connections import inert
from handrail.store.sqlite_reads import SqliteReader
from handrail.store.sqlite_refusals import translated
from handrail.store.store_copy import EVENT, KEY, STREAM, TableCopy, Tell, copied
from handrail.store.tables import TABLES, Table
from handrail.store.verification import Fold, fold, may_be_newer, plain, problems_in, row_from, sound_keys
from handrail.store.write_lock import WriteLock

LOG_ENDINGS = ("-wal", "-shm")


class Rebuilt(NamedTuple):
    """What a rebuilt store holds."""

    events: int
    rows: int
    keys: int


class FoldedRows:
    """A whole store as its ledger describes it. Only the events are read again when they are asked for."""

    def __init__(self, reader: Reader, progress: Callable[[int], None]) -> None:
        self._reader = reader
        folded = fold(reader, progress)
        lost = [problem for problem in folded.problems if LEDGER in parts_of([problem])]
        if lost:
            raise StoreUnusable(
                f"the ledger itself is damaged: {lost[0]}",
                hint="handrail db restore BACKUP brings back a copy; nothing was changed",
                damaged=True,
            )
        self._last = folded.last_position
        self._events = folded.seen
        self._rows: dict[str, list[Sequence[Any]]] = {
            table.name: _rows_of(table, folded, _presence(reader, table)) for table in TABLES
        }
        self._rows[STREAM.name] = [(name, *head) for name, head in sorted(folded.heads.items())]
        with contextlib.suppress(StoreUnusable):  # what can no longer be read is forgotten
            self._rows[KEY.name] = sound_keys(reader)

    def count(self, table: TableCopy) -> int:
        return self._events if table is EVENT else len(self._rows.get(table.name, ()))

    def rows(self, table: TableCopy) -> Iterator[Sequence[Any]]:
        if table is EVENT:
            return (plain(EVENT, row) for row in self._reader.stored(EVENT))
        return iter(self._rows.get(table.name, ()))

    def last_position(self) -> int:
        return self._last

    def counts(self) -> Rebuilt:
        rows = sum(len(self._rows[table.name]) for table in TABLES)
        return Rebuilt(self._events, rows, len(self._rows.get(KEY.name, ())))


def _rows_of(table: Table, folded: Fold, present: dict[str, tuple[Any, ...]]) -> list[Sequence[Any]]:
    found: list[Sequence[Any]] = []
    for key, document in folded.tables[table.name].items():
        row = list(row_from(table, document))
        for column in table.unlogged if key in present else ():
            place = table.columns.index(column)
            if may_be_newer(table, column, document, present[key]):
                row[place] = present[key][place]
        found.append(tuple(row))
    return found


def _presence(reader: Reader, table: Table) -> dict[str, tuple[Any, ...]]:
    """The rows of a table with values that are in no event, as far as they can be read."""
    found: dict[str, tuple[Any, ...]] = {}
    with contextlib.suppress(StoreUnusable):
        for row in reader.stored(copied(table)) if table.unlogged else ():
            whole = plain(copied(table), row)
            found[str(whole[0])] = whole
    return found


def rebuild_file(path: Path, kept: Path, *, version: str, tell: Tell, mark: str = "") -> Rebuilt:
    """Puts a store made from its ledger in the place of a file, which is kept as `kept`. Everybody who has the file
    open is told at their next write that it was replaced. `mark` names the note by which this machine recognises it."""
    real = Path(os.path.realpath(path))
    gate = WriteLock(Path(f"{real}.gate"), BUSY_MS / 1000)
    made = real.with_name(f"{real.name}.rebuilt-{os.getpid()}")
    with contextlib.closing(gate), gate.held():
        with _looking(real) as reader, whole_file(made) as part:
            rows = FoldedRows(reader, lambda seen: tell("reading events", seen, 0))
            _write(part, rows, version, tell, {mark: reader.note(mark) or ""} if mark else {})
        try:
            keep_beside(real, kept)
            drop_log(real)
            made.replace(real)
        finally:
            made.unlink(missing_ok=True)
    return rows.counts()


@contextlib.contextmanager
def _looking(path: Path) -> Iterator[Reader]:
    """A view of a file that may be damaged or hold more than a store does. Only its schema's number must be ours."""
    with translated(path), contextlib.closing(inert(str(path))) as connection:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("BEGIN")
        schema = int(connection.execute("PRAGMA user_version").get)
        if schema != LATEST and strangers(connection, LATEST):  # otherwise only its number is damaged
            raise StoreUnusable(
                f"{path} has schema {schema}, not {LATEST}",
                hint="an older one is first brought up to date: handrail db upgrade; nothing was changed",
            )
        yield SqliteReader(connection)


def _write(part: Path, rows: FoldedRows, version: str, tell: Tell, notes: dict[str, str]) -> None:
    engine = SqliteEngine(part, version=version, durable=True)
    try:
        engine.fill(rows, tell)
        problems = engine.check()
        with engine.reading() as reader:
            problems = problems or problems_in(reader)
    finally:
        engine.close()
    with contextlib.closing(inert(str(part))) as connection:
        for note in notes.items():
            connection.execute(sql.KEEP_META, note)
    if problems:
        raise StoreUnusable(f"the ledger makes no sound store: {problems[0]}", hint="nothing was changed")


def keep_beside(path: Path, kept: Path) -> None:
    """Gives a store's file another name as well, with a copy of its log. Nothing is changed, whenever it is killed."""
    log = Path(f"{path}-wal")
    if log.exists():
        shutil.copyfile(log, Path(f"{kept}-wal"))
    try:
        os.link(path, kept)
    except OSError:  # a file system without links
        shutil.copyfile(path, kept)
    kept.chmod(0o600)


def drop_log(path: Path) -> None:
    """Removes the log beside a file that is about to be replaced: it would be read as part of the next one."""
    for ending in LOG_ENDINGS:
        Path(f"{path}{ending}").unlink(missing_ok=True)


def set_aside(path: Path, kept: Path) -> None:
    """Takes a damaged file out of the way, so that a new one can be made in its place."""
    real = Path(os.path.realpath(path))
    gate = WriteLock(Path(f"{real}.gate"), BUSY_MS / 1000)
    with contextlib.closing(gate), gate.held():
        keep_beside(real, kept)
        drop_log(real)
        real.unlink()
