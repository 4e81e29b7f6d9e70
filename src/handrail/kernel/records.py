"""Records and units of work as ports: what the store keeps, and how a handler reads and writes it. No store here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from handrail.kernel.ledger import Actor, Event
from handrail.kernel.query import Query


class Record(Protocol):
    """A thing that is kept: it has an id and belongs to a stream."""

    @property
    def id(self) -> str: ...

    @property
    def stream(self) -> str: ...


RecordT = TypeVar("RecordT", bound=Record)


class UnitOfWork(Protocol):
    """One handler's view of the store: it reads, and records events with the rows they change. All or nothing."""

    @property
    def actor(self) -> Actor:
        """Who does this work, through which channel."""
        ...

    def now_ms(self) -> int: ...

    def new_id(self, prefix: str) -> str: ...

    def get(self, kind: type[RecordT], key: str) -> RecordT | None: ...

    def select(self, kind: type[RecordT], query: Query) -> list[RecordT]: ...

    def count(self, kind: type[RecordT], query: Query) -> int: ...

    def count_by(self, kind: type[RecordT], query: Query, columns: tuple[str, ...]) -> dict[tuple[Any, ...], int]:
        """How many fit, for each combination of values that occurs in these columns."""
        ...

    def last_event(self, actor: str) -> Event | None:
        """The newest event of one actor."""
        ...

    def record(
        self, kind: str, *puts: Record, removes: Iterable[Record] = (), data: Mapping[str, Any] | None = None
    ) -> None:
        """One event and the rows it changes, all of one stream."""
        ...
