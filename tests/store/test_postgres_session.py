"""How statements travel over one connection to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from handrail.store import postgres_session as module
from handrail.store.postgres import PostgresEngine
from handrail.store.postgres_session import PostgresSession
from tests.store.ground import Ground

PREPARED = "SELECT count(*) FROM pg_prepared_statements"
KEEP = "INSERT INTO meta (key, value) VALUES (%s, %s)"
KEPT = "SELECT value FROM meta WHERE key = %s"


@pytest.fixture
def session(postgres: Ground) -> Iterator[PostgresSession]:
    engine = postgres.engine
    assert isinstance(engine, PostgresEngine)
    with engine._connections.taken() as taken:
        yield taken


def test_values_come_back_as_they_went(session: PostgresSession) -> None:
    given = (2**62, -1, "ü\n'\\", b"\x00\xff", None, ["a", None, 'b,"'], [1, None])
    text = "SELECT %s::bigint, %s::bigint, %s::text, %s::bytea, %s::text, %s::text[], %s::bigint[]"
    assert session.rows(text, given) == [given]


def test_a_text_is_prepared_once_whatever_its_values(session: PostgresSession) -> None:
    session.row(PREPARED)
    before = session.row(PREPARED)
    assert before is not None
    for given in ("a", None, "b"):
        session.rows("SELECT %s::text", (given,))
    assert session.row(PREPARED) == (before[0] + 1,)


def test_only_so_many_statements_stay_prepared(session: PostgresSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PREPARED", 5)
    for number in range(20):
        assert session.row(f"SELECT {number} + %s::bigint", (1,)) == (number + 1,)
        found = session.row(PREPARED)
        assert found is not None
        assert found[0] <= 7


def test_what_travels_together_is_answered_one_by_one(session: PostgresSession) -> None:
    steps = (("BEGIN", ()), (KEEP, ("a", "1")), (KEPT, ("a",)), (KEPT, ("b",)), ("ROLLBACK", ()))
    assert session.together(*steps) == [[], [], [("1",)], [], []]
    assert session.is_idle
    assert session.rows(KEPT, ("a",)) == []


def test_the_first_that_fails_of_what_travels_together_is_the_last_that_is_done(session: PostgresSession) -> None:
    for _ in range(2):  # its statements new, and then known
        with pytest.raises(errors.DivisionByZero):
            session.together((KEEP, ("a", "1")), ("SELECT 1 / %s::bigint", (0,)), (KEEP, ("b", "1")))
        assert session.is_idle
        assert session.rows(KEPT, ("a",)) == session.rows(KEPT, ("b",)) == []


def test_a_statement_the_server_does_not_understand_is_forgotten(session: PostgresSession) -> None:
    for _ in range(2):
        with pytest.raises(errors.UndefinedTable):
            session.rows("SELECT 1 FROM nowhere WHERE id = %s", ("a",))
    assert session.rows(KEPT, ("a",)) == []


def test_a_value_that_cannot_travel_is_refused_before_anything_is_sent(session: PostgresSession) -> None:
    with pytest.raises(psycopg.DataError):
        session.together(("BEGIN", ()), (KEEP, ("a", "nul \0")))
    assert session.is_idle
    assert session.rows(KEPT, ("a",)) == []


def test_an_end_that_nobody_waits_for_is_an_end(session: PostgresSession) -> None:
    session.together(("BEGIN", ()), (KEEP, ("a", "1")))
    session.leave("ROLLBACK")
    assert session.is_idle
    assert session.rows(KEPT, ("a",)) == []


def test_an_end_that_was_refused_is_found_out_by_what_comes_next(session: PostgresSession) -> None:
    session.leave("no such command")
    with pytest.raises(errors.SyntaxError):
        session.rows(KEPT, ("a",))
    assert session.rows(KEPT, ("a",)) == []


def test_much_is_sent_while_much_is_heard(session: PostgresSession) -> None:
    """More than the sockets hold, both ways at once: whoever only sent would wait for a server that waits for it."""
    large = "x" * 3_000_000
    answers = session.together(*[("SELECT %s::text", (large,))] * 4)
    assert answers == [[(large,)]] * 4
