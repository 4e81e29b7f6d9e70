"""The schema on PostgreSQL: the numbered steps taken under a lock, and the ledger's positions kept growing.

Beside the shared text each step may have words of PostgreSQL's own. The version stands in the `meta` table.
"""

from __future__ import annotations

from handrail.kernel.errors import StoreTooNew, StoreUnusable
from handrail.store import statements as sql
from handrail.store.migrations import LATEST, STEPS, for_postgres, statements
from handrail.store.postgres_session import Session
from handrail.store.postgres_writes import PLACE_BITS, SCHEMA_KEY

NEEDS_KEY = "needs"
UPGRADE_LOCK = 0x68616E647261696C

_OWN_WORDS: dict[int, str] = {
    # Heads and rows are updated in place all day: room on the page keeps that cheap.
    1: """
    ALTER TABLE stream SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
    ALTER TABLE task SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
    ALTER TABLE lease SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
    ALTER TABLE agent SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01)
    """,
}
_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
_META = "SELECT key, value FROM meta WHERE key IN (%s, %s)"
_SPENT = f"""
SELECT coalesce((SELECT max(position) FROM event), 0)
  >= position + (pg_snapshot_xmax(pg_current_snapshot())::text::bigint << {PLACE_BITS}) FROM counter WHERE one = 1
"""  # noqa: S608 - our own names
_GO_ON = f"""
UPDATE counter SET position = (SELECT coalesce(max(position), 0) FROM event)
  - (pg_current_xact_id()::text::bigint << {PLACE_BITS}) WHERE one = 1
"""  # noqa: S608 - our own names


def make_current(session: Session, location: str, version: str) -> None:
    """Creates or upgrades the tables where needed. A current schema is not written to."""
    if schema_of(session, location, version) == LATEST:
        return
    session.do("BEGIN")
    try:
        session.do("SELECT pg_advisory_xact_lock(%s)", (UPGRADE_LOCK,))
        found = schema_of(session, location, version)  # another process may have been first while we waited
        for step in STEPS:
            if step.number > found:
                for text in statements(for_postgres(step.sql)) + statements(_OWN_WORDS.get(step.number, "")):
                    session.do(text)
                session.do(sql.KEEP_META.replace("?", "%s"), (SCHEMA_KEY, str(step.number)))
                session.do(sql.KEEP_META.replace("?", "%s"), (NEEDS_KEY, step.since))
        if found == 0:
            session.do(_GO_ON)
        session.do("COMMIT")
    except BaseException:
        if not session.is_lost:
            session.do("ROLLBACK")
        raise


def schema_of(session: Session, location: str, version: str) -> int:
    """The schema that is there; 0 for none. One that is newer than ours, or of something else, is refused."""
    tables = {name for (name,) in session.rows(_TABLES)}
    if not tables:
        return 0
    meta = dict(session.rows(_META, (SCHEMA_KEY, NEEDS_KEY))) if "meta" in tables else {}
    if not meta.get(SCHEMA_KEY, "").isdecimal():
        raise StoreUnusable(
            f"{location} holds tables of something else, in schema {session.schema}",
            hint="use a database of its own, or a schema: …?options=-csearch_path%3DNAME",
        )
    found = int(meta[SCHEMA_KEY])
    if found > LATEST:
        needed = meta.get(NEEDS_KEY, "a newer one")
        raise StoreTooNew(
            f"{location} has schema {found}, this Handrail ({version}) knows {LATEST}",
            hint=f"use Handrail {needed} or newer",
            needs=needed,
        )
    return found


def keep_growing(session: Session) -> None:
    """Lifts the positions to come above those there are. A dump that was restored into another server has events from
    a server that had counted further; anywhere else there is nothing to do."""
    if session.row(_SPENT) == (True,):
        session.do("BEGIN")
        session.do("LOCK TABLE stream IN EXCLUSIVE MODE")
        go_on(session)
        session.do("COMMIT")


def go_on(session: Session) -> None:
    """Lifts them, where that is needed. The caller keeps writers out."""
    if session.row(_SPENT) == (True,):
        session.do(_GO_ON)
