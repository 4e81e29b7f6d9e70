"""Queries as SQL, once per shape. What can be asked stands in `kernel/query.py`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from handrail.kernel.query import Query, where

__all__ = ["Query", "count_sql", "select_sql", "where"]


def select_sql(table: str, columns: tuple[str, ...], query: Query) -> tuple[str, list[Any]]:
    """The statement and its parameters, with `?` for each. Rows come with their stream's head."""
    shape = tuple((column, _arity(value)) for column, value in query.where)
    parameters = _parameters(query)
    sql = _select_text(table, columns, shape, query.order)
    if query.limit is not None or query.offset:
        sql += " LIMIT ? OFFSET ?"
        parameters += [query.limit if query.limit is not None else 2**62, query.offset]
    return sql, parameters


def count_sql(table: str, query: Query) -> tuple[str, list[Any]]:
    shape = tuple((column, _arity(value)) for column, value in query.where)
    return f"SELECT count(*) FROM {table} r{_where_text(shape)}", _parameters(query)  # noqa: S608 - our own names


def _arity(value: Any) -> int | None:
    """How many parameters a condition takes; None for `IS NULL`, -1 for plain equality."""
    if value is None:
        return None
    return len(value) if isinstance(value, tuple) else -1


def _parameters(query: Query) -> list[Any]:
    found: list[Any] = []
    for _, value in query.where:
        if isinstance(value, tuple):
            found.extend(value)
        elif value is not None:
            found.append(int(value) if isinstance(value, bool) else value)
    return found


@lru_cache(maxsize=512)
def _select_text(
    table: str, columns: tuple[str, ...], shape: tuple[tuple[str, int | None], ...], order: tuple[str, ...]
) -> str:
    shown = ", ".join(f"r.{column}" for column in columns)
    keys = [key for key in order if key.lstrip("-") != "id"] + [next((key for key in order if key == "-id"), "id")]
    ordered = ", ".join(f"r.{key.lstrip('-')}{' DESC' if key.startswith('-') else ''}" for key in keys)
    return (
        f"SELECT {shown}, s.head, s.hash FROM {table} r JOIN stream s ON s.name = r.stream"  # noqa: S608 - our own names
        f"{_where_text(shape)} ORDER BY {ordered}"
    )


@lru_cache(maxsize=512)
def _where_text(shape: tuple[tuple[str, int | None], ...]) -> str:
    parts = []
    for column, arity in shape:
        if arity is None:
            parts.append(f"r.{column} IS NULL")
        elif arity == -1:
            parts.append(f"r.{column} = ?")
        else:
            parts.append(f"r.{column} IN ({', '.join('?' * arity)})" if arity else "1 = 0")
    return f" WHERE {' AND '.join(parts)}" if parts else ""
