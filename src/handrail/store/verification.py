"""Finds where ledger and tables disagree: rebuilds every row from events and recomputes every hash over the bytes that
are stored. Engine-free; it needs only one read, so a copy can be verified before anybody else sees it.

What covers what: the hash chain every column of an event but its position, positions their order within a stream; the
heads and the chain each other; the fold of the ledger every column of every row; a seal each kept answer. Indexes,
positions among streams, and the two columns of a lease that change without an event are the engine's part (`check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ledger import Change, Event
from handrail.kernel.records import PAGE
from handrail.store.migrations import default_of
from handrail.store.ports import Engine, Reader
from handrail.store.problems import KEYS, LEDGER, ROWS, Problem
from handrail.store.seals import is_right
from handrail.store.store_copy import EVENT, KEY, STREAM, TableCopy, Tell, copied
from handrail.store.tables import TABLES, Table
from handrail.store.writes import NEW_STREAM, NO_HASH, Head, StoredEvent, changes_in, encode_body, link

_Rows = dict[str, dict[str, Any]]
_TYPES: dict[str, type] = {"text": str, "json": str, "int": int, "flag": int, "bytes": bytes}
NEWEST = 1000
TAIL = 50
"""How many of the newest events a quick look takes its streams from, and how many events of each it recomputes."""


class Fold:
    """The tables as the events alone describe them, and what is wrong with the events."""

    def __init__(self) -> None:
        self.tables: dict[str, _Rows] = {table.name: {} for table in TABLES}
        self.problems: list[str] = []
        self.heads: dict[str, Head] = {}
        """The head of each stream as its events have it."""
        self._last: dict[str, tuple[int, tuple[str, ...], int]] = {}
        """Of each stream: the last number, the hashes the next event may follow, and the last position."""
        self.seen = 0
        self.last_position = 0

    def add(self, row: Sequence[Any]) -> None:
        """Takes the next event of its stream, as it is stored."""
        self.seen += 1
        whole = plain(EVENT, row)
        stream, seq = whole[0], whole[1]
        if not isinstance(stream, str) or type(seq) is not int:
            self._note(f"an event says of itself to be number {seq!r} of {stream!r}, which cannot be")
            return
        last, known, before = self._last.get(stream, (0, (NO_HASH,), 0))
        if seq != last + 1:
            self._note(f"{stream}: event {last + 1} is missing")
            known = ()
        position = whole[2]
        event = StoredEvent(stream, seq, *whole[3:])
        if not _has_types(EVENT, whole):
            self._note(f"{stream}: event {seq} cannot be read back")
            self._last[stream] = (seq, (), before)
            return
        mine = self._follow(event, known)
        if position <= before:
            self._note(f"{stream}: event {seq} stands before the one it follows")
        self._last[stream] = (seq, mine, position)
        self.last_position = max(self.last_position, position)
        self.heads[stream] = Head(seq, event.hash)
        try:
            for change in changes_in(event.body):
                _apply(self.tables.get(change.table, {}), change)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            self._note(f"{stream}: event {seq} cannot be read back")

    def begin_with(self, event: Event) -> None:
        """Believes one event of a stream, and goes on after it."""
        self._last[event.stream] = (event.seq, (event.hash,), event.position)

    def _follow(self, event: StoredEvent, known: tuple[str, ...]) -> tuple[str, ...]:
        """Checks an event's hash, and returns the hashes that the next one may follow: two if this one is not right,
        because nobody knows whether the hash or the event was changed."""
        right = [link(previous, event.stream, event.seq, event, event.body) for previous in known]
        if not known or event.hash in right:
            return (event.hash,)
        self._note(f"{event.stream}: event {event.seq} was changed after it was written")
        return (event.hash, *right)

    def compare(self, stored: dict[str, Head]) -> None:
        """Compares the heads that are stored with those of the events. One whose number or hash is still the last
        event's shows that no event is missing at the end: then only the head is damaged."""
        for stream in sorted(stored.keys() | self._last.keys()):
            seq, known, _ = self._last.get(stream, (0, (NO_HASH,), 0))
            head = stored.get(stream, NEW_STREAM)
            if head.seq != seq or (known and head.hash not in known):
                is_all_there = seq > 0 and (head.seq == seq or head.hash in known)
                said = f"{stream}: its head says {head.seq} events, the ledger has {seq}"
                self._note(said, ROWS if is_all_there else LEDGER)

    def _note(self, text: str, part: str = LEDGER) -> None:
        self.problems.append(Problem(part, text))


