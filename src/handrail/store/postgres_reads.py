"""Reading from PostgreSQL: one consistent view of the store, and of its feed only what is settled
(`postgres_positions`)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

import psycopg

from handrail.kernel.clock import Moment
from handrail.kernel.ledger import EVERYTHING, Event, Only
from handrail.store import statements as sql
from handrail.store.postgres_connections import refusal_for, translated
from handrail.store.postgres_schema import NOW_MS, VIEW_NOTED, check_here
from handrail.store.postgres_session import HIGHEST, LOWEST, SETTLED, PostgresSession, Step, sure
from handrail.store.queries import DialectWords, FeedStatement, Query, asked, count_by_sql, count_sql, select_sql
from handrail.store.store_copy import TableCopy
from handrail.store.tables import Table
from handrail.store.writes import NEW_STREAM, Conflict, Head, decode_events

_WORDS = DialectWords(
    hole="${}".format,
    aside="coalesce({0}, {0})".format,
    family="substr(kind, 1, strpos(kind, '.'))",
    settled=lambda position: (sure("$3", position),),
    own=1,
    together=True,
)
_POSITION = f"SELECT coalesce(max(position), 0) FROM event WHERE {sure('$1')}"  # noqa: S608 - our own names
BEGIN_LOOK: Step = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
_KINDS = {"text": "text", "int": "int8", "bytes": "bytea"}
_NOW = f"SELECT {NOW_MS}"
_NOTED: Step = (VIEW_NOTED, ())
_ONE_PLAN: Step = ("SET LOCAL plan_cache_mode = force_generic_plan", ())
"""For the feed: replanning a page for every position takes longer than reading it, and a plan guessed from one position
may read a whole stream for that page."""


class ReadView(Protocol):
    """What a reader needs from its engine."""

    @property
    def location(self) -> str: ...

    def another_session(self, lost: PostgresSession) -> PostgresSession: ...

    def settled(self, session: PostgresSession) -> int: ...

    def owes(self, session: PostgresSession) -> bool: ...

    def heard_time(self, server_ms: int, took_s: float) -> None: ...


@lru_cache(maxsize=1024)
def own(text: str) -> str:
    """A shared statement with PostgreSQL's own placeholders."""
    return text.replace("?", "%s")


def stored_rows(session: PostgresSession, table: TableCopy, order: str = "") -> Iterator[Sequence[Any]]:
    """Every row of a table as it is stored, without keeping them all in memory."""
    asked = f"COPY (SELECT {table.listed} FROM {table.name}{order}) TO STDOUT"  # noqa: S608 - our own names
    with session.connection.cursor().copy(asked) as copying:
        copying.set_types([_KINDS[kind] for kind in table.kinds])
        yield from copying.rows()


