"""A unit of work: what a handler reads and records, before any of it is written. Engine-free.

It remembers the head of each stream it read; the store commits only if those heads have not moved. Reading a record
again within a unit returns what the unit itself has put.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from handrail.kernel.clock import Moment
from handrail.kernel.ids import Ids
from handrail.kernel.ledger import EVERYTHING, Actor, Change, Event, NewEvent, Only
from handrail.kernel.provenance import MachineKey
from handrail.kernel.records import PAGE, Query, Record, RecordT
from handrail.store.ports import Reader
from handrail.store.seals import opened, sealed
from handrail.store.tables import BY_RECORD, Table
from handrail.store.writes import NEW_STREAM, Head, KeyWrite, RowWrite, WriteSet, chained

_ABSENT: Any = object()
MOST = 2**63 - 1


class Unit:
    """One handler's view of the store."""

    def __init__(
        self, reader: Reader, *, actor: Actor, now_ms: int | None = None, ids: Ids, key: MachineKey | None = None
    ) -> None:
        """`now_ms`: the time, if it is not the store's own."""
        self._reader = reader
        self._machine = key
        self.actor = actor
        self._moment = None if now_ms is None else Moment(now_ms, now_ms)
        """One moment for the whole unit, taken before anything was read. A lease that had expired by then cannot have
        been renewed since, however long the unit was suspended; with a later clock it might take a lease that is still
        held."""
        self._ids = ids
        self._heads: dict[str, Head] = {}
        self._loaded: dict[tuple[str, str], Any] = {}
        self._put: dict[tuple[str, str], Any] = {}
        self._differing: dict[tuple[str, str], tuple[Any, Any, tuple[str, ...]]] = {}
        """For a record that replaces another: both records, and the fields in which they differ."""
        self._events: dict[str, list[NewEvent]] = {}
        self._key: KeyWrite | None = None

    # -- the world --------------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self._at().now_ms

    def _at(self) -> Moment:
        if self._moment is None:
            self._moment = self._reader.moment()
        return self._moment

    def new_id(self, prefix: str) -> str:
        return self._ids.new(prefix)

    def vouch(self, what: str) -> str:
        key = self._machine
        return "" if key is None else key.word(self._reader.note(key.mark_name), what)

    def is_vouched(self, what: str, word: str) -> bool:
        key = self._machine
        return key is None or key.holds(self._reader.note(key.mark_name), what, word)

    # -- reading ----------------------------------------------------------------------------------------------------

    def get(self, kind: type[RecordT], key: str) -> RecordT | None:
        """The record with this id, or None."""
        table = BY_RECORD[kind]
        known = self._put.get((table.name, key), _ABSENT)
        if known is _ABSENT:
            known = self._loaded.get((table.name, key), _ABSENT)
        if known is _ABSENT:
            found = self._reader.get(table, key)
            if found is not None:
                known = self._remember(table, *found)
            else:
                known = self._loaded[table.name, key] = None  # asking again would give the same answer
        record: RecordT | None = known
        return record

    def select(self, kind: type[RecordT], query: Query) -> list[RecordT]:
        """The matching records, without what this unit has put itself."""
        table = BY_RECORD[kind]
        return [self._remember(table, record, head) for record, head in self._reader.select(table, query)]

    def count(self, kind: type[RecordT], query: Query) -> int:
        return self._reader.count(BY_RECORD[kind], query)

    def count_by(self, kind: type[RecordT], query: Query, columns: tuple[str, ...]) -> dict[tuple[Any, ...], int]:
        return self._reader.count_by(BY_RECORD[kind], query, columns)

    def last_event(self, actor: str) -> Event | None:
        return next(iter(self._reader.last_by(actor, 1)), None)

    def events(self, stream: str, after: int = 0, limit: int = PAGE) -> list[Event]:
        return self._reader.events(stream, _clamped(after), _clamped(limit))

    def head_seq(self, stream: str) -> int:
        if stream not in self._events:  # a stream this unit began must still be new
            self.expect(stream)
        return self._heads.get(stream, NEW_STREAM).seq + len(self._events.get(stream, ()))

    def feed(self, after: int, limit: int, only: Only = EVERYTHING) -> list[Event]:
        return self._reader.feed(_clamped(after), _clamped(limit), only)

    def newest(self, limit: int, only: Only = EVERYTHING) -> list[Event]:
        return self._reader.newest(_clamped(limit), only)

    def position(self) -> int:
        return self._reader.position()

    def key_answer(self, scope: str, key: str) -> tuple[str, bytes] | None:
        """What an idempotency key already stands for: the hash of its request, and the answer."""
        found = self._reader.key_answer(scope, key, self.now_ms())
        return None if found is None else (found[0], opened(found[1], scope, key, found[0]))

    def _remember(self, table: Table, record: Any, head: Head) -> Any:
        record = self._shifted(table, record, 1)
        # The first sight of a stream counts: decisions based on it must still hold when the unit commits.
        self._heads.setdefault(record.stream, head)
        self._loaded.setdefault((table.name, record.id), record)
        return record

    def _shifted(self, table: Table, record: Any, way: int) -> Any:
        """A lease is stored in the lease clock's time. Whoever works with it sees this unit's own, so that one clock is
        enough for every rule and every view; the way back is -1."""
        if not table.unlogged or (ahead := self._at().now_ms - self._at().lease_ms) == 0:
            return record
        values = {field: getattr(record, field) for field in table.unlogged}
        return msgspec.structs.replace(record, **{name: value + way * ahead for name, value in values.items() if value})

    # -- recording --------------------------------------------------------------------------------------------------

    def record(
        self,
        kind: str,
        *puts: Record,
        removes: Iterable[Record] = (),
        data: Mapping[str, Any] | None = None,
        actor: Actor | None = None,
    ) -> None:
        """Records one event and the rows it changes, all of one stream. The first record names the stream."""
        removed = tuple(removes)
        stream, *others = [record.stream for record in (*puts, *removed)]
        changes = [self._change(record, after=record) for record in puts]
        changes += [self._change(record, after=None) for record in removed]
        assert all(other == stream for other in others), "an event belongs to one stream"
        if stream not in self._heads and all(record.id != stream for record in puts):
            self.expect(stream)  # the record with the stream's own name begins it; others add to it
        name, channel = actor or self.actor
        event = NewEvent(kind, name, channel, self.now_ms(), data or {}, tuple(changes))
        self._events.setdefault(stream, []).append(event)

    def record_changes(self, stream: str, kind: str, changes: Iterable[Change], data: Mapping[str, Any]) -> None:
        """Records an event whose changes are given directly, as undoing needs it."""
        given = tuple(changes)
        for change in given:
            table = next(known for known in BY_RECORD.values() if known.name == change.table)
            if change.after is None:
                self._put[change.table, change.key] = None
            else:
                before = self.get(table.record, change.key)
                stored = table.document_of(self._shifted(table, before, -1)) if before is not None else {}
                record = table.record_from({**stored, **change.after})
                self._put[change.table, change.key] = self._shifted(table, record, 1)
        event = NewEvent(kind, self.actor.name, self.actor.channel, self.now_ms(), data, given)
        self._events.setdefault(stream, []).append(event)

    def keep_answer(self, key: KeyWrite) -> None:
        """Stores an idempotency key with everything else this unit writes."""
        self._key = sealed(key)

    def expect(self, stream: str, head: Head | None = None) -> None:
        """Notes a stream's head, for a unit that writes to it without having read one of its records; or the `head`
        seen outside this unit, which the write must then follow directly."""
        if head is not None:
            self._heads[stream] = head
        else:
            self._heads.setdefault(stream, self._reader.head(stream))

    def _change(self, record: Record, *, after: Record | None) -> Change:
        table = BY_RECORD[type(record)]
        before = self.get(table.record, record.id)
        self._put[table.name, record.id] = after
        # An event says what is stored, so that rows can be compared with it and made from it.
        old = self._shifted(table, before, -1) if before is not None else None
        new = self._shifted(table, after, -1) if after is not None else None
        if old is None or new is None:
            return Change(
                table.name,
                record.id,
                table.document_of(new) if new is not None else None,
                table.document_of(old) if old is not None else None,
            )
        differing = differing_fields(table, old, new)
        self._differing[table.name, record.id] = before, after, differing
        return Change(table.name, record.id, plain_fields(new, differing), plain_fields(old, differing))

    # -- the outcome ------------------------------------------------------------------------------------------------

    def writes(self) -> WriteSet | None:
        """Everything to be written; None for a unit that only read."""
        if not self._events and self._key is None:
            return None
        streams = tuple(
            chained(stream, self._heads.get(stream, NEW_STREAM), events)
            for stream, events in sorted(self._events.items())
        )
        rows = tuple(self._row(table_name, key, record) for (table_name, key), record in self._put.items())
        return WriteSet(streams, rows, self._key)

    def _row(self, table_name: str, key: str, record: Any) -> RowWrite:
        if record is None:
            return RowWrite(table_name, key, None)
        table = BY_RECORD[type(record)]
        there = self._loaded.get((table_name, key))
        row = table.row_of(self._shifted(table, record, -1))
        if there is None or there.stream != record.stream:
            return RowWrite(table_name, key, row)
        before, after, differing = self._differing.get((table_name, key), (None, None, ()))
        if before is not there or after is not record:  # put more than once
            differing = differing_fields(table, there, record)
        return RowWrite(table_name, key, row, differing)


def _clamped(number: int) -> int:
    """Clamps a cursor or limit to what every engine accepts: callers may pass any number."""
    return min(max(number, 0), MOST)


def differing_fields(table: Table, old: Any, new: Any) -> tuple[str, ...]:
    """The fields in which two records differ. In JSON fields, 1, 1.0 and true differ too."""
    found = []
    values = zip(msgspec.structs.astuple(old), msgspec.structs.astuple(new), strict=True)
    for field, kind, (before, after) in zip(table.fields, table.kinds, values, strict=False):
        if before is after:  # true of most fields of a record made from another
            continue
        if msgspec.json.encode(before) != msgspec.json.encode(after) if kind == "json" else before != after:
            found.append(field)
    return tuple(found)


def plain_fields(record: Any, fields: Iterable[str]) -> dict[str, Any]:
    """Some fields as the plain JSON values that the ledger holds."""
    return {field: msgspec.to_builtins(getattr(record, field)) for field in fields}
