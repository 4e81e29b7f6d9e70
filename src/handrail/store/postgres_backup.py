"""A PostgreSQL store as a file, and back: the file is an ordinary SQLite store, so it can be opened, verified and
restored anywhere. For stores too large for that there is pg_dump."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import apsw

from handrail.kernel.ledger import Event
from handrail.store.postgres_schema import go_on
from handrail.store.postgres_session import Session
from handrail.store.queries import Query
from handrail.store.reading import Reader
from handrail.store.sqlite import SqliteEngine
from handrail.store.tables import TABLES, Table
from handrail.store.writes import (
    NO_HASH,
    Head,
    KeyWrite,
    RowWrite,
    StoredEvent,
    StreamWrite,
    WriteSet,
    encode_body,
)

if TYPE_CHECKING:
    from handrail.store.postgres_reading import PostgresReader

PAGE = 1000
_KEYS = "SELECT scope, key, request_hash, response, expires_ms FROM idempotency"
_EMPTIED = ("event", "stream", "idempotency", *(table.name for table in TABLES))


def write_backup(reader: PostgresReader, target: Path, version: str) -> None:
    """Copies all that one look shows into a new SQLite store."""
    engine = SqliteEngine(target, version=version)
    try:
        heads: dict[str, Head] = {}
        for stream, run in groupby(_ledger(reader), key=lambda event: event.stream):
            events = tuple(_stored(event) for event in run)
            written = StreamWrite(stream, heads.get(stream, Head(0, NO_HASH)), events)
            engine.commit(WriteSet((written,), ()))
            heads[stream] = written.head
        for table in TABLES:
            for page in _pages(reader, table):
                engine.commit(WriteSet((), page))
        for scope, key, request_hash, response, expires_ms in reader.session.rows(_KEYS):
            engine.commit(WriteSet((), (), KeyWrite(scope, key, request_hash, response, expires_ms, now_ms=0)))
    finally:
        engine.close()
        with suppress(FileNotFoundError):
            target.with_name(target.name + ".gate").unlink()


def _ledger(reader: PostgresReader) -> Iterator[Event]:
    after = -1
    while page := reader.everything(after, PAGE):
        yield from page
        after = page[-1].position


def _stored(event: Event) -> StoredEvent:
    envelope = (event.stream, event.seq, event.kind, event.actor, event.channel, event.at_ms)
    return StoredEvent(*envelope, encode_body(event), event.hash)


def _pages(reader: Reader, table: Table) -> Iterator[tuple[RowWrite, ...]]:
    """The rows of a table, page by page."""
    offset = 0
    while found := reader.select(table, Query(limit=PAGE, offset=offset)):
        yield tuple(RowWrite(table.name, record.id, table.row_of(record)) for record, _ in found)
        offset += len(found)


def read_backup(session: Session, source: Path, version: str) -> None:
    """Puts a backup's content in place of what is there, in one transaction. Read from a copy, so that the backup
    itself stays as it is."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / source.name
        shutil.copyfile(source, copy)
        engine = SqliteEngine(copy, version=version)
        try:
            with engine.reading() as reader:
                session.do("BEGIN")
                session.do("LOCK TABLE stream IN EXCLUSIVE MODE")
                for name in _EMPTIED:
                    session.do(f"DELETE FROM {name}")  # noqa: S608 - our own names
                _fill(session, reader)
        finally:
            engine.close()
        with closing(apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)) as kept:
            _copy(session, "idempotency", KeyWrite._fields[:5], [kept.execute(_KEYS)])
        go_on(session)
        session.do("COMMIT")


def _fill(session: Session, reader: Reader) -> None:
    _copy(session, "stream", ("name", "head", "hash"), [((name, *head) for name, head in reader.streams())])
    _copy(session, "event", ("stream", "seq", "position", *StoredEvent._fields[2:]), _event_pages(reader))
    for table in TABLES:
        rows = ((row.values for row in page if row.values is not None) for page in _pages(reader, table))
        _copy(session, table.name, table.columns, rows)


def _event_pages(reader: Reader) -> Iterator[Iterator[tuple[Any, ...]]]:
    after = 0
    while page := reader.feed(after, PAGE):
        yield ((event.stream, event.seq, event.position, *_stored(event)[2:]) for event in page)
        after = page[-1].position


def _copy(session: Session, table: str, columns: tuple[str, ...], pages: Iterable[Iterable[Any]]) -> None:
    with session.connection.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copying:
        for page in pages:
            for row in page:
                copying.write_row(row)