class PostgresReader:
    """One view: a transaction that reads from one snapshot, begun by the first query."""

    def __init__(self, engine: ReadView, session: PostgresSession) -> None:
        self._engine = engine
        self.session = session
        self._looked = False
        self._bound = LOWEST
        self._began_ms: int | None = None
        self._asked = False
        """Whether this view has already asked how far the feed is settled."""

    @classmethod
    def within(cls, engine: ReadView, session: PostgresSession) -> PostgresReader:
        """A view from inside a running transaction, which includes what that transaction has written."""
        reader = cls(engine, session)
        reader._looked = True
        return reader

    def _rows(self, text: str, parameters: Sequence[Any] = (), *before: Step) -> list[tuple[Any, ...]]:
        """Runs a query. The first one of a view is repeated on a new connection if the old one turns out to be gone."""
        try:
            return self._ask((own(text), parameters), before)
        except psycopg.Error as error:
            if not self.session.is_lost:
                raise refusal_for(error, self._engine.location) from error
            if self._looked or self._bound != LOWEST:  # what is settled there need not be settled on another server
                raise Conflict(f"the connection to {self._engine.location} was lost in the middle of a look") from error
        self.session = self._engine.another_session(self.session)
        with translated(self._engine.location):
            return self._ask((own(text), parameters), before)

    def _ask(self, question: Step, before: Sequence[Step]) -> list[tuple[Any, ...]]:
        if self._looked and not before:
            return self.session.rows(*question)
        begin = () if self._looked else (BEGIN_LOOK, _NOTED)
        asked_s = time.monotonic()
        found = self.session.together(*begin, *before, question)
        self._looked = True
        if begin:
            noted, self._began_ms = found[1][0]
            self._engine.heard_time(self._began_ms, time.monotonic() - asked_s)
            check_here(self.session, self._engine.location, noted)
        return found[-1]

    def moment(self) -> Moment:
        """By the server's clock: many machines share it, and only one of them is right about the time."""
        if self._began_ms is None:
            self._began_ms = int(self._rows(_NOW)[0][0])
        return Moment(self._began_ms, self._began_ms)

    def end(self) -> None:
        if self._looked and not self.session.is_lost:
            with contextlib.suppress(psycopg.Error):  # nothing was written, so nothing is lost
                self.session.leave("COMMIT")

    def get(self, table: Table, key: str) -> tuple[Any, Head] | None:
        rows = self._rows(sql.GET[table.name], (key,))
        return (table.record_of(rows[0]), Head(*rows[0][-2:])) if rows else None

    def select(self, table: Table, query: Query) -> list[tuple[Any, Head]]:
        text, parameters = select_sql(table.name, table.columns, query)
        return [(table.record_of(row), Head(*row[-2:])) for row in self._rows(text, parameters)]

    def count(self, table: Table, query: Query) -> int:
        return int(self._rows(*count_sql(table.name, query))[0][0])

    def count_by(self, table: Table, query: Query, columns: tuple[str, ...]) -> dict[tuple[Any, ...], int]:
        return {tuple(row[:-1]): row[-1] for row in self._rows(*count_by_sql(table.name, query, columns))}

    def head(self, stream: str) -> Head:
        rows = self._rows(sql.HEAD, (stream,))
        return Head(*rows[0]) if rows else NEW_STREAM

    def key_answer(self, scope: str, key: str, now_ms: int) -> tuple[str, bytes] | None:
        rows = self._rows(sql.KEY_ANSWER, (scope, key, now_ms))
        return (rows[0][0], rows[0][1]) if rows else None

    def events(self, stream: str, after: int, limit: int) -> list[Event]:
        return decode_events(self._rows(sql.STREAM_EVENTS, (stream, after, limit)))

    def feed(self, after: int, limit: int, only: Only = EVERYTHING) -> list[Event]:
        question = asked(only, _WORDS)
        if not self._looked and self._engine.owes(self.session):
            self._settle()
        page = self._across(question, after, limit)
        if len(page) < limit and self._knows_more():  # a full page is settled without asking who is writing
            page += self._across(question, page[-1].position if page else after, limit - len(page))
        return page

    def newest(self, limit: int, only: Only = EVERYTHING) -> list[Event]:
        question = asked(only, _WORDS, newest=True)
        if len(only.streams) == 1:  # nothing appears behind its last event, so it waits for no other writer
            return self._across(question, 0, limit, HIGHEST)[::-1]
        self._settle()
        return self._across(question, 0, limit)[::-1]

    def _across(self, question: FeedStatement, after: int, limit: int, bound: int | None = None) -> list[Event]:
        parameters = [after, limit, self._bound if bound is None else bound, *question.rest]
        if question.leads:
            parameters.append(list(question.leads))
        return decode_events(self._rows(question.text, parameters, _ONE_PLAN))

    def position(self) -> int:
        self._settle()
        return int(self._rows(_POSITION, (self._bound,))[0][0])

    def _settle(self) -> None:
        """Finds out how far the feed is settled. If that is the first query of a view, it includes our own commits;
        later in a view it is too late to wait for any."""
        if self._looked:
            self._knows_more()
        else:
            self._bound = self._engine.settled(self.session)

    def _knows_more(self) -> bool:
        """Asks, once per view, how far the feed is settled: true if that is further than the snapshot alone can
        tell."""
        if self._asked:
            return False
        self._asked = True
        settled, known = self._rows(SETTLED)[0]
        self._bound = max(self._bound, self.session.note(settled))
        return bool(self._bound > known)

    def last_by(self, actor: str, limit: int) -> list[Event]:
        return decode_events(self._rows(sql.LAST_BY, (actor, limit)))

    def stored(self, table: TableCopy) -> Iterator[Sequence[Any]]:
        self._rows("SELECT 1")  # begins the view
        with translated(self._engine.location):
            yield from stored_rows(self.session, table, f" ORDER BY {table.ordered}")

    def note(self, key: str) -> str | None:
        rows = self._rows(sql.NOTE, (key,))
        return rows[0][0] if rows else None

    def streams(self) -> Iterator[tuple[str, Head]]:
        for name, head, digest in self._rows(sql.STREAMS):
            yield name, Head(head, digest)
