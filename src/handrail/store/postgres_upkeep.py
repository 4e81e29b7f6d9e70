"""Maintaining the tables in PostgreSQL: whether they are sound, what takes how much space, and returning free space."""

from __future__ import annotations

import psycopg
from psycopg import errors

from handrail.store import statements as sql
from handrail.store.migrations import STEPS
from handrail.store.ports import Size, Vacuumed, grouped
from handrail.store.postgres_schema import NOW_MS, strangers
from handrail.store.postgres_session import PostgresSession
from handrail.store.postgres_writes import PLACE_BITS
from handrail.store.problems import FILE, LEDGER, ROWS, SCHEMA, Problem
from handrail.store.store_copy import COPIED

_BAD_INDEXES = (
    "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class c ON c.oid = indrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace AND NOT indisvalid"
)
_BAD_PAGES = "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()"
_NEEDS = "SELECT value FROM meta WHERE key = 'needs'"
_TOUCHED = f"""
WITH placed AS MATERIALIZED (
  SELECT e.position, e.xmin AS wrote, age(e.xmin) AS age,
    ((e.position - c.position) >> {PLACE_BITS}) & 4294967295 = e.xmin::text::bigint AS own
  FROM event e, counter c WHERE c.one = 1
), begun AS (SELECT min(position) AS first, max(age) AS age FROM placed WHERE own)
SELECT min(p.position) FROM placed p, begun
WHERE NOT p.own AND (p.position > begun.first OR (p.age < begun.age AND begun.age < 1000000000))
"""  # noqa: S608 - our own names
"""The first event that its row's transaction does not account for. An event's position is made of the number of the
transaction that wrote it (`postgres_positions`), and the server keeps that number beside the row: one that was written
again has another. Events that came with a copy or a dump have other numbers too, but all of them stand before the first
event that was written here, and were there before it."""
_BYTES = (
    "SELECT relname::text, pg_total_relation_size(oid) FROM pg_class "
    "WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
)
_DEAD = "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables WHERE schemaname = current_schema()"
_EARLIER = f"SELECT least(%s::bigint, {NOW_MS})"
"""A machine whose clock is ahead forgets no key before its time."""
_ALL_KEYS = f"WITH gone AS ({sql.SWEEP_ALL_KEYS.replace('?', '%s')} RETURNING 1) SELECT count(*) FROM gone"  # noqa: S608 - our own names


def damage(session: PostgresSession) -> list[str]:
    """What is not part of a store, indexes the server knows to be unusable, pages it found damaged, tables that cannot
    be read to the end, events that were touched after they were written."""
    problems: list[str] = [Problem(SCHEMA, odd) for odd in strangers(session)]
    problems += [Problem(ROWS, f"index {name} is not valid") for (name,) in session.rows(_BAD_INDEXES)]
    damaged = session.row(_BAD_PAGES)
    if damaged is not None and damaged[0]:
        problems.append(Problem(FILE, f"the server has found {damaged[0]} damaged pages"))
    problems += _counting(session)
    for table in COPIED:
        try:
            session.row(f"SELECT count(*), sum(length(t::text)) FROM {table.name} t")  # noqa: S608 - our own names
        except (psycopg.InternalError, psycopg.DataError, errors.DataCorrupted) as error:
            problems.append(Problem(FILE, f"{table.name} cannot be read: {error}"))
    return problems


def _counting(session: PostgresSession) -> list[str]:
    """Whether every event still stands where its transaction put it, and the version noted is the last step's."""
    problems: list[str] = []
    row = session.row(_TOUCHED)
    if row is not None and row[0] is not None:
        problems.append(Problem(LEDGER, f"the event at position {row[0]} was touched after it was written"))
    needs = session.row(_NEEDS)
    if needs is None or needs[0] != STEPS[-1].since:
        said = None if needs is None else needs[0]
        problems.append(Problem(ROWS, f"the store says that it needs Handrail {said!r}, not {STEPS[-1].since}"))
    if session.row("SELECT count(*) FROM counter") != (1,):
        problems.append(Problem(ROWS, "the counter of positions is not one row"))
    return problems


def sizes(session: PostgresSession) -> list[Size]:
    """What takes how much space. About free space, the server only knows the number of dead rows."""
    counts = {
        table.name: int((session.row(f"SELECT count(*) FROM {table.name}") or (0,))[0])  # noqa: S608 - our own names
        for table in COPIED
    }
    dead = session.row(_DEAD)
    room = {name: int(size) for name, size in session.rows(_BYTES)}
    return [*grouped(counts, room, sum(room.values())), Size("given up", int(dead[0]) if dead else 0, None)]


def vacuum(session: PostgresSession, now_ms: int, *, full: bool) -> Vacuumed:
    """Removes expired keys and lets the server reuse free space. `full` rewrites the tables, which returns the space to
    the disk and makes everybody wait."""
    before = _bytes(session)
    by_server = session.row(_EARLIER, (now_ms,))
    assert by_server is not None
    gone = session.row(_ALL_KEYS, by_server)
    words = "FULL, ANALYZE" if full else "ANALYZE"
    session.do("SET statement_timeout = 0")
    try:
        for table in COPIED:
            session.do(f"VACUUM ({words}) {table.name}")
    finally:
        if not session.is_lost:
            session.do("RESET statement_timeout")
    return Vacuumed(before, _bytes(session), int(gone[0]) if gone else 0)


def _bytes(session: PostgresSession) -> int:
    return sum(int(size) for _, size in session.rows(_BYTES))
