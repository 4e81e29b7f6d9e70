"""Maintaining the tables in PostgreSQL: whether they are sound, what takes how much space, and returning free space."""

from __future__ import annotations

import psycopg
from psycopg import errors

from handrail.store import statements as sql
from handrail.store.copying import COPIED
from handrail.store.postgres_schema import NOW_MS
from handrail.store.postgres_session import Session
from handrail.store.reading import Size, Vacuumed, grouped

_BAD_INDEXES = (
    "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class c ON c.oid = indrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace AND NOT indisvalid"
)
_BAD_PAGES = "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()"
_BYTES = (
    "SELECT relname::text, pg_total_relation_size(oid) FROM pg_class "
    "WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
)
_DEAD = "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables WHERE schemaname = current_schema()"
_EARLIER = f"SELECT least(%s::bigint, {NOW_MS})"
"""A machine whose clock is ahead forgets no key before its time."""
_ALL_KEYS = f"WITH gone AS ({sql.SWEEP_ALL_KEYS.replace('?', '%s')} RETURNING 1) SELECT count(*) FROM gone"  # noqa: S608 - our own names


def damage(session: Session) -> list[str]:
    """Indexes the server knows to be unusable, pages it found damaged, tables that cannot be read to the end."""
    problems = [f"index {name} is not valid" for (name,) in session.rows(_BAD_INDEXES)]
    damaged = session.row(_BAD_PAGES)
    if damaged is not None and damaged[0]:
        problems.append(f"the server has found {damaged[0]} damaged pages")
    for table in COPIED:
        try:
            session.row(f"SELECT count(*), sum(length(t::text)) FROM {table.name} t")  # noqa: S608 - our own names
        except (psycopg.InternalError, psycopg.DataError, errors.DataCorrupted) as error:
            problems.append(f"{table.name} cannot be read: {error}")
    return problems


def sizes(session: Session) -> list[Size]:
    """What takes how much space. About free space, the server only knows the number of dead rows."""
    counts = {
        table.name: int((session.row(f"SELECT count(*) FROM {table.name}") or (0,))[0])  # noqa: S608 - our own names
        for table in COPIED
    }
    dead = session.row(_DEAD)
    room = {name: int(size) for name, size in session.rows(_BYTES)}
    return [*grouped(counts, room, sum(room.values())), Size("given up", int(dead[0]) if dead else 0, None)]


def vacuum(session: Session, now_ms: int, *, full: bool) -> Vacuumed:
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


def _bytes(session: Session) -> int:
    return sum(int(size) for _, size in session.rows(_BYTES))
