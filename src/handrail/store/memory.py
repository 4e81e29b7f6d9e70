"""The memory store: the reference model that the engines are tested against, and a store for tests. Plain dicts."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import Any

import msgspec

from handrail.kernel.clock import Moment
from handrail.kernel.ledger import EVERYTHING, Event, Only
from handrail.store.lease_clock import LeaseClock, MachineTime, machine_time, new_anchor
from handrail.store.migrations import LATEST
from handrail.store.ports import EngineInfo, Reader
from handrail.store.queries import Query, bounded, check_column
from handrail.store.store_copy import EVENT, KEY, STREAM, TableCopy
from handrail.store.tables import BY_NAME, TABLES, UNIQUE, Table
from handrail.store.writes import NEW_STREAM, Conflict, Head, WriteSet, decode_events, encode_body


class _State:
    """The whole content; copied before it is changed."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {table.name: {} for table in TABLES}
        self.heads: dict[str, Head] = {}
        self.events: list[Event] = []
        self.keys: dict[tuple[str, str], tuple[str, bytes, int]] = {}

    def copy(self) -> _State:
        other = _State()
        other.rows = {name: dict(rows) for name, rows in self.rows.items()}
        other.heads, other.events, other.keys = dict(self.heads), list(self.events), dict(self.keys)
        return other


class MemoryReader:
    """A view of one state."""

    def __init__(self, state: _State, moment: Moment) -> None:
        self._state = state
        self._moment = moment

    def moment(self) -> Moment:
        return self._moment

    def get(self, table: Table, key: str) -> tuple[Any, Head] | None:
        record = self._state.rows[table.name].get(key)
        return None if record is None else (record, self.head(record.stream))

    def select(self, table: Table, query: Query) -> list[tuple[Any, Head]]:
        found = self._matching_records(table, query)
        keys = [key for key in query.order if key.lstrip("-") != "id"] + (["-id"] if "-id" in query.order else ["id"])
        for key in reversed(keys):
            found.sort(key=_sort_key(key.lstrip("-")), reverse=key.startswith("-"))
        end = None if query.limit is None else query.offset + query.limit
        return [(record, self.head(record.stream)) for record in found[query.offset : end]]

    def count(self, table: Table, query: Query) -> int:
        return len(self._matching_records(table, query))

    def count_by(self, table: Table, query: Query, columns: tuple[str, ...]) -> dict[tuple[Any, ...], int]:
        for column in columns:
            check_column(table.name, column)
        matching = self._matching_records(table, query)
        return dict(Counter(tuple(getattr(record, column) for column in columns) for record in matching))

    def _matching_records(self, table: Table, query: Query) -> list[Any]:
        asked = [(*bounded(condition), wanted) for condition, wanted in query.where]
        for column in (*(column for column, _, _ in asked), *(key.lstrip("-") for key in query.order)):
            check_column(table.name, column)

        def fits(record: Any) -> bool:
            return all(_fits(getattr(record, column), beyond, wanted) for column, beyond, wanted in asked)

        return [record for record in self._state.rows[table.name].values() if fits(record)]

    def head(self, stream: str) -> Head:
        return self._state.heads.get(stream, NEW_STREAM)

    def key_answer(self, scope: str, key: str, now_ms: int) -> tuple[str, bytes] | None:
        found = self._state.keys.get((scope, key))
        return None if found is None or found[2] <= now_ms else found[:2]

    def events(self, stream: str, after: int, limit: int) -> list[Event]:
        return [event for event in self._state.events if event.stream == stream and event.seq > after][:limit]

    def feed(self, after: int, limit: int, only: Only = EVERYTHING) -> list[Event]:
        return list(islice(filter(only.fits, islice(self._state.events, after, None)), limit))

    def newest(self, limit: int, only: Only = EVERYTHING) -> list[Event]:
        return list(islice(filter(only.fits, reversed(self._state.events)), limit))[::-1]

    def last_by(self, actor: str, limit: int) -> list[Event]:
        return [event for event in reversed(self._state.events) if event.actor == actor][:limit]

    def position(self) -> int:
        return len(self._state.events)

    def note(self, key: str) -> str | None:  # noqa: ARG002 - it ends with its process, so nobody notes anything
        return None

    def streams(self) -> Iterator[tuple[str, Head]]:
        yield from sorted(self._state.heads.items())

    def stored(self, table: TableCopy) -> Iterator[Sequence[Any]]:
        state = self._state
        if table is STREAM:
            return ((name, *head) for name, head in sorted(state.heads.items()))
        if table is KEY:
            return ((*named, *kept) for named, kept in sorted(state.keys.items()))
        if table is EVENT:
            ordered = sorted(state.events, key=lambda event: event[:2])
            return ((*event[:7], encode_body(event), event.hash) for event in ordered)
        kept = BY_NAME[table.name]
        return (kept.row_of(record) for _, record in sorted(state.rows[table.name].items()))