def fold(reader: Reader, progress: Callable[[int], None] = lambda _: None) -> Fold:
    """Reads the whole ledger. `progress` gets the number of events seen."""
    folded = Fold()
    try:
        for row in reader.stored(EVENT):
            folded.add(row)
            if folded.seen % PAGE == 0:
                progress(folded.seen)
    except (StoreUnusable, UnicodeDecodeError) as damaged:
        folded.problems.append(Problem(LEDGER, f"the ledger cannot be read to its end: {_said(damaged)}"))
        return folded
    try:
        folded.compare(_heads(reader))
    except (StoreUnusable, UnicodeDecodeError) as damaged:
        folded.problems.append(Problem(LEDGER, f"the heads of streams cannot be read: {_said(damaged)}"))
    return folded


def problems_in(reader: Reader, progress: Callable[[int], None] = lambda _: None) -> list[str]:
    """Gaps, broken hashes, rows that no event explains. Empty when sound. `progress` gets the number of events seen."""
    folded = fold(reader, progress)
    problems = folded.problems
    for table in TABLES:
        try:
            problems.extend(_row_problems(reader, table, folded.tables[table.name]))
        except (StoreUnusable, UnicodeDecodeError) as damaged:
            problems.append(Problem(ROWS, f"{table.name}: the table cannot be read to its end: {_said(damaged)}"))
    try:
        problems.extend(_key_problems(reader))
    except (StoreUnusable, UnicodeDecodeError) as damaged:
        problems.append(Problem(KEYS, f"the kept answers cannot be read to their end: {_said(damaged)}"))
    return problems


def check_sound(engine: Engine, tell: Tell) -> None:
    """Raises StoreUnusable if anything is wrong with a store."""
    problems = engine.check()
    if not problems:
        with engine.reading(aside=True) as reader:
            problems = problems_in(reader, lambda seen: tell("verifying", seen, 0))
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise StoreUnusable(
            f"{engine.info().location} is not sound: {problems[0]}{more}",
            hint="handrail db verify lists everything and says how to get it back; nothing was changed",
        )


def problems_in_newest(reader: Reader) -> list[str]:
    """What a quick look at the ledger finds: the newest events, and the head of each of their streams."""
    problems: list[str] = []
    try:
        for stream in sorted({event.stream for event in reader.newest(NEWEST)}):
            head = reader.head(stream)
            begin = max(0, head.seq - TAIL)
            chain = Fold()
            for event in reader.events(stream, max(0, begin - 1), TAIL + 1):
                if event.seq == begin:
                    chain.begin_with(event)
                else:
                    chain.add((*event[:7], encode_body(event), event.hash))
            chain.compare({stream: head})
            problems += chain.problems
    except (StoreUnusable, UnicodeDecodeError, TypeError) as damaged:
        problems.append(Problem(LEDGER, f"the ledger cannot be read: {_said(damaged)}"))
    return problems


# -- rows -----------------------------------------------------------------------------------------------------------


def row_from(table: Table, document: dict[str, Any]) -> tuple[Any, ...]:
    """The row that the ledger's document of a record makes. What it does not say is as the schema's step made it."""
    values = []
    for column, kind in zip(table.columns, table.kinds, strict=True):
        if column not in document:
            derived = column == "stream" and column not in table.fields
            values.append(table.record_from(document).stream if derived else default_of(table.name, column))
        elif kind == "json":
            values.append(_canonical(document[column]))
        else:
            values.append(int(document[column]) if kind == "flag" else document[column])
    return tuple(values)


