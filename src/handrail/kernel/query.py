"""What can be asked about the records of one kind: equality, membership, order, a page. The store decides how to
answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

CHUNK = 500
"""The most values in one query to the store."""
LAST = "\U0010ffff"
"""Sorts after every other character: texts that start with a prefix lie between `prefix` and `prefix + LAST`."""


class Query(NamedTuple):
    """Which records, in which order. In `where`, a tuple means any of its members and None means no value; a column
    written as `name >` or `name <` means greater or less than the value."""

    where: tuple[tuple[str, Any], ...] = ()
    order: tuple[str, ...] = ("id",)
    """Columns; a leading `-` reverses one. The id is always the last, which makes the order total."""
    limit: int | None = None
    offset: int = 0


def where(**conditions: Any) -> Query:
    """A query by equality, ordered by id."""
    return Query(tuple(conditions.items()))


def chunks(values: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """The distinct values, split into chunks that fit one query each."""
    wanted = list(dict.fromkeys(values))
    for start in range(0, len(wanted), CHUNK):
        yield tuple(wanted[start : start + CHUNK])
