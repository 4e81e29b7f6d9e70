"""Reading from SQLite: one consistent view of the store, over a connection that the engine lends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import apsw

from handrail.kernel.clock import Moment
from handrail.kernel.ledger import EVERYTHING, Event, Only
from handrail.store import statements as sql
from handrail.store.lease_clock import LeaseClock, MachineTime
from handrail.store.queries import DialectWords, FeedStatement, Query, asked, count_by_sql, count_sql, select_sql
from handrail.store.sqlite_refusals import translated
from handrail.store.store_copy import TableCopy
from handrail.store.tables import Table
from handrail.store.writes import NEW_STREAM, Head, decode_events

_WORDS = DialectWords(
    hole="?{}".format,
    aside="+{}".format,
    family="substr(kind, 1, instr(kind, '.'))",
    settled=lambda _: (),
    own=0,
    together=False,
)


class SqliteReader:
    """One read transaction."""

    def __init__(
        self, connection: apsw.Connection, clock: LeaseClock | None = None, began: MachineTime | None = None
    ) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._clock = clock or LeaseClock()
        self._began = began or self._clock.read()

    def moment(self) -> Moment:
        kept = self._execute(sql.ANCHOR).get
        return self._clock.moment(self._began, kept, lambda: int(self._execute(sql.LAST_RENEWED).get))

    def get(self, table: Table, key: str) -> tuple[Any, Head] | None:
        row = self._execute(sql.GET[table.name], (key,)).fetchone()
        return None if row is None else (table.record_of(row), Head(row[-2], row[-1]))

    def select(self, table: Table, query: Query) -> list[tuple[Any, Head]]:
        text, parameters = select_sql(table.name, table.columns, query)
        return [(table.record_of(row), Head(row[-2], row[-1])) for row in self._execute(text, parameters)]

    def count(self, table: Table, query: Query) -> int:
        text, parameters = count_sql(table.name, query)
        return int(self._execute(text, parameters).get)

    def count_by(self, table: Table, query: Query, columns: tuple[str, ...]) -> dict[tuple[Any, ...], int]:
        text, parameters = count_by_sql(table.name, query, columns)
        return {row[:-1]: row[-1] for row in self._execute(text, parameters)}

    def head(self, stream: str) -> Head:
        row = self._execute(sql.HEAD, (stream,)).fetchone()
        return NEW_STREAM if row is None else Head(*row)

    def key_answer(self, scope: str, key: str, now_ms: int) -> tuple[str, bytes] | None:
        row = self._execute(sql.KEY_ANSWER, (scope, key, now_ms)).fetchone()
        return None if row is None else (row[0], row[1])

    def events(self, stream: str, after: int, limit: int) -> list[Event]:
        return decode_events(self._execute(sql.STREAM_EVENTS, (stream, after, limit)).fetchall())

    def feed(self, after: int, limit: int, only: Only = EVERYTHING) -> list[Event]:
        return self._merged(asked(only, _WORDS), after, limit)

    def newest(self, limit: int, only: Only = EVERYTHING) -> list[Event]:
        return self._merged(asked(only, _WORDS, newest=True), 0, limit, turned=True)[::-1]

    def _merged(self, question: FeedStatement, after: int, limit: int, *, turned: bool = False) -> list[Event]:
        parameters = (after, limit, *question.rest)
        if len(question.leads) < 2:
            return decode_events(self._execute(question.text, (*parameters, *question.leads)).fetchall())
        found = [self._execute(question.text, (*parameters, lead)) for lead in question.leads]
        try:  # each is read only as far as needed
            return decode_events(islice(merge(*found, key=itemgetter(2), reverse=turned), limit))
        finally:
            for rows in found:
                rows.close()

    def last_by(self, actor: str, limit: int) -> list[Event]:
        return decode_events(self._execute(sql.LAST_BY, (actor, limit)))

    def position(self) -> int:
        return int(self._execute(sql.POSITION).get)

    def stored(self, table: TableCopy) -> Iterator[Sequence[Any]]:
        shown = ", ".join(
            f"CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END"
            if kind == "text"
            else column
            for column, kind in zip(table.columns, table.kinds, strict=True)
        )
        with translated(Path(self._connection.filename)):
            yield from self._execute(f"SELECT {shown} FROM {table.name} ORDER BY {table.ordered}")  # noqa: S608 - our own names

    def note(self, key: str) -> str | None:
        row = self._execute(sql.NOTE, (key,)).fetchone()
        return None if row is None else row[0]

    def streams(self) -> Iterator[tuple[str, Head]]:
        for name, head, digest in self._execute(sql.STREAMS):
            yield name, Head(head, digest)
