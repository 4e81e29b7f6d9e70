"""Finds where ledger and tables disagree: rebuilds every row from events and recomputes every hash. Engine-free; it
needs only one read, so a copy can be verified before anybody else sees it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ledger import Change, Event
from handrail.kernel.records import PAGE
from handrail.store.queries import Query
from handrail.store.reading import Reader
from handrail.store.tables import TABLES, Table
from handrail.store.writes import NEW_STREAM, NO_HASH, Head, encode_body, link

_Rows = dict[str, dict[str, Any]]


def problems_in(reader: Reader, progress: Callable[[int], None] = lambda _: None) -> list[str]:
    """Gaps, broken hashes, rows that no event explains. Empty when sound. `progress` gets the number of events seen."""
    problems: list[str] = []
    heads = dict(reader.streams())
    state = _fold(reader, heads, problems, progress)
    for table in TABLES:
        folded = state[table.name]
        rows: dict[str, dict[str, Any]] = {}
        for record, head in _rows(reader, table, 0, reader.count(table, Query()), problems, folded):
            rows[record.id] = table.document_of(record)
            if head != heads.get(record.stream, NEW_STREAM):
                problems.append(f"{table.name} {record.id}: its row stands in another stream than it should")
        problems.extend(_differences(table, folded, rows))
    return problems


def _fold(
    reader: Reader, heads: dict[str, Head], problems: list[str], progress: Callable[[int], None]
) -> dict[str, _Rows]:
    """The tables as the events alone describe them. Notes every stream whose chain is broken."""
    state: dict[str, _Rows] = {table.name: {} for table in TABLES}
    seen = 0
    for stream, head in heads.items():
        previous: str | None = NO_HASH
        expected, position = 1, 0
        for event in _all_events(reader, stream, problems):
            seen += 1
            if seen % PAGE == 0:
                progress(seen)
            seq = event if isinstance(event, int) else event.seq
            if seq != expected:
                problems.append(f"{stream}: event {expected} is missing")
            expected = seq + 1
            if isinstance(event, int):  # unreadable, so the event after it cannot be checked against it
                previous = None
                continue
            if previous is not None and event.hash != link(previous, stream, event.seq, event, encode_body(event)):
                problems.append(f"{stream}: event {event.seq} was changed after it was written")
            if event.position <= position:
                problems.append(f"{stream}: event {event.seq} stands before the one it follows")
            previous, position = event.hash, event.position
            for change in event.changes:
                _apply(state.get(change.table, {}), change)
        if (expected - 1, head.hash if previous is None else previous) != head:
            problems.append(f"{stream}: its head says {head.seq} events, the ledger has {expected - 1}")
    return state


def _all_events(reader: Reader, stream: str, problems: list[str]) -> Iterator[Event | int]:
    """The events of a stream in order; an unreadable one is given as its number."""
    after = 0
    while True:
        try:
            page = _whole_events(reader, stream, after, PAGE)
        except StoreUnusable as damaged:
            if "seq" not in damaged.details:
                raise
            problems.append(damaged.message)
            yield from _readable(reader, stream, after)
            yield damaged.details["seq"]
            after = damaged.details["seq"]
        else:
            if not page:
                return
            yield from page
            after = page[-1].seq


def _readable(reader: Reader, stream: str, after: int) -> Iterator[Event]:
    """The events before an unreadable one, one by one."""
    with contextlib.suppress(StoreUnusable):
        while found := _whole_events(reader, stream, after, 1):
            yield found[0]
            after = found[0].seq


def _whole_events(reader: Reader, stream: str, after: int, limit: int) -> list[Event]:
    """Events of a stream, each decoded completely: damage must show here, not when somebody first reads the changes."""
    found = reader.events(stream, after, limit)
    for event in found:
        len(event.changes)
    return found


def _rows(
    reader: Reader, table: Table, offset: int, count: int, problems: list[str], folded: _Rows
) -> list[tuple[Any, Head]]:
    """The readable rows of a table. Halves the range until each unreadable row is found, and notes it."""
    if not count:
        return []
    try:
        return reader.select(table, Query(limit=count, offset=offset))
    except StoreUnusable as damaged:
        if "key" not in damaged.details:
            raise
        if count == 1:
            problems.append(damaged.message)
            folded.pop(damaged.details["key"], None)
            return []
    half = count // 2
    return [
        *_rows(reader, table, offset, half, problems, folded),
        *_rows(reader, table, offset + half, count - half, problems, folded),
    ]


def _apply(rows: _Rows, change: Change) -> None:
    if change.after is None:
        rows.pop(change.key, None)
    else:
        rows[change.key] = {**rows.get(change.key, {}), **change.after}


def _differences(table: Table, folded: _Rows, rows: _Rows) -> Iterator[str]:
    for key in sorted(folded.keys() - rows.keys()):
        yield f"{table.name} {key}: the ledger has it, the table has no row"
    for key in sorted(rows.keys() - folded.keys()):
        yield f"{table.name} {key}: the table has a row that no event explains"
    for key in sorted(folded.keys() & rows.keys()):
        unlike = [
            column
            for column in rows[key]
            if column in folded[key] and folded[key][column] != rows[key][column] and column not in table.unlogged
        ]
        if unlike:
            yield f"{table.name} {key}: ledger and table disagree about {', '.join(unlike)}"
