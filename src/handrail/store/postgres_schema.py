"""The schema on PostgreSQL: takes the numbered steps under a lock, and keeps the ledger's positions growing.

Besides the shared text, a step may have statements for PostgreSQL alone. The version is kept in the `meta` table.

The shape of a store in PostgreSQL: its tables, columns and indexes exactly as the numbered steps make them, and nothing
else in its schema. A trigger, a rule, a policy or a default of somebody else's would act on the next write; a function
or an operator could be taken for the server's own. What belongs to an extension is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from handrail.kernel.errors import StoreTooNew, StoreUnusable
from handrail.store import statements as sql
from handrail.store.marks import MOVED_KEY, is_moved, moved
from handrail.store.migrations import LATEST, STEPS, for_postgres, statements
from handrail.store.postgres_session import PostgresSession
from handrail.store.postgres_writes import PLACE_BITS, SCHEMA_KEY
from handrail.store.shapes import made_tables

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


_TYPES = {"TEXT": "text", "INTEGER": "bigint", "BLOB": "bytea"}
_NOT_HERE = ("lease_presence",)
"""Indexes that the server does without (`postgres_schema`)."""
_FAMILY = "substr(kind, 1, strpos(kind, '.'))"

_HERE = "current_schema()::regnamespace"
_OURS = f"SELECT oid FROM pg_class WHERE relnamespace = {_HERE} AND relkind = 'r'"  # noqa: S608 - our own names
_FREE = (
    "NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = o.oid AND d.classid = '{}'::regclass AND d.deptype = 'e')"
)
_COLUMNS = f"""
SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull,
  a.attgenerated::text || a.attidentity::text, coalesce(pg_get_expr(e.adbin, e.adrelid), ''),
  coalesce((SELECT collname::text FROM pg_collation WHERE oid = a.attcollation), '')
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  LEFT JOIN pg_attrdef e ON e.adrelid = c.oid AND e.adnum = a.attnum
WHERE c.oid IN ({_OURS}) AND a.attnum > 0 AND NOT a.attisdropped
"""  # noqa: S608 - our own names
_INDEXES = f"""
SELECT c.relname::text, n.relname::text, i.indisunique, i.indisprimary,
  coalesce(pg_get_expr(i.indpred, i.indrelid), ''),
  array(SELECT pg_get_indexdef(i.indexrelid, k, true) || CASE WHEN i.indoption[k - 1] & 1 = 1 THEN ' DESC' ELSE '' END
    FROM generate_series(1, i.indnkeyatts) k)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class n ON n.oid = i.indexrelid
WHERE c.oid IN ({_OURS})
"""  # noqa: S608 - our own names
_OTHERS = f"""
SELECT CASE o.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table'
  WHEN 'p' THEN 'partitioned table' WHEN 'S' THEN 'sequence' ELSE 'type' END || ' ' || o.relname
  FROM pg_class o WHERE o.relnamespace = {_HERE} AND o.relkind IN ('v', 'm', 'f', 'p', 'S', 'c')
  AND {_FREE.format("pg_class")}
UNION ALL SELECT 'function ' || o.proname FROM pg_proc o WHERE o.pronamespace = {_HERE} AND {_FREE.format("pg_proc")}
UNION ALL SELECT 'operator ' || o.oprname FROM pg_operator o WHERE o.oprnamespace = {_HERE}
  AND {_FREE.format("pg_operator")}
UNION ALL SELECT 'type ' || o.typname FROM pg_type o WHERE o.typnamespace = {_HERE} AND o.typtype IN ('d', 'e', 'r')
  AND {_FREE.format("pg_type")}
UNION ALL SELECT 'trigger ' || tgname || ' on ' || tgrelid::regclass FROM pg_trigger
  WHERE NOT tgisinternal AND tgrelid IN ({_OURS})
