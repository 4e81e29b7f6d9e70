"""A cell of any table is changed behind Handrail's back, one at a time, in every column: verify finds each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apsw
import psycopg
import pytest

from handrail.store import postgres_upkeep, sqlite_upkeep
from handrail.store.postgres_reads import PostgresReader
from handrail.store.postgres_session import PostgresSession
from handrail.store.problems import LEDGER, Problem, advice
from handrail.store.sqlite_reads import SqliteReader
from handrail.store.store_copy import COPIED, TableCopy
from handrail.store.tables import BY_NAME
from handrail.store.verification import problems_in, row_from
from tests.hostile.bit_flips.full_store import fill
from tests.store.ground import Ground

Ask = Callable[[str, tuple[Any, ...]], list[str]]
"""Changes something in a transaction, verifies what it then sees, and takes the change back."""


class Cell(NamedTuple):
    """A column of a table, and a statement that changes one cell of it."""

    table: str
    column: str
    statement: str
    given: tuple[Any, ...]


PRESENCE = ("lease", "renewed_ms")
"""When an agent was last heard from: whoever changes it says that it was heard from. No event does."""
OTHER: dict[str, Any] = {"text": "other", "int": 77_777, "bytes": b"other"}
ALWAYS = ("event", "stream", "idempotency", "lease")


def cells(table: TableCopy) -> Iterator[Cell]:
    record = BY_NAME.get(table.name)
    documents = {record.columns[place] for place in record.documents} if record else set()
    for column, kind in zip(table.columns, table.kinds, strict=True):
        other = '{"forged":true}' if column in documents else OTHER[kind]
        key = table.columns[0]
        first = f"SELECT min({key}) FROM {table.name}"
        first = "SELECT 'lease_2'" if table.name == "lease" else first
        more = f" AND {table.columns[1]} = (SELECT min({table.columns[1]}) FROM {table.name} i WHERE i.{key} = t.{key})"
        more = more if table.name in ("event", "idempotency") else ""
        change = f"UPDATE {table.name} AS t SET {column} = ? WHERE {key} = ({first}){more}"
        yield Cell(table.name, column, change, (other,))
    if "expires_ms" in table.columns:
        yield Cell(table.name, "expires_ms", f"UPDATE {table.name} SET expires_ms = expires_ms - 1", ())


ALL = [cell for table in COPIED for cell in cells(table)]
EXEMPT = {("lease", "expires_ms", (77_777,)), (*PRESENCE, (77_777,))}
"""Renewals, as far as anybody can tell."""


def asked_of_sqlite(ground: Ground) -> Ask:
    connection = apsw.Connection(ground.address)

    def ask(statement: str, given: tuple[Any, ...]) -> list[str]:
        connection.execute("SAVEPOINT tried")
        try:
            connection.execute(statement, given)
            assert connection.changes() >= 1, statement
            return problems_in(SqliteReader(connection)) + [str(one) for one in sqlite_upkeep._counting(connection)]
        finally:
            connection.execute("ROLLBACK TO tried; RELEASE tried")

    return ask


def asked_of_postgres(ground: Ground) -> Ask:
    engine: Any = ground.engine

    def ask(statement: str, given: tuple[Any, ...]) -> list[str]:
        with engine._connections.taken() as session:
            assert isinstance(session, PostgresSession)
            session.do("BEGIN")
            try:
                session.do(statement.replace("?", "%s"), given)
                return problems_in(PostgresReader.within(engine, session)) + postgres_upkeep._counting(session)
            finally:
                session.do("ROLLBACK")

    return ask


@pytest.fixture
def ask(lasting: Ground) -> Ask:
    fill(lasting.store)
    found = asked_of_sqlite(lasting) if lasting.kind == "sqlite" else asked_of_postgres(lasting)
    assert lasting.store.verify() == []
    return found


def missed(ask: Ask, chosen: list[Cell]) -> list[tuple[str, str]]:
    return [
        (cell.table, cell.column)
        for cell in chosen
        if (cell.table, cell.column, cell.given) not in EXEMPT and not ask(cell.statement, cell.given)
    ]


def test_a_changed_cell_is_found(ask: Ask) -> None:
    rest = [cell for cell in ALL if cell.table not in ALWAYS]
    chosen = [cell for cell in ALL if cell.table in ALWAYS] + random.Random(7).sample(rest, 12)
    assert missed(ask, chosen) == []


@pytest.mark.torture
def test_every_changed_cell_is_found(ask: Ask) -> None:
    assert missed(ask, ALL) == []
    print(f"{len(ALL) - len(EXEMPT)} columns, each changed once")


OTHERS = {
    "the counter": ("UPDATE counter SET position = position + 5", "the counter stands at"),
    "the version it needs": ("UPDATE meta SET value = '9.9' WHERE key = 'needs'", "needs Handrail '9.9'"),
    "a bit of a text": ("UPDATE task SET name = CAST(x'ff' AS TEXT) WHERE id = 'task_1'", "cannot be read back"),
    "a bit of an event's text": ("UPDATE event SET kind = CAST(x'ff' AS TEXT) WHERE seq = 1", "cannot be read back"),
    "an id": ("UPDATE task SET id = CAST(x'ff' AS TEXT) WHERE id = 'task_1'", "which cannot be"),
    "a stream's name": ("UPDATE event SET stream = CAST(x'ff' AS TEXT) WHERE position = 1", "which cannot be"),
    "a number that is the same in JSON": (
        "UPDATE event SET body = CAST(replace(CAST(body AS TEXT), '1e22', '1E22') AS BLOB) WHERE seq = 2",
        "event 2 was changed after it was written",
    ),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_else_can_change_in_a_file_is_found(sqlite: Ground, other: tuple[str, str]) -> None:
    statement, said = other
    fill(sqlite.store)
    if "1e22" in statement:
        with sqlite.engine.reading() as reader:
            stream = next(row[0] for row in reader.stored(COPIED[1]) if row[1] == 2 and b"1e22" in row[7])
        statement += f" AND stream = '{stream.decode()}'"
    found = asked_of_sqlite(sqlite)(statement, ())
    assert any(said in problem for problem in found), found


def test_a_lease_is_believed_where_a_renewal_would_leave_it(ask: Ask) -> None:
    renewed = "UPDATE lease SET renewed_ms = renewed_ms + 5, expires_ms = expires_ms + 5 WHERE id = 'lease_1'"
    assert ask(renewed, ()) == []
    assert ask("UPDATE lease SET expires_ms = 1 WHERE id = 'lease_1'", ())
    assert ask("UPDATE lease SET holder = NULL, expires_ms = expires_ms + 1 WHERE id = 'lease_1'", ())


@pytest.mark.parametrize("lost", ['"expires_ms":', '"auto_create_workspaces":', '"holder":'])
def test_an_event_that_lacks_a_value_is_found_and_stops_nobody(sqlite: Ground, lost: str) -> None:
    fill(sqlite.store)
    other = lost.replace("e", "f", 1)
    body = f"CAST(replace(CAST(body AS TEXT), '{lost}', '{other}') AS BLOB)"
    found = asked_of_sqlite(sqlite)(f"UPDATE event SET body = {body}", ())
    assert any("was changed after it was written" in problem for problem in found)


def test_columns_that_a_later_step_added_are_compared_with_its_default() -> None:
    """Events that are older than a column say nothing of it."""
    table = BY_NAME["gate"]
    document: dict[str, Any] = {column: "x" for column in table.columns if column not in ("kind", "stream")}
    document |= {"workflow_id": "w", "created_at": 1, "answered_at": None, "options": []}
    assert row_from(table, document)[table.columns.index("kind")] == "decision"


def test_an_event_that_is_written_again_on_a_server_is_found_though_it_says_the_same(postgres: Ground) -> None:
    fill(postgres.store)
    ask = asked_of_postgres(postgres)
    assert ask("UPDATE event SET kind = kind WHERE position = (SELECT max(position) FROM event)", ())
    assert ask("UPDATE event SET kind = kind WHERE position = (SELECT min(position) FROM event)", ())
    with psycopg.connect(postgres.address, autocommit=True) as session:
        session.execute("VACUUM (FULL, FREEZE) event")
    assert postgres.store.verify() == []
    postgres.tamper("UPDATE event SET kind = kind WHERE position = (SELECT min(position) FROM event)")
    (told,) = postgres.store.verify()
    assert "was touched after it was written" in told


def test_what_is_lost_and_how_it_comes_back_is_said() -> None:
    event, row = Problem(LEDGER, "x: event 1 is missing"), Problem("rows", "task 1: disagree")
    assert advice([], whole=True) == []
    assert "handrail db restore BACKUP" in advice([row, event], whole=False)[1]
    assert "handrail db rebuild" in advice([row], whole=True)[1]
    assert "nothing" in advice([row], whole=True)[0]
    assert "handrail db verify" in advice([row, "page 3: damaged"], whole=False)[0]
    assert "kept for repeated calls" in advice([Problem("keys", "k")], whole=True)[0]
