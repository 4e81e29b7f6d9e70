"""The ports of the store: what a unit reads through, and what engines offer. Hardly more than types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from handrail.kernel.clock import Moment
from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ledger import EVERYTHING, Event, Only
from handrail.store.queries import Query
from handrail.store.store_copy import Rows, Still, TableCopy, Tell, report_nothing
from handrail.store.tables import Table
from handrail.store.writes import Head, WriteSet


class Reader(Protocol):
    """One consistent view of the store."""

    def moment(self) -> Moment:
        """When the view began, by the store's own clocks: not after anything it shows was written."""
        ...

    def get(self, table: Table, key: str) -> tuple[Any, Head] | None: ...

    def select(self, table: Table, query: Query) -> list[tuple[Any, Head]]: ...

    def count(self, table: Table, query: Query) -> int: ...

    def count_by(self, table: Table, query: Query, columns: tuple[str, ...]) -> dict[tuple[Any, ...], int]: ...

    def head(self, stream: str) -> Head: ...

    def key_answer(self, scope: str, key: str, now_ms: int) -> tuple[str, bytes] | None: ...

    def events(self, stream: str, after: int, limit: int) -> list[Event]:
        """The events of one stream after a sequence number, in order."""
        ...

    def feed(self, after: int, limit: int, only: Only = EVERYTHING) -> list[Event]:
        """The matching events of all streams after a position, in the order everybody sees them in. Positions grow, but
        not always by one."""
        ...

    def newest(self, limit: int, only: Only = EVERYTHING) -> list[Event]:
        """The newest matching events of the feed, oldest first; of a single stream, all that its rows reflect."""
        ...

    def last_by(self, actor: str, limit: int) -> list[Event]:
        """The newest events of one actor, newest first."""
        ...

    def position(self) -> int:
        """The position of the newest event."""
        ...

    def note(self, key: str) -> str | None:
        """A note about the store itself, such as where it was made."""
        ...

    def streams(self) -> Iterator[tuple[str, Head]]: ...

    def stored(self, table: TableCopy) -> Iterator[Sequence[Any]]:
        """Every row of a table as it is stored, in the order of its primary key; a text may come as its bytes. Raises
        StoreUnusable where it cannot be read any further."""
        ...


class EngineInfo(msgspec.Struct, frozen=True):
    """What `handrail db path` and `check` say about an engine."""

    engine: str
    location: str
    version: str
    schema: int


class Engine(Protocol):
    """What every store can do. Small on purpose: the two dialects differ in nothing else."""

    def info(self) -> EngineInfo: ...

    def reading(self, *, aside: bool = False) -> AbstractContextManager[Reader]:
        """A view that does not change while it is open. `aside`: it may take long, and must not keep this process's
        writers waiting."""
        ...

    def commit(self, writes: WriteSet) -> int:
        """Writes all of it and returns the position of the last event. Raises Conflict if a stream has moved on,
        StoreRefused if it cannot be written; in both cases nothing was written."""
        ...

    def renew(self, holder: str, ttl_ms: int, now_ms: int | None = None) -> int:
        """Extends every lease that `holder` still has, and returns how many those are. Leases are judged by the store's
        own clock, unless another time is given."""
        ...

    def clock_remark(self) -> str | None:
        """What is wrong with this machine's clock, if anything is known to be."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Keeps every other writer out while it is open, so that a unit that keeps losing gets its turn."""
        ...

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """True as soon as there is an event after `position`; False when the time is up or the caller gives up."""
        ...

    def check(self) -> list[str]:
        """What the engine itself finds wrong with its files."""
        ...

    def close(self) -> None: ...


class Size(NamedTuple):
    """How much space one kind of content takes."""

    what: str
    rows: int | None
    bytes: int | None


class Vacuumed(NamedTuple):
    """What a vacuum freed."""

    before: int
    after: int
    keys: int
    """Expired idempotency keys that were removed."""


@runtime_checkable
class LastingEngine(Engine, Protocol):
    """An engine whose content outlives its process and can be maintained."""

    def backup(self, target: str, tell: Tell = report_nothing) -> None:
        """Writes a consistent copy into a new SQLite file, while others write."""
        ...

    def restore(self, source: str, tell: Tell = report_nothing) -> None:
        """Replaces its own content with a backup's, in one step."""
        ...

    def fill(self, source: Rows, tell: Tell = report_nothing) -> None:
        """Copies all of another store into itself, in one step, and compares. It must be empty."""
        ...

    def still(self) -> AbstractContextManager[Still]:
        """Keeps every other writer out for as long as it takes to copy everything."""
        ...

    def is_empty(self) -> bool: ...

    def sizes(self) -> list[Size]: ...

    def vacuum(self, now_ms: int, *, full: bool = False) -> Vacuumed:
        """Returns free space to the system. `full`: all of it, even if everybody has to wait meanwhile."""
        ...


def lasting(engine: Engine) -> LastingEngine:
    """The engine as one that can be maintained; refuses a store in memory."""
    if not isinstance(engine, LastingEngine):
        raise StoreUnusable("a store in memory ends with its process", hint="choose a file with --db")
    return engine


_NAMED = {"event": "events", "idempotency": "keys"}
_OWN = ("meta", "counter", "stream")


def grouped(counts: Mapping[str, int], room: Mapping[str, int], total: int) -> list[Size]:
    """Tables by what they hold for people: events, keys, and each kind of record that has rows."""
    found = [Size(shown, counts.get(name, 0), room.get(name, 0)) for name, shown in _NAMED.items()]
    rest = sorted(counts.keys() - {*_NAMED, *_OWN}, key=lambda name: (-room.get(name, 0), name))
    found += [Size(name, counts[name], room.get(name, 0)) for name in rest if counts[name]]
    return [*found, Size("other", None, total - sum(size.bytes or 0 for size in found))]