def _fits(value: Any, beyond: str, wanted: Any) -> bool:
    if beyond:
        return value is not None and bool(value > wanted if beyond == ">" else value < wanted)
    return bool(value in wanted if isinstance(wanted, tuple) else value == wanted)


def _sort_key(column: str) -> Callable[[Any], tuple[bool, Any]]:
    """Sorts by one column; None comes first, as in SQLite."""

    def key(record: Any) -> tuple[bool, Any]:
        value = getattr(record, column)
        return value is not None, value if value is not None else 0

    return key


class MemoryEngine:
    """A store that ends with its process."""

    def __init__(self, read: Callable[[], MachineTime] = machine_time) -> None:
        self._state = _State()
        self._clock = LeaseClock(read)
        self._anchor = new_anchor(read(), 0).text
        self._lock = threading.RLock()
        self._news = threading.Condition(self._lock)

    def info(self) -> EngineInfo:
        return EngineInfo("memory", "", "", LATEST)

    @contextlib.contextmanager
    def reading(self, *, aside: bool = False) -> Iterator[Reader]:  # noqa: ARG002 - nobody waits here
        moment = self._moment()
        yield MemoryReader(self._state, moment)

    def _moment(self) -> Moment:
        return self._clock.moment(self._clock.read(), self._anchor, lambda: 0)

    def clock_remark(self) -> str | None:
        return self._clock.remark

    def commit(self, writes: WriteSet) -> int:
        with self._lock:
            state = self._state.copy()
            for stream in writes.streams:
                if state.heads.get(stream.stream, NEW_STREAM) != stream.expected:
                    raise Conflict(stream.stream)
                state.heads[stream.stream] = stream.head
                places = count(len(state.events) + 1)
                state.events += decode_events((*event[:2], next(places), *event[2:]) for event in stream.events)
            for row in writes.rows:
                if row.values is None:
                    state.rows[row.table].pop(row.key, None)
                else:
                    self._put(state, BY_NAME[row.table], row.key, row.values)
            if writes.key is not None:
                key = writes.key
                old = state.keys.get((key.scope, key.key))
                if old is not None and old[2] > key.now_ms:
                    raise Conflict(key.key)
                for over in [old for old, kept in state.keys.items() if kept[2] <= key.now_ms]:
                    del state.keys[over]
                state.keys[key.scope, key.key] = (key.request_hash, key.response, key.expires_ms)
            self._state = state
            self._news.notify_all()
            return len(state.events)

    @staticmethod
    def _put(state: _State, table: Table, key: str, values: tuple[Any, ...]) -> None:
        record = table.record_of(values)
        rows = state.rows[table.name]
        for columns in UNIQUE.get(table.name, ()):
            mine = tuple(getattr(record, column) for column in columns)
            for other_key, other in rows.items():
                if other_key != key and tuple(getattr(other, column) for column in columns) == mine:
                    raise Conflict(f"{table.name}: {columns}")
        rows[key] = record

    def renew(self, holder: str, ttl_ms: int, now_ms: int | None = None) -> int:
        with self._lock:
            if now_ms is None:
                now_ms = self._moment().lease_ms
            state = self._state.copy()
            leases = state.rows["lease"]
            held = [lease for lease in leases.values() if lease.holder == holder and lease.expires_ms > now_ms]
            for lease in held:
                later = max(lease.expires_ms, now_ms + ttl_ms)
                leases[lease.id] = msgspec.structs.replace(lease, expires_ms=later, renewed_ms=now_ms)
            self._state = state
            return len(held)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with self._lock:
            yield

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        with self._news:
            self._news.wait_for(lambda: cancelled() or len(self._state.events) > position, timeout_s)
            return len(self._state.events) > position

    def check(self) -> list[str]:
        return []

    def close(self) -> None:
        return None
