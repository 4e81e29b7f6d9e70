"""Records and units of work as ports: what the store keeps, and how a handler reads and writes it. No store here.

What can be asked about the records of one kind: equality, membership, order, a page. The store decides how to answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from handrail.kernel.ledger import EVERYTHING, Actor, Event, Only

CHUNK = 500
"""The most values in one query to the store."""
LAST = "\U0010ffff"
"""Sorts after every other character: texts that start with a prefix lie between `prefix` and `prefix + LAST`."""


class Query(NamedTuple):
    """Which records, in which order. In `where`, a tuple means any of its members and None means no value; a column
    written as `name >` or `name <` means greater or less than the value."""

    where: tuple[tuple[str, Any], ...] = ()
    order: tuple[str, ...] = ("id",)
    """Columns; a leading `-` reverses one. The id is always the last, which makes the order total."""
    limit: int | None = None
    offset: int = 0


def where(**conditions: Any) -> Query:
    """A query by equality, ordered by id."""
    return Query(tuple(conditions.items()))


def chunks(values: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """The distinct values, split into chunks that fit one query each."""
    wanted = list(dict.fromkeys(values))
    for start in range(0, len(wanted), CHUNK):
        yield tuple(wanted[start : start + CHUNK])


PAGE = 1000
"""How many events are read at once unless the caller says otherwise."""


class Record(Protocol):
    """Something the store keeps: it has an id and belongs to a stream."""

    @property
    def id(self) -> str: ...

    @property
    def stream(self) -> str: ...


RecordT = TypeVar("RecordT", bound=Record)


class KeyWrite(NamedTuple):
    """An idempotency key and the answer stored under it."""

    scope: str
    key: str
    request_hash: str
    response: bytes
    expires_ms: int
    now_ms: int
    """When the answer is stored. An older entry under the same key is replaced if it has expired by then."""


class UnitOfWork(Protocol):
    """One handler's view of the store: it reads, and records events with the rows they change. All or nothing."""

    @property
    def actor(self) -> Actor:
        """Who is acting, and through which channel."""
        ...

    def now_ms(self) -> int: ...

    def new_id(self, prefix: str) -> str: ...

    def get(self, kind: type[RecordT], key: str) -> RecordT | None: ...

    def select(self, kind: type[RecordT], query: Query) -> list[RecordT]: ...

    def count(self, kind: type[RecordT], query: Query) -> int: ...

    def count_by(self, kind: type[RecordT], query: Query, columns: tuple[str, ...]) -> dict[tuple[Any, ...], int]:
        """How many records match, for each combination of values that occurs in these columns."""
        ...

    def last_event(self, actor: str) -> Event | None:
        """The newest event of one actor."""
        ...

    def events(self, stream: str, after: int = 0, limit: int = PAGE) -> list[Event]:
        """The events of one stream after sequence number `after`, in order. Excludes what this unit records."""
        ...

    def head_seq(self, stream: str) -> int:
        """The sequence number of a stream's newest event, counting those this unit has recorded. The next event gets
        the number after it."""
        ...

    def feed(self, after: int, limit: int, only: Only = EVERYTHING) -> list[Event]:
        """Events after a position, in the one order all readers see. No event ever appears before one already read, so
        a reader that continues from its last position misses nothing. Excludes what this unit records."""
        ...

    def newest(self, limit: int, only: Only = EVERYTHING) -> list[Event]:
        """The newest events in the feed, in feed order. Those of a single stream are as new as its rows, so they may be
        ahead of `position`."""
        ...

    def position(self) -> int:
        """The position of the newest event in the feed."""
        ...

    def key_answer(self, scope: str, key: str) -> tuple[str, bytes] | None:
        """The request hash and the answer stored under an idempotency key, if any."""
        ...

    def keep_answer(self, key: KeyWrite) -> None:
        """Stores an answer under its key, in the same transaction as everything else this unit writes."""
        ...

    def vouch(self, what: str) -> str:
        """This machine's word for a text in this store, to be kept beside it; empty where none is needed."""
        ...

    def is_vouched(self, what: str, word: str) -> bool:
        """Whether this is this machine's word for that text in this store, or none is needed."""
        ...

    def record(
        self,
        kind: str,
        *puts: Record,
        removes: Iterable[Record] = (),
        data: Mapping[str, Any] | None = None,
        actor: Actor | None = None,
    ) -> None:
        """Records one event and the rows it changes, all in one stream. `actor` overrides the unit's own."""
        ...


def found_by(
    unit: UnitOfWork, kind: type[RecordT], column: str, keys: Iterable[str], *, more: tuple[tuple[str, Any], ...] = ()
) -> Iterator[RecordT]:
    """Every record whose column holds one of these values, asked for a few hundred values at a time."""
    for chunk in chunks(keys):
        yield from unit.select(kind, Query(((column, chunk), *more)))
