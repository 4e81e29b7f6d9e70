"""A write set as one PostgreSQL statement: heads checked, key kept, events and rows written, all of it or none.

One statement is one round trip and one transaction. Its text depends only on the shape of what is written, so the
server plans it once. The heads come first, in the order of their names: every other row a unit writes belongs to one of
those streams, so the writer that holds the heads meets nobody else, and one that lost finds out before it has done any
work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from handrail.store.migrations import LATEST
from handrail.store.statements import change
from handrail.store.tables import BY_NAME
from handrail.store.writes import RowWrite, WriteSet

SCHEMA_KEY = "schema"
"""The key in `meta` that holds the schema's version."""
PLACE_BITS = 16
"""Leaves room between two transactions' positions for the events of one."""
MOST_EVENTS = (1 << PLACE_BITS) - 1
FEW = 8
"""Up to this many of a kind are written out; more are sent as arrays, which keeps the number of shapes small."""

HERE = f"(SELECT position + (pg_current_xact_id()::text::bigint << {PLACE_BITS}) FROM counter WHERE one = 1)"  # noqa: S608 - our own names
"""The position that this transaction's events come after."""

_HEAD = (("name", "text"), ("head", "bigint"), ("hash", "text"))
_EVENT = (
    ("stream", "text"),
    ("seq", "bigint"),
    ("kind", "text"),
    ("actor", "text"),
    ("channel", "text"),
    ("at_ms", "bigint"),
    ("body", "bytea"),
    ("hash", "text"),
)
_Columns = tuple[tuple[str, str], ...]
_Kind = tuple[str, tuple[str, ...] | None]
"""A table, and the columns changed in an existing row; None for whole rows."""


_SERVER_KINDS = {"text": "text", "json": "text", "int": "bigint", "flag": "bigint"}


class Shape(NamedTuple):
    """How many of what: all that a statement's text depends on. -1 means many."""

    moved: int
    made: int
    events: int
    rows: tuple[tuple[_Kind, int], ...]
    keyed: bool


def statement(writes: WriteSet, *, with_rows: bool = True) -> tuple[str, list[Any]]:
    """The statement and its parameters. It returns the position that the events come after, and NULL. If a stream has
    moved on, the key is taken or the schema is no longer ours, nothing is written; then it returns NULL and the schema
    that is there."""
    moved = [stream for stream in writes.streams if stream.expected.seq]
    made = [stream for stream in writes.streams if not stream.expected.seq]
    events = [event for stream in writes.streams for event in stream.events]
    rows = _by_kind(writes.rows) if with_rows else {}
    shape = Shape(
        _size(moved),
        _size(made),
        _size(events),
        tuple((kind, _size(found)) for kind, found in rows.items()),
        writes.key is not None,
    )
    parameters: list[Any] = []
    if _is_single(shape):
        for stream in moved:
            parameters += (*stream.head, stream.stream, *stream.expected)
        for stream in made:
            parameters += (stream.stream, *stream.head)
    else:
        parameters += _parameters(shape.moved, [(stream.stream, *stream.expected) for stream in moved])
        parameters += [len(moved)] if moved else []
        if (key := writes.key) is not None:
            parameters += (*key[:5], key.now_ms, key.now_ms, key.scope, key.key)
        parameters += _parameters(shape.moved, [(stream.stream, *stream.head) for stream in moved])
        parameters += _parameters(shape.made, [(stream.stream, *stream.head) for stream in made])
    parameters += _parameters(shape.events, [(place, *event) for place, event in enumerate(events, start=1)])
    for (_, size), found in zip(shape.rows, rows.values(), strict=True):
        parameters += _parameters(size, found)
    return _text(shape), parameters


def _size(found: Sequence[Any]) -> int:
    return len(found) if len(found) <= FEW else -1


def _by_kind(rows: Iterable[RowWrite]) -> dict[_Kind, list[tuple[Any, ...]]]:
    found: dict[_Kind, list[tuple[Any, ...]]] = {}
    for row in rows:
        assert row.values is not None, "removals go one by one, in their order"
        if row.changed is None:
            found.setdefault((row.table, None), []).append(row.values)
        elif row.changed:
            _, chosen = change(row.table, row.changed)
            found.setdefault((row.table, row.changed), []).append(chosen(row.values))
    return found


