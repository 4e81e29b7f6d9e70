"""What can be asked of the records of one kind: equality, membership, order, a page. How it is answered is the
store's."""

from __future__ import annotations

from typing import Any, NamedTuple


class Query(NamedTuple):
    """Which records, in which order. In `where` a tuple means any of its members, None means that nothing is there; a
    column written `name >` or `name <` means what lies beyond the value."""

    where: tuple[tuple[str, Any], ...] = ()
    order: tuple[str, ...] = ("id",)
    """Columns; a leading `-` turns one around. The id is always the last, so that an order is total."""
    limit: int | None = None
    offset: int = 0


def where(**conditions: Any) -> Query:
    """A query by equality, in the order of ids."""
    return Query(tuple(conditions.items()))
