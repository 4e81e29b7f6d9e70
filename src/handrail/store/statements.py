"""The statements both engines share, in one place, written with `?` for parameters. PostgreSQL's module translates
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from handrail.store.tables import BY_NAME, TABLES, Table

HEAD = "SELECT head, hash FROM stream WHERE name = ?"
NEW_HEAD = "INSERT INTO stream (name, head, hash) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
MOVE_HEAD = "UPDATE stream SET head = ?, hash = ? WHERE name = ? AND head = ? AND hash = ?"
TAKE_POSITIONS = "UPDATE counter SET position = position + ? WHERE one = 1 RETURNING position"
POSITION = "SELECT position FROM counter WHERE one = 1"
INSERT_EVENT = (
    "INSERT INTO event (stream, seq, kind, actor, channel, at_ms, body, hash, position) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
EVENT = "stream, seq, position, kind, actor, channel, at_ms, body, hash"
STREAM_EVENTS = f"SELECT {EVENT} FROM event WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?"  # noqa: S608 - our own names
LAST_BY = f"SELECT {EVENT} FROM event WHERE actor = ? ORDER BY position DESC LIMIT ?"  # noqa: S608 - our own names
ANCHOR = "SELECT value FROM meta WHERE key = 'lease_clock'"
LAST_RENEWED = f"SELECT coalesce(max(renewed_ms), 0) FROM lease WHERE renewed_ms < {2**53}"  # noqa: S608 - a number
RENEW = "UPDATE lease SET expires_ms = max(expires_ms, ?), renewed_ms = ? WHERE holder = ? AND expires_ms > ?"
KEEP_META = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
NOTE = "SELECT value FROM meta WHERE key = ?"
STREAMS = (
    "SELECT name, head, hash FROM stream UNION ALL SELECT DISTINCT e.stream, 0, '' FROM event e "
    "LEFT JOIN stream s ON s.name = e.stream WHERE s.name IS NULL ORDER BY 1"
)
"""Includes streams that have events but no head: somebody removed it."""
KEY_ANSWER = "SELECT request_hash, response FROM idempotency WHERE scope = ? AND key = ? AND expires_ms > ?"
FORGET_KEY = "DELETE FROM idempotency WHERE scope = ? AND key = ? AND expires_ms <= ?"
SWEEP_KEYS = (
    "DELETE FROM idempotency WHERE (scope, key) IN "
    "(SELECT scope, key FROM idempotency WHERE expires_ms <= ? ORDER BY expires_ms LIMIT 4)"
)
"""Each new key removes a few expired ones: more than are added, so that they do not pile up."""
SWEEP_ALL_KEYS = "DELETE FROM idempotency WHERE expires_ms <= ?"
KEEP_KEY = "INSERT INTO idempotency (scope, key, request_hash, response, expires_ms) VALUES (?, ?, ?, ?, ?)"


def put_sql(table: Table) -> str:
    """Inserts a row, or replaces the one with its id."""
    columns = ", ".join(table.columns)
    holes = ", ".join("?" * len(table.columns))
    updates = ", ".join(f"{column} = excluded.{column}" for column in table.columns if column != "id")
    return f"INSERT INTO {table.name} ({columns}) VALUES ({holes}) ON CONFLICT (id) DO UPDATE SET {updates}"  # noqa: S608 - our own names


def get_sql(table: Table) -> str:
    shown = ", ".join(f"r.{column}" for column in table.columns)
    return (
        f"SELECT {shown}, coalesce(s.head, 0), coalesce(s.hash, '') FROM {table.name} r "  # noqa: S608 - our own names
        "LEFT JOIN stream s ON s.name = r.stream WHERE r.id = ?"
    )


PUT: dict[str, str] = {table.name: put_sql(table) for table in TABLES}
GET: dict[str, str] = {table.name: get_sql(table) for table in TABLES}
REMOVE: dict[str, str] = {table.name: f"DELETE FROM {table.name} WHERE id = ?" for table in TABLES}  # noqa: S608 - our own names


@lru_cache(maxsize=512)
def change(table_name: str, changed: tuple[str, ...]) -> tuple[str, Callable[[Sequence[Any]], tuple[Any, ...]]]:
    """The statement that changes some columns of the row with an id, and a function that picks its parameters from a
    whole row. The statement is empty if nothing changes."""
    table = BY_NAME[table_name]
    columns = (*changed, "id")
    updates = ", ".join(f"{column} = ?" for column in changed)
    text = f"UPDATE {table_name} SET {updates} WHERE id = ?" if changed else ""  # noqa: S608 - our own names
    places = [table.columns.index(column) for column in columns]
    return text, itemgetter(*places)
