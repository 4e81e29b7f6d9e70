"""The shape of a store in PostgreSQL: its tables, columns and indexes exactly as the numbered steps make them, and
nothing else in its schema. A trigger, a rule, a policy or a default of somebody else's would act on the next write; a
function or an operator could be taken for the server's own. What belongs to an extension is not looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from handrail.store.postgres_session import PostgresSession
from handrail.store.shapes import made_tables

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
