"""Records and units of work as ports: what the store keeps, and how a handler reads and writes it. No store here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from handrail.kernel.ledger import EVERYTHING, Actor, Event, Only
from handrail.kernel.query import Query

PAGE = 1000
"""Events that are read at once where nobody says how many."""


class Record(Protocol):
    """A thing that is kept: it has an id and belongs to a stream."""

    @property
    def id(self) -> str: ...

    @property
    def stream(self) -> str: ...


RecordT = TypeVar("RecordT", bound=Record)


class KeyWrite(NamedTuple):
    """An idempotency key and the answer it stands for."""

    scope: str
    key: str
    request_hash: str
    response: bytes
    expires_ms: int
    now_ms: int
    """When it is kept: an older one that has expired by then makes room."""


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

    def events(self, stream: str, after: int = 0, limit: int = PAGE) -> list[Event]:
        """Events of one stream with a later number, in order. What this unit records is not among them."""
        ...

    def head_seq(self, stream: str) -> int:
        """The number of a stream's newest event, those this unit has recorded included: the next is one more."""
        ...

    def feed(self, after: int, limit: int, only: Only = EVERYTHING) -> list[Event]:
        """Events at a later position, in the order everybody sees them in. Nothing ever appears behind the last one:
        who goes on after its position misses none. What this unit records is not among them."""
        ...

    def newest(self, limit: int, only: Only = EVERYTHING) -> list[Event]:
        """The newest events that the feed holds, oldest of them first."""
        ...

    def position(self) -> int:
        """The position of the newest event that the feed holds."""
        ...

    def key_answer(self, scope: str, key: str) -> tuple[str, bytes] | None:
        """What an idempotency key already stands for: the hash of its request, and the answer."""
        ...

    def keep_answer(self, key: KeyWrite) -> None:
        """Keeps an answer under its key, together with everything else this unit writes."""
        ...

    def record(
        self,
        kind: str,
        *puts: Record,
        removes: Iterable[Record] = (),
        data: Mapping[str, Any] | None = None,
        actor: Actor | None = None,
    ) -> None:
        """One event and the rows it changes, all of one stream. `actor` is whose doing it is, where it is not the
        unit's."""
        ...