def _parameters(size: int, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The parameters of a source: row by row, or column by column if they are sent as arrays."""
    if size >= 0:
        return [value for row in rows for value in row]
    return [list(column) for column in zip(*rows, strict=True)]


def _is_single(shape: Shape) -> bool:
    """One stream and no key: its head is checked and moved in one go."""
    return (shape.moved, shape.made) in ((1, 0), (0, 1)) and not shape.keyed


@lru_cache(maxsize=512)
def _text(shape: Shape) -> str:
    known = f"known AS (SELECT 1 FROM meta WHERE key = '{SCHEMA_KEY}' AND value = '{LATEST}')"  # noqa: S608 - our own names
    parts = [known, *(_single_head(shape) if _is_single(shape) else _heads(shape))]
    answer = "SELECT 0 AS base FROM go"
    if shape.events:
        answer = "SELECT base FROM spot"
        parts.append(f"spot AS (SELECT {HERE} AS base FROM go)")  # noqa: S608 - our own names
        columns = ", ".join(name for name, _ in _EVENT)
        values = ", ".join(f"v.{name}" for name, _ in _EVENT)
        source = _source(shape.events, (("place", "bigint"), *_EVENT))
        chosen = f"SELECT spot.base + v.place, {values} FROM spot, {source}"  # noqa: S608 - our own names
        parts.append(f"told AS (INSERT INTO event (position, {columns}) {chosen})")
    parts += [f"put_{number} AS ({_put_text(kind, size)})" for number, (kind, size) in enumerate(shape.rows)]
    schema = f"CASE WHEN base IS NULL THEN (SELECT value FROM meta WHERE key = '{SCHEMA_KEY}') END"  # noqa: S608 - our own names
    return f"WITH {', '.join(parts)} SELECT base, {schema} FROM (SELECT ({answer}) AS base) AS done"  # noqa: S608 - our own names


def _single_head(shape: Shape) -> list[str]:
    if shape.made:
        insert = "INSERT INTO stream (name, head, hash) SELECT %s::text, %s::bigint, %s::text FROM known"
        return [f"go AS ({insert} ON CONFLICT DO NOTHING RETURNING 1)"]
    update = "UPDATE stream SET head = %s, hash = %s FROM known WHERE name = %s AND head = %s AND hash = %s"
    return [f"go AS ({update} RETURNING 1)"]


def _heads(shape: Shape) -> list[str]:
    """Locks the expected heads, keeps the key, moves the heads: each only if the step before succeeded. A new stream
    that somebody else created first is a unique violation, which rolls everything back."""
    parts, before = [], " FROM known"
    if shape.moved:
        same = "s.name = v.name AND s.head = v.head AND s.hash = v.hash"
        source = _source(shape.moved, _HEAD)
        parts += [
            f"held AS (SELECT s.name FROM stream s JOIN {source} ON {same} ORDER BY s.name FOR NO KEY UPDATE OF s)",  # noqa: S608 - our own names
            "seen AS (SELECT 1 FROM held, known HAVING count(*) = %s)",
        ]
        before = " FROM seen"
    if shape.keyed:
        parts.append(
            "kept AS (INSERT INTO idempotency AS i (scope, key, request_hash, response, expires_ms) "
            f"SELECT %s::text, %s::text, %s::text, %s::bytea, %s::bigint{before} ON CONFLICT (scope, key) "
            "DO UPDATE SET request_hash = excluded.request_hash, response = excluded.response, "
            "expires_ms = excluded.expires_ms WHERE i.expires_ms <= %s RETURNING 1)"
        )
        parts.append(
            # Not the row that was just kept: one statement cannot change a row twice.
            "swept AS (DELETE FROM idempotency WHERE (scope, key) IN (SELECT scope, key FROM idempotency "
            "WHERE expires_ms <= %s AND (scope, key) <> (%s::text, %s::text) "
            "ORDER BY expires_ms LIMIT 4 FOR UPDATE SKIP LOCKED))"
        )
        before = " FROM kept"
    parts.append(f"go AS (SELECT 1{before})")
    if shape.moved:
        change = f"UPDATE stream s SET head = v.head, hash = v.hash FROM go, {_source(shape.moved, _HEAD)}"  # noqa: S608 - our own names
        parts.append(f"moved AS ({change} WHERE s.name = v.name)")
    if shape.made:
        source = _source(shape.made, _HEAD)
        parts.append(
            f"made AS (INSERT INTO stream (name, head, hash) SELECT v.name, v.head, v.hash FROM go, {source})"  # noqa: S608 - our own names
        )
    return parts


def _put_text(kind: _Kind, size: int) -> str:
    table, changed = BY_NAME[kind[0]], kind[1]
    kinds = dict(zip(table.columns, (_SERVER_KINDS[kind] for kind in table.kinds), strict=True))
    if changed is None:
        names = ", ".join(table.columns)
        values = ", ".join(f"v.{column}" for column in table.columns)
        updates = ", ".join(f"{column} = excluded.{column}" for column in table.columns if column != "id")
        return (
            f"INSERT INTO {table.name} ({names}) SELECT {values} FROM go, {_source(size, tuple(kinds.items()))} "  # noqa: S608 - our own names
            f"ON CONFLICT (id) DO UPDATE SET {updates}"
        )
    if size == 1:
        updates = ", ".join(f"{column} = %s" for column in changed)
        return f"UPDATE {table.name} SET {updates} FROM go WHERE id = %s"  # noqa: S608 - our own names
    updates = ", ".join(f"{column} = v.{column}" for column in changed)
    source = _source(size, tuple((column, kinds[column]) for column in (*changed, "id")))
    return f"UPDATE {table.name} r SET {updates} FROM go, {source} WHERE r.id = v.id"  # noqa: S608 - our own names


def _source(size: int, columns: _Columns) -> str:
    """Rows to select from, named v."""
    names = ", ".join(name for name, _ in columns)
    if size < 0:
        arrays = ", ".join(f"%s::{kind}[]" for _, kind in columns)
        return f"unnest({arrays}) AS v({names})"
    row = ", ".join(f"%s::{kind}" for _, kind in columns)
    return f"(VALUES {', '.join([f'({row})'] * size)}) AS v({names})"
