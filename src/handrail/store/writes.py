"""What one unit wants written: events with their rows, checked against the streams it read. Engine-free.

Everything that takes time (JSON, hashing) is done here, before any lock is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ledger import Change, Event, NewEvent
from handrail.kernel.records import KeyWrite as KeyWrite  # noqa: PLC0414 - it is a write like the others here

NO_HASH = ""
_BODY = msgspec.json.Decoder(tuple[dict[str, Any], msgspec.Raw])
_CHANGES = msgspec.json.Decoder(tuple[Change, ...])
_WHOLE = msgspec.json.Decoder(tuple[dict[str, Any], tuple[Change, ...]])


class Conflict(Exception):  # noqa: N818 - the ordinary outcome of two writers; the loser runs again
    """Somebody else wrote to a stream this unit had read."""


class Head(NamedTuple):
    """Where a stream stood: its last sequence number and the hash there."""

    seq: int
    hash: str


NEW_STREAM = Head(0, NO_HASH)


class StoredEvent(NamedTuple):
    """An event ready to be inserted; its place in the global order is assigned by the insert."""

    stream: str
    seq: int
    kind: str
    actor: str
    channel: str
    at_ms: int
    body: bytes
    hash: str


class StreamWrite(NamedTuple):
    """One stream's new events, valid only if its head is still where the unit saw it."""

    stream: str
    expected: Head
    events: tuple[StoredEvent, ...]

    @property
    def head(self) -> Head:
        last = self.events[-1]
        return Head(last.seq, last.hash)


class RowWrite(NamedTuple):
    """A row to put, or, without values, to remove."""

    table: str
    key: str
    values: tuple[Any, ...] | None
    """Every column, not only the changed ones."""
    changed: tuple[str, ...] | None = None
    """The columns that differ from the existing row; None if there is no such row or nobody compared."""


class WriteSet(NamedTuple):
    """Everything one unit changes, all or nothing."""

    streams: tuple[StreamWrite, ...]
    rows: tuple[RowWrite, ...]
    key: KeyWrite | None = None


class PendingWrites:
    """A write set on its way into a transaction."""

    __slots__ = ("done", "error", "position", "writes")

    def __init__(self, writes: WriteSet) -> None:
        self.writes = writes
        self.done = False
        self.position = 0
        self.error: BaseException | None = None


def chained(stream: str, expected: Head, events: Sequence[NewEvent]) -> StreamWrite:
    """The events in sequence, each hash covering the one before, so that later tampering shows."""
    seq, previous = expected
    stored: list[StoredEvent] = []
    for event in events:
        seq += 1
        body = encode_body(event)
        previous = link(previous, stream, seq, event, body)
        stored.append(StoredEvent(stream, seq, event.kind, event.actor, event.channel, event.at_ms, body, previous))
    return StreamWrite(stream, expected, tuple(stored))


def link(previous: str, stream: str, seq: int, event: NewEvent | Event | StoredEvent, body: bytes) -> str:
    """The hash of one event, over everything that must not change."""
    envelope = f"{previous}\n{stream}\n{seq}\n{event.kind}\n{event.actor}\n{event.channel}\n{event.at_ms}\n".encode()
    return hashlib.blake2b(envelope + body, digest_size=16).hexdigest()


def encode_body(event: NewEvent | Event) -> bytes:
    return msgspec.json.encode([event.data, tuple(event.changes)])


def changes_in(body: bytes) -> tuple[Change, ...]:
    """The changes in an event's body, all of which is decoded. Raises msgspec's errors."""
    return _WHOLE.decode(body)[1]


class KeptChanges(msgspec.Struct, gc=False, eq=False):
    """An event's changes as stored in the ledger, decoded on first use; otherwise behaves like a tuple of them."""

    text: msgspec.Raw
    stream: str
    seq: int
    found: tuple[Change, ...] | None = None

    def all(self) -> tuple[Change, ...]:
        """The decoded changes. Raises StoreUnusable if they cannot be read."""
        if self.found is None:
            try:
                self.found = _CHANGES.decode(self.text)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise _damaged_event(self.stream, self.seq) from None
        return self.found

    def __iter__(self) -> Iterator[Change]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())

    def __getitem__(self, place: Any) -> Any:
        return self.all()[place]

    def __eq__(self, other: object) -> bool:
        return self.all() == (other.all() if isinstance(other, KeptChanges) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.all())


Sequence.register(KeptChanges)


def decode_events(rows: Iterable[Sequence[Any]]) -> list[Event]:
    """The events of ledger rows: stream, seq, position, kind, actor, channel, at_ms, body, hash. One loop over
    ready-made types, because following the ledger spends most of its time here."""
    decoded, made, found = _BODY.decode, tuple.__new__, []
    stream, seq = "", 0
    try:
        for stream, seq, position, kind, actor, channel, at_ms, body, digest in rows:
            data, text = decoded(body)
            changes = KeptChanges(text, stream, seq)
            found.append(made(Event, (stream, seq, position, kind, actor, channel, at_ms, data, changes, digest)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _damaged_event(stream, seq) from None
    return found


def _damaged_event(stream: str, seq: int) -> StoreUnusable:
    return StoreUnusable(
        f"{stream}: event {seq} cannot be read back", hint="`handrail db verify` lists what is damaged", seq=seq
    )
