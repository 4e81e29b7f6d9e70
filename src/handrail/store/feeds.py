"""Queries of the ledger across streams, as SQL: everything, or some streams, actors and kinds. Texts only.

A filter may match one event in a million, and a watcher asks again after every write. So one part of the filter leads:
each of its streams, actors or families of kinds is read in order through an index of its own, and the results are
merged. The other parts are checked row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from handrail.kernel.ledger import Only
from handrail.kernel.query import LAST
from handrail.store.statements import EVENT

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


class _Shape(NamedTuple):
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
    shape = _Shape(lead, len(actors), len(kinds), newest)
    return FeedStatement(_text(shape, words), (*actors, *ranges), tuple(dict.fromkeys(leads)))


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
def _text(shape: _Shape, words: DialectWords) -> str:
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
