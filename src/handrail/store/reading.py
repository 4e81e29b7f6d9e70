"""The ports of the store: what a unit reads through, and what every engine offers. Types only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from handrail.kernel.ledger import EVERYTHING, Event, Only
from handrail.store.queries import Query
from handrail.store.tables import Table
from handrail.store.writes import Head, WriteSet


class Reader(Protocol):
    """One consistent look at the store."""

    def get(self, table: Table, key: str) -> tuple[Any, Head] | None: ...

    def select(self, table: Table, query: Query) -> list[tuple[Any, Head]]: ...

    def count(self, table: Table, query: Query) -> int: ...

    def count_by(self, table: Table, query: Query, columns: tuple[str, ...]) -> dict[tuple[Any, ...], int]: ...

    def head(self, stream: str) -> Head: ...

    def key_answer(self, scope: str, key: str, now_ms: int) -> tuple[str, bytes] | None: ...

    def events(self, stream: str, after: int, limit: int) -> list[Event]:
        """Events of one stream with a later sequence number, in order."""
        ...

    def feed(self, after: int, limit: int, only: Only = EVERYTHING) -> list[Event]:
        """Events of all streams at a later position that fit, in the order everybody sees them in. Positions grow, but
        not always by one."""
        ...

    def newest(self, limit: int, only: Only = EVERYTHING) -> list[Event]:
        """The newest events of the feed that fit, oldest of them first."""
        ...

    def last_by(self, actor: str, limit: int) -> list[Event]:
        """The newest events of one actor, newest first."""
        ...

    def position(self) -> int:
        """The position of the newest event."""
        ...

    def streams(self) -> Iterator[tuple[str, Head]]: ...


class EngineInfo(msgspec.Struct, frozen=True):
    """What `handrail db path` and `check` tell of an engine."""

    engine: str
    location: str
    version: str
    schema: int


class Engine(Protocol):
    """What every store can do. Small on purpose: the two dialects differ in nothing else."""

    def info(self) -> EngineInfo: ...

    def reading(self, *, aside: bool = False) -> AbstractContextManager[Reader]:
        """A look that does not change while it is open. `aside`: it may take long, and must not keep writers of this
        process waiting."""
        ...

    def commit(self, writes: WriteSet) -> int:
        """Writes all of it and returns the position of the last event. Raises Conflict when a stream has moved on, a
        StoreRefused when it cannot be written; either way nothing was."""
        ...

    def renew(self, holder: str, now_ms: int, expires_ms: int) -> int:
        """Puts off the expiry of every lease that `holder` still has at `now_ms`; how many those are."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Keeps every other writer out while it is open, so that a unit that lost too often gets its turn."""
        ...

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """True as soon as there is an event after `position`; False when the time is up or the caller gives up."""
        ...

    def check(self) -> list[str]:
        """What the engine itself finds wrong with its files."""
        ...

    def backup(self, target: str) -> None: ...

    def close(self) -> None: ...