def _row_problems(reader: Reader, table: Table, folded: _Rows) -> Iterator[str]:
    seen = set()
    for stored in reader.stored(copied(table)):
        row = plain(copied(table), stored)
        key = row[0]
        if not isinstance(key, str) or key in seen:
            yield Problem(ROWS, f"{table.name}: a row has the id {key!r}, which cannot be")
            continue
        seen.add(key)
        document = folded.get(key)
        if document is None:
            yield Problem(ROWS, f"{table.name} {key}: the table has a row that no event explains")
        elif said := _difference(table, document, row):
            yield Problem(ROWS, f"{table.name} {key}: {said}")
    for key in sorted(folded.keys() - seen):
        yield Problem(ROWS, f"{table.name} {key}: the ledger has it, the table has no row")


def _difference(table: Table, document: dict[str, Any], row: tuple[Any, ...]) -> str:
    """How a row differs from what the ledger says of it; empty if it does not."""
    unlike = []
    if not _is_readable(table, row):
        return "its row cannot be read back"
    try:
        expected = row_from(table, document)
    except (msgspec.MsgspecError, TypeError, ValueError):  # the event that made it is missing or damaged
        return "the ledger no longer says what its row should hold"
    for column, kind, here, there in zip(table.columns, table.kinds, row, expected, strict=True):
        if type(here) is type(there) and here == there:
            continue
        if kind == "json" and _canonical(msgspec.json.decode(here)) == there:
            continue
        if column not in table.unlogged or not may_be_newer(table, column, document, row):
            unlike.append(column)
    if unlike == ["stream"]:
        return "its row stands in another stream than it should"
    return f"ledger and table disagree about {', '.join(unlike)}" if unlike else ""


def _is_readable(table: Table, row: tuple[Any, ...]) -> bool:
    try:
        for place in table.documents:
            msgspec.json.decode(row[place])
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError):
        return False
    return not any(isinstance(value, bytes) for value in row)


def may_be_newer(table: Table, column: str, document: dict[str, Any], row: Sequence[Any]) -> bool:
    """Whether a lease may have been renewed to this value. A renewal only moves the end further, and only of a lease
    that somebody holds. One that came from another machine has ended here (`origin.py`), or lasts as long as it did but
    by another clock (`postgres_copy.py`)."""
    here, there = row[table.columns.index(column)], document.get(column)
    if type(here) is not int or type(there) is not int:
        return False
    if column != "expires_ms":
        return True
    renewed = row[table.columns.index("renewed_ms")]
    as_long = type(renewed) is int and here - renewed == there - document["renewed_ms"]
    return (here > there or here == 0 or as_long) and document.get("holder") is not None


def _canonical(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _apply(rows: _Rows, change: Change) -> None:
    if change.after is None:
        rows.pop(change.key, None)
    else:
        rows[change.key] = {**rows.get(change.key, {}), **change.after}


# -- the rest -------------------------------------------------------------------------------------------------------


def _heads(reader: Reader) -> dict[str, Head]:
    return {str(name): Head(seq, digest) for name, seq, digest in (plain(STREAM, row) for row in reader.stored(STREAM))}


def _key_problems(reader: Reader) -> Iterator[str]:
    for stored in reader.stored(KEY):
        row = plain(KEY, stored)
        if not _is_right_key(row):
            yield Problem(KEYS, f"{row[0]} {row[1]}: the answer kept for this key was changed")


def sound_keys(reader: Reader) -> list[Sequence[Any]]:
    """The kept answers that are as they were kept."""
    return [row for row in (plain(KEY, stored) for stored in reader.stored(KEY)) if _is_right_key(row)]


def _is_right_key(row: Sequence[Any]) -> bool:
    return _has_types(KEY, row) and is_right(*row)


def plain(table: TableCopy, row: Sequence[Any]) -> tuple[Any, ...]:
    """A stored row with its texts decoded; what is no text stays bytes."""
    return tuple(
        _text(value) if kind == "text" and isinstance(value, bytes) else value
        for kind, value in zip(table.kinds, row, strict=True)
    )


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _has_types(table: TableCopy, row: Sequence[Any]) -> bool:
    return all(type(value) is _TYPES[kind] for kind, value in zip(table.kinds, row, strict=True))


def _said(damaged: Exception) -> str:
    return damaged.message if isinstance(damaged, StoreUnusable) else "something in it is not what it should be"