UNION ALL SELECT 'rule ' || rulename || ' on ' || ev_class::regclass FROM pg_rewrite WHERE ev_class IN ({_OURS})
UNION ALL SELECT 'policy ' || polname || ' on ' || polrelid::regclass FROM pg_policy WHERE polrelid IN ({_OURS})
UNION ALL SELECT 'row security on ' || relname FROM pg_class WHERE relrowsecurity AND oid IN ({_OURS})
UNION ALL SELECT 'inheritance of ' || inhrelid::regclass || ' from ' || inhparent::regclass FROM pg_inherits
  WHERE inhrelid IN ({_OURS}) OR inhparent IN ({_OURS})
UNION ALL SELECT 'constraint ' || conname || ' on ' || conrelid::regclass FROM pg_constraint
  WHERE (conrelid IN ({_OURS}) OR confrelid IN ({_OURS})) AND contype NOT IN ('p', 'u', 'n')
  AND NOT (contype = 'c' AND pg_get_constraintdef(oid) = 'CHECK ((one = 1))' AND conrelid = to_regclass('counter'))
"""  # noqa: S608 - our own names


class Index(NamedTuple):
    """What an index is over. An index without a name belongs to a key of its table."""

    table: str
    name: str
    is_unique: bool
    columns: tuple[str, ...]
    condition: str


class Column(NamedTuple):
    """What a column takes."""

    table: str
    name: str
    type: str
    is_needed: bool
    extra: str
    default: str
    collation: str


def strangers(session: PostgresSession) -> list[str]:
    """What is in the schema and not in a store, what is missing, and what is not as Handrail makes it."""
    columns, indexes = _expected()
    found = {_as_column(row) for row in session.rows(_COLUMNS)}
    here = {_as_index(row) for row in session.rows(_INDEXES)}
    odd = [f"{what} is not part of a store" for (what,) in sorted(session.rows(_OTHERS))]
    tables = {column.table for column in columns}
    odd += [f"table {name} is not part of a store" for name in sorted({one.table for one in found} - tables)]
    odd += [f"table {name} is missing" for name in sorted(tables - {one.table for one in found})]
    odd += _unlike("column", found, columns, tables)
    odd += _unlike("index", here, indexes, tables)
    return odd


def _unlike(what: str, found: set[Any], made: set[Any], tables: set[str]) -> Iterator[str]:
    """Columns or indexes that differ, each named once."""
    said = {}
    for one in sorted(found - made):
        if one.table in tables:
            said[_named(one)] = "is not as Handrail makes it"
    for one in sorted(made - found):
        said.setdefault(_named(one), "is missing")
    return (f"{what} {name} {how}" for name, how in said.items())


def _named(one: Index | Column) -> str:
    name = one.name or f"({', '.join(one.columns)})" if isinstance(one, Index) else one.name
    return f"{name} of {one.table}"


def _as_column(row: tuple[Any, ...]) -> Column:
    table, name, kind, needed, extra, default, collation = row
    return Column(table, name, kind, needed, extra, _plain(default), collation)


def _as_index(row: tuple[Any, ...]) -> Index:
    table, name, unique, primary, condition, columns = row
    is_key = primary or name.endswith("_key")
    return Index(table, "" if is_key else name, unique, tuple(map(_plain, columns)), condition.strip("()"))


def _plain(text: str) -> str:
    """An expression without the casts and the quotes that the server writes into it."""
    return re.sub(r"'(-?\d+)'$", r"\1", re.sub(r'::(text|bigint)|"', "", text))


@lru_cache(maxsize=1)
def _expected() -> tuple[set[Column], set[Index]]:
    columns, indexes = set(), set()
    for table in made_tables():
        for name, kind, needed, default in table.columns:
            collation = "C" if kind == "TEXT" else ""
            columns.add(Column(table.name, name, _TYPES[kind], needed, "", default or "", collation))
        for name, unique, over, condition in table.indexes:
            if name not in _NOT_HERE:
                shown = tuple(column or _FAMILY for column in over)
                indexes.add(Index(table.name, name, unique, shown, condition))
    return columns, indexes
