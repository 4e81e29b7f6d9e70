"""The schema on PostgreSQL: takes the numbered steps under a lock, and keeps the ledger's positions growing.

Besides the shared text, a step may have statements for PostgreSQL alone. The version is kept in the `meta` table.
"""

from __future__ import annotations

from handrail.kernel.errors import StoreTooNew, StoreUnusable
from handrail.store import statements as sql
from handrail.store.marks import MOVED_KEY, is_moved, moved
from handrail.store.migrations import LATEST, STEPS, for_postgres, statements
from handrail.store.postgres_session import PostgresSession
from handrail.store.postgres_writes import PLACE_BITS, SCHEMA_KEY

NEEDS_KEY = "needs"
UPGRADE_LOCK = 0x68616E647261696C

_OWN_WORDS: dict[int, str] = {
    # Heads and rows are updated in place all day: free space on the page keeps that cheap, and so does having no index
    # on what every renewal changes.
    1: """
    ALTER TABLE stream SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
    ALTER TABLE task SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
    ALTER TABLE lease SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
    ALTER TABLE agent SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01)
    """,
    10: "DROP INDEX lease_presence",
}
SCHEMA_NOTED = f"SELECT value FROM meta WHERE key = '{SCHEMA_KEY}'"  # noqa: S608 - our own names
NOW_MS = "floor(extract(epoch FROM now()) * 1000)::bigint"
"""When the transaction began, by the server's clock: before it read anything."""
VIEW_NOTED = f"SELECT ({SCHEMA_NOTED}), {NOW_MS}"
_MOVED_TO = f"SELECT value FROM meta WHERE key = '{MOVED_KEY}'"  # noqa: S608 - our own names
_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
_META = "SELECT key, value FROM meta WHERE key IN (%s, %s, %s)"
_SPENT = f"""
SELECT greatest(coalesce((SELECT max(position) FROM event), 0), %s)
  >= position + (pg_snapshot_xmax(pg_current_snapshot())::text::bigint << {PLACE_BITS}) FROM counter WHERE one = 1
"""  # noqa: S608 - our own names
_GO_ON = f"""
UPDATE counter SET position = greatest((SELECT coalesce(max(position), 0) FROM event), %s)
  - (pg_current_xact_id()::text::bigint << {PLACE_BITS}) WHERE one = 1
"""  # noqa: S608 - our own names


def make_current(session: PostgresSession, location: str, version: str) -> None:
    """Creates or upgrades the tables if needed. A current schema is not written to."""
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
            session.do(_GO_ON, (0,))
        session.do("COMMIT")
    except BaseException:
        if not session.is_lost:
            session.do("ROLLBACK")
        raise


def schema_of(session: PostgresSession, location: str, version: str) -> int:
    """The schema found; 0 for none. Refuses one that is newer than ours, has moved, or belongs to something else."""
    found, meta = read_schema(session, location)
    if is_moved(found):
        raise moved(location, meta.get(MOVED_KEY))
    if found > LATEST:
        needed = meta.get(NEEDS_KEY, "a newer one")
        raise StoreTooNew(
            f"{location} has schema {found}, this Handrail ({version}) knows {LATEST}",
            hint=f"use Handrail {needed} or newer",
            needs=needed,
        )
    return found


def check_here(session: PostgresSession, location: str, noted: str | None) -> None:
    """Raises StoreUnusable if the schema number says that the store has moved."""
    if noted is not None and noted.isdecimal() and is_moved(int(noted)):
        where = session.row(_MOVED_TO)
        raise moved(location, None if where is None else where[0])


def read_schema(session: PostgresSession, location: str) -> tuple[int, dict[str, str]]:
    """The schema number found, whatever it is, and the values kept beside it."""
    tables = {name for (name,) in session.rows(_TABLES)}
    if not tables:
        return 0, {}
    meta = dict(session.rows(_META, (SCHEMA_KEY, NEEDS_KEY, MOVED_KEY))) if "meta" in tables else {}
    if not meta.get(SCHEMA_KEY, "").isdecimal():
        raise StoreUnusable(
            f"{location} holds tables of something else, in schema {session.schema}",
            hint="use a database of its own, or a schema: …?options=-csearch_path%3DNAME",
        )
    return int(meta[SCHEMA_KEY]), meta


def keep_growing(session: PostgresSession) -> None:
    """Raises future positions above the existing ones. Needed only after a dump was restored into another server: its
    events come from a server whose transaction numbers were higher."""
    if session.row(_SPENT, (0,)) == (True,):
        session.do("BEGIN")
        session.do("LOCK TABLE stream IN EXCLUSIVE MODE")
        go_on(session)
        session.do("COMMIT")


def go_on(session: PostgresSession, reached: int = 0) -> None:
    """Raises them if needed, also above what another store had reached. The caller keeps writers out."""
    if session.row(_SPENT, (reached,)) == (True,):
        session.do(_GO_ON, (reached,))
