"""Queries as SQL, one text per shape. What can be asked is defined in `kernel/records.py`.

Queries of the ledger across streams, as SQL: everything, or some streams, actors and kinds. Texts only.

A filter may match one event in a million, and a watcher asks again after every write. So one part of the filter leads:
each of its streams, actors or families of kinds is read in order through an index of its own, and the results are
merged. The other parts are checked row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from handrail.kernel.ledger import Only
from handrail.kernel.records import LAST, Query, where
from handrail.store.statements import EVENT
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


_HALVING = """(
WITH RECURSIVE halving(low, high) AS (
  SELECT CAST(0 AS BIGINT), (SELECT max(seq) FROM event WHERE stream = {lead})
  UNION ALL
  SELECT CASE WHEN e.position > {after} THEN h.low ELSE e.seq END,
    CASE WHEN e.position > {after} THEN e.seq - 1 ELSE h.high END
  FROM halving h JOIN event e ON e.stream = {lead} AND e.seq = (h.low + h.high + 1) / 2 WHERE h.low < h.high
) SELECT max(low) FROM halving)"""
"""The sequence number of a stream's last event that is not after a position. A stream is in the order of positions and
has no gaps, so bisection finds it in twenty steps among a million events, and needs no index of its own."""


class DialectWords(NamedTuple):
    """Where the engines' SQL differs."""

    hole: Callable[[int], str]
    """A parameter by its number, which may be used more than once."""
    aside: Callable[[str], str]
    """A column, written so that no index is chosen for it."""
    family: str
    """The part of a kind up to its dot, exactly as the index has it."""
    settled: Callable[[str], tuple[str, ...]]
    """For a position, the condition that excludes what is not settled yet, if the engine needs one."""
    own: int
    """How many parameters of the engine's own follow position and limit."""
    together: bool
    """Whether one statement reads and merges all leads; otherwise there is one statement per lead."""


class FeedStatement(NamedTuple):
    """One statement. Its parameters are a position, a limit, the engine's own, `rest`, and the leads."""

    text: str
    rest: tuple[str, ...]
    leads: tuple[str, ...]
    """The streams, actors or families to read one by one. Empty: everything at once."""


class _FeedShape(NamedTuple):
    lead: str
    actors: int
    kinds: int
    newest: bool


@lru_cache(maxsize=256)
def asked(only: Only, words: DialectWords, *, newest: bool = False) -> FeedStatement:
    """The statement for a filter: events after a position in ascending order, or the newest in descending order."""
    kinds = _widest(only.kinds)
    families = tuple(dict.fromkeys(prefix[: prefix.find(".") + 1] for prefix in kinds))
    if only.streams:
        lead, leads, actors = "stream", only.streams, only.actors
    elif only.actors:
        lead, leads, actors = "actor", only.actors, ()
    elif families and "" not in families:
        lead, leads, actors = "family", families, ()
        kinds = () if set(kinds) == set(families) else kinds
    else:
        lead, leads, actors = "", (), ()
    ranges = tuple(end for prefix in kinds for end in _range(prefix))
    shape = _FeedShape(lead, len(actors), len(kinds), newest)
    return FeedStatement(_feed_text(shape, words), (*actors, *ranges), tuple(dict.fromkeys(leads)))


def _widest(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """The prefixes without those that another one covers. Empty if one covers everything."""
    found: list[str] = []
    for prefix in sorted(prefixes):
        if not found or not prefix.startswith(found[-1]):
            found.append(prefix)
    return () if found == [""] else tuple(found)


def _range(prefix: str) -> tuple[str, str]:
    """The first text with this prefix, and the first one after those. Texts are ordered by code point."""
    stem = prefix.rstrip(LAST)
    if not stem:
        return prefix, LAST * 1000  # no kind is that long
    following = ord(stem[-1]) + 1
    return prefix, stem[:-1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)


@lru_cache(maxsize=256)
def _feed_text(shape: _FeedShape, words: DialectWords) -> str:
    after, limit = words.hole(1), words.hole(2)
    first = 3 + words.own
    holes = [words.hole(number) for number in range(first, first + shape.actors + 2 * shape.kinds)]
    last = words.hole(first + len(holes))
    name = "lead.name" if words.together else last
    column = words.family if shape.lead == "family" else shape.lead
    parts = [f"{column} = {name}"] if shape.lead else []
    aside = words.aside("position")
    if shape.lead == "stream" and not shape.newest:
        parts.append(f"seq > {_HALVING.format(lead=name, after=after)}")
    parts.append(f"{aside if shape.lead == 'stream' else 'position'} > {after}")
    parts += words.settled(aside if shape.lead else "position")
    if shape.actors:
        parts.append(f"{words.aside('actor')} IN ({', '.join(holes[: shape.actors])})")
    if shape.kinds:
        ends = holes[shape.actors :]
        ranges = zip(ends[::2], ends[1::2], strict=True)
        parts.append(f"({' OR '.join(f'(kind >= {low} AND kind < {high})' for low, high in ranges)})")
    turned = " DESC" if shape.newest else ""
    order = "seq" if shape.lead == "stream" else "position"
    text = f"SELECT {EVENT} FROM event WHERE {' AND '.join(parts)} ORDER BY {order}{turned} LIMIT {limit}"  # noqa: S608 - our own names
    if not shape.lead or not words.together:
        return text
    return (
        f"SELECT {EVENT} FROM unnest({last}::text[]) AS lead(name) CROSS JOIN LATERAL ({text}) AS led "  # noqa: S608 - our own names
        f"ORDER BY position{turned} LIMIT {limit}"
    )
