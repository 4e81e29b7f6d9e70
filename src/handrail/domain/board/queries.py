"""Searching boards: which entries match, page by page in order of key, and which boards there are.

Expired entries are never found. Searching changes nothing. No store.

Watching a board: what happened on it after a version, from its events alone, each once and in order.

Watching also removes expired entries, so that their expiry is among what is reported. What a retention hides is
mentioned, never silently skipped. No store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET

from handrail.domain.board.board import DELETED, EXPIRED, SAME, SET, Board, standing
from handrail.domain.board.entry import BoardChange, BoardEntry, board_stream, brief, snapshot
from handrail.kernel.ledger import Change, Event
from handrail.kernel.records import LAST, Query, UnitOfWork

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


_TABLE = "board"
_KINDS: dict[str, Literal["set", "delete", "expire"]] = {SET: "set", DELETED: "delete", EXPIRED: "expire"}


class BoardChanges(NamedTuple):
    """What happened, as far as was asked for."""

    changes: list[BoardChange]
    version: int
    """The number of the board's newest event."""
    truncated_before: int
    """The first event still shown, if older ones were asked for but are hidden; else 0."""


def watch(unit: UnitOfWork, name: str, after: int, limit: int, *, history: int = 0) -> BoardChanges:
    """What happened on a board after that version, at most `limit` changes. Only the newest `history` events are shown;
    0 shows all."""
    board = Board(unit, name)
    stood = board.version
    swept = board.sweep()
    first = max(1, board.version - history + 1) if history else 1
    hidden, after = after < first - 1, max(after, first - 1)
    changes = [change_of(unit, event) for event in unit.events(board_stream(name), after, limit) if event.seq <= stood]
    for version, entry in enumerate(swept, stood + 1):  # recorded by this unit, so not among the events yet
        if version > after and len(changes) < limit:
            changes.append(_expiry(version, entry, unit.now_ms()))
    return BoardChanges(changes, board.version, first if hidden else 0)


def change_of(unit: UnitOfWork, event: Event) -> BoardChange:
    """What an event of a board's stream did."""
    change = next(change for change in event.changes if change.table == _TABLE)
    undone = event.kind not in _KINDS
    same = _event_undone_by(unit, event).data.get(SAME, {}) if undone else event.data.get(SAME, {})
    old, new = _entry(change, change.before, same), _entry(change, change.after, same)
    if event.kind == EXPIRED and old is not None:
        return _expiry(event.seq, old, event.at_ms)
    return BoardChange(
        version=event.seq,
        kind=_KINDS.get(event.kind) or ("set" if new is not None else "delete"),
        key=change.key,
        entry=snapshot(new) if new is not None else UNSET,
        previous=brief(old) if old is not None else UNSET,
        reason="undo" if undone else UNSET,
        by=event.actor,
        ts=event.at_ms,
    )


def _event_undone_by(unit: UnitOfWork, event: Event) -> Event:
    """The event that was undone. The undo has what it changed back; the undone event has what stayed the same."""
    (undone,) = unit.events(event.stream, event.data["undone"] - 1, 1)
    return undone


def _entry(change: Change, part: Mapping[str, Any] | None, same: Mapping[str, Any]) -> BoardEntry | None:
    return None if part is None else msgspec.convert({**same, **part, "id": change.key}, BoardEntry)


def _expiry(version: int, entry: BoardEntry, at_ms: int) -> BoardChange:
    return BoardChange(version=version, kind="expire", key=entry.id, previous=brief(entry), reason="ttl", ts=at_ms)
