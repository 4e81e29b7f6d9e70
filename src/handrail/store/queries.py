"""Queries as SQL, one text per shape. What can be asked is defined in `kernel/query.py`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from handrail.kernel.query import Query, where
from handrail.store.tables import BY_NAME

__all__ = ["Query", "check_column", "count_by_sql", "count_sql", "select_sql", "where"]

_Shape = tuple[tuple[str, int, bool], ...]


def select_sql(table: str, columns: tuple[str, ...], query: Query) -> tuple[str, list[Any]]:
    """The statement and its parameters, with `?` for each. Each row comes with its stream's head."""
    parameters = _parameters(query)
    sql = _select_text(table, columns, _shape(query), query.order)
    if query.limit is not None or query.offset:
        sql += " LIMIT ? OFFSET ?"
        parameters += [query.limit if query.limit is not None else 2**62, query.offset]
    return sql, parameters


def count_sql(table: str, query: Query) -> tuple[str, list[Any]]:
    where_text = _where_text(table, _shape(query))
    return f"SELECT count(*) FROM {table} r{where_text}", _parameters(query)  # noqa: S608 - our own names


def count_by_sql(table: str, query: Query, columns: tuple[str, ...]) -> tuple[str, list[Any]]:
    for column in columns:
        check_column(table, column)
    shown = ", ".join(f"r.{column}" for column in columns)
    where_text = _where_text(table, _shape(query))
    text = f"SELECT {shown}, count(*) FROM {table} r{where_text} GROUP BY {shown}"  # noqa: S608 - our own names
    return text, _parameters(query)


def _shape(query: Query) -> _Shape:
    """For each condition: its column, how many values it takes, and whether NULL matches too."""
    found = []
    for column, value in query.where:
        members = value if isinstance(value, tuple) else (value,)
        something = sum(member is not None for member in members)
        found.append((column, something, something < len(members)))
    return tuple(found)


def _parameters(query: Query) -> list[Any]:
    found: list[Any] = []
    for _, value in query.where:
        members = value if isinstance(value, tuple) else (value,)
        found += [int(member) if isinstance(member, bool) else member for member in members if member is not None]
    return found


@lru_cache(maxsize=512)
def _select_text(table: str, columns: tuple[str, ...], shape: _Shape, order: tuple[str, ...]) -> str:
    shown = ", ".join(f"r.{column}" for column in columns)
    keys = [key for key in order if key.lstrip("-") != "id"] + [next((key for key in order if key == "-id"), "id")]
    ordered = ", ".join(_order_text(table, key) for key in keys)
    return (
        f"SELECT {shown}, coalesce(s.head, 0), coalesce(s.hash, '') FROM {table} r "  # noqa: S608 - our own names
        f"LEFT JOIN stream s ON s.name = r.stream{_where_text(table, shape)} ORDER BY {ordered}"
    )


def _order_text(table: str, key: str) -> str:
    """NULL comes first. Spelled out only for nullable columns, so that an index can still provide the order."""
    column, turned = key.lstrip("-"), key.startswith("-")
    check_column(table, column)
    words = " DESC" if turned else ""
    if column in BY_NAME[table].nullable:
        words += " NULLS LAST" if turned else " NULLS FIRST"
    return f"r.{column}{words}"


def bounded(asked: str) -> tuple[str, str]:
    """A condition's column, and `>` or `<` if it asks for values beyond a bound."""
    column, _, beyond = asked.partition(" ")
    return column, beyond


def check_column(table: str, column: str) -> None:
    """Asserts that a column is not JSON, which is stored as text that no engine looks into."""
    known = BY_NAME[table]
    assert known.kinds[known.columns.index(column)] != "json", f"{table}.{column} is JSON and cannot be asked for"


@lru_cache(maxsize=512)
def _where_text(table: str, shape: _Shape) -> str:
    parts = []
    for asked, count, nothing in shape:
        column, beyond = bounded(asked)
        check_column(table, column)
        if beyond:
            parts.append(f"r.{column} {beyond} ?")
            continue
        fits = f"r.{column} = ?" if count == 1 else f"r.{column} IN ({', '.join('?' * count)})"
        if nothing:
            parts.append(f"(r.{column} IS NULL OR {fits})" if count else f"r.{column} IS NULL")
        else:
            parts.append(fits if count else "1 = 0")
    return f" WHERE {' AND '.join(parts)}" if parts else ""
