"""Searching boards: which entries match, page by page in order of key, and which boards there are.

Expired entries are never found. Searching changes nothing. No store.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from handrail.domain.board.board import standing
from handrail.domain.board.entry import BoardEntry, board_stream
from handrail.kernel.query import LAST, Query
from handrail.kernel.records import UnitOfWork

LOOKED_AT = 2000
"""How many entries one call searches for tags, which have no index."""
CHUNK = 250


class EntryQuery(NamedTuple):
    """Which entries are wanted; all conditions must hold."""

    board: str | None = None
    keys: tuple[str, ...] = ()
    """Full keys; empty means any."""
    tags: tuple[str, ...] = ()
    """An entry must have all of them."""
    beginning: str = ""
    """The prefix of the full key."""
    after: str = ""
    """Only keys after this one."""


class FoundEntries(NamedTuple):
    """A page of entries in order of key."""

    entries: list[BoardEntry]
    total: int | None
    """How many match, from `after` on. None if not all were examined."""
    next: str | None
    """The key to continue after; None at the end."""


class BoardSize(NamedTuple):
    """A board as a list shows it."""

    name: str
    entries: int
    version: int
    """The number of its newest event."""


def search(unit: UnitOfWork, sought: EntryQuery, limit: int) -> FoundEntries:
    """The first `limit` entries that match."""
    if sought.keys:
        named = [standing(unit, key) for key in sorted(set(sought.keys))]
        fitting = [entry for entry in named if entry is not None and _fits(entry, sought)]
        return _first_of(fitting, limit)
    if sought.tags:
        return _search_tags(unit, sought, limit)
    queries = _queries(unit, sought)
    total = sum(unit.count(BoardEntry, query) for query in queries)
    entries = _page(unit, queries, limit)
    return FoundEntries(entries, total, entries[-1].id if total > len(entries) else None)


def boards(unit: UnitOfWork) -> list[BoardSize]:
    """Every board that has entries, by name."""
    sizes: dict[str, int] = {}
    for query in _queries(unit, EntryQuery()):
        for (name,), count in unit.count_by(BoardEntry, query, ("namespace",)).items():
            sizes[name] = sizes.get(name, 0) + count
    return [BoardSize(name, count, unit.head_seq(board_stream(name))) for name, count in sorted(sizes.items())]


def _search_tags(unit: UnitOfWork, sought: EntryQuery, limit: int) -> FoundEntries:
    fitting: list[BoardEntry] = []
    looked, last = 0, sought.after
    while looked < LOOKED_AT:
        page = _page(unit, _queries(unit, sought._replace(after=last)), CHUNK)
        fitting += [entry for entry in page if _fits(entry, sought)]
        if len(page) < CHUNK:
            return _first_of(fitting, limit)
        looked, last = looked + len(page), page[-1].id
    found = _first_of(fitting, limit)
    return found._replace(total=None, next=found.next or last)


def _first_of(fitting: list[BoardEntry], limit: int) -> FoundEntries:
    return FoundEntries(fitting[:limit], len(fitting), fitting[limit - 1].id if len(fitting) > limit else None)


def _queries(unit: UnitOfWork, sought: EntryQuery) -> tuple[Query, Query]:
    """Two queries: entries without an expiry, and those that have not expired yet. No entry is in both."""
    conditions: list[tuple[str, Any]] = []
    if sought.board is not None:
        conditions.append(("namespace", sought.board))
    lower = max(sought.after, _just_before(sought.beginning))
    if lower:
        conditions.append(("id >", lower))
    if sought.beginning:
        conditions.append(("id <", sought.beginning + LAST))
    lasting, ending = ("expires_at", None), ("expires_at >", unit.now_ms())
    return Query((*conditions, lasting)), Query((*conditions, ending))


def _page(unit: UnitOfWork, queries: tuple[Query, Query], limit: int) -> list[BoardEntry]:
    found = [entry for query in queries for entry in unit.select(BoardEntry, query._replace(limit=limit))]
    return sorted(found, key=lambda entry: entry.id)[:limit]


def _just_before(beginning: str) -> str:
    """A text just before the prefix itself and after all smaller keys, because a query has no `>=`."""
    return f"{beginning[:-1]}{chr(ord(beginning[-1]) - 1)}{LAST}" if beginning else ""


def _fits(entry: BoardEntry, sought: EntryQuery) -> bool:
    return (
        sought.board in (None, entry.namespace)
        and entry.id.startswith(sought.beginning)
        and entry.id > sought.after
        and set(sought.tags) <= set(entry.tags)
    )
