"""What must be true of a store after any amount of writing and killing, given what its writers acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from handrail.kernel.ledger import Event
from handrail.kernel.records import PAGE
from handrail.store.queries import where
from handrail.store.seals import opened
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import UNDO, Store
from handrail.store.tables import BY_NAME
from tests.process.store_units import SCOPE, WallClock
from tests.process.store_writer import LifeIds

Ack = dict[str, Any]


def open_store(path: Path, *, busy_ms: int = 30_000) -> Store:
    return Store(SqliteEngine(path, version="0", busy_ms=busy_ms), clock=WallClock(), ids=LifeIds())


def audit(path: Path, acks: Iterable[Ack] = ()) -> list[str]:
    """Everything that is wrong with the store at `path`; empty when nothing is."""
    store = open_store(path)
    try:
        return list(problems(store, list(acks)))
    finally:
        store.engine.close()


def problems(store: Store, acks: list[Ack]) -> Iterator[str]:
    yield from (f"engine: {found}" for found in store.engine.check())
    yield from (f"verify: {found}" for found in store.verify())
    events = every_event(store)
    yield from _order(events)
    yield from _acknowledged(events, acks)
    yield from _whole(store, events)
    yield from _fences(events)
    yield from _fences_told(acks)
    yield from _undone(events, acks)
    yield from _rows(store, acks)


def every_event(store: Store) -> list[Event]:
    found: list[Event] = []
    while page := store.feed(after=len(found), limit=PAGE):
        found += page
    return found


def _order(events: list[Event]) -> Iterator[str]:
    """Positions are dense; every stream counts without gaps in the order of positions."""
    heads: Counter[str] = Counter()
    for place, event in enumerate(events, 1):
        if event.position != place:
            yield f"position {event.position} stands where {place} should"
            return
        heads[event.stream] += 1
        if event.seq != heads[event.stream]:
            yield f"{event.stream}: {event.seq} stands where {heads[event.stream]} should"
            return


def _acknowledged(events: list[Event], acks: list[Ack]) -> Iterator[str]:
    """None lost, none doubled."""
    there = Counter(event.data["unit"] for event in events if "unit" in event.data)
    told: dict[str, int] = {}
    for ack in acks:
        tag, count = ack["tag"], ack["events"]
        if told.setdefault(tag, count) != count:
            yield f"{tag}: acknowledged once as {told[tag]} events, once as {count}"
    for tag, count in told.items():
        if there[tag] < count:
            yield f"lost: {tag} was acknowledged with {count} events, {there[tag]} are there"
        elif there[tag] > count:
            yield f"doubled: {tag} was acknowledged with {count} events, {there[tag]} are there"


def _whole(store: Store, events: list[Event]) -> Iterator[str]:
    """Every unit is there with all its events and its key, acknowledged or not."""
    there = Counter(event.data["unit"] for event in events if "of" in event.data)
    wanted = {event.data["unit"]: event.data["of"] for event in events if "of" in event.data}
    with store.engine.reading() as reader:
        for tag, count in there.items():
            if count != wanted[tag]:
                yield f"half: {tag} has {count} events of {wanted[tag]}"
            known = reader.key_answer(SCOPE, tag, 0)
            if known is None or msgspec.json.decode(opened(known[1], SCOPE, tag, known[0]))["events"] != count:
                yield f"half: {tag} has {count} events, and its key says {known}"


def _fences(events: list[Event]) -> Iterator[str]:
    """Each fence of a lease has one winner, and only the winner writes under it."""
    held: dict[str, tuple[str, int]] = {}
    for event in events:
        if not event.kind.startswith("lease."):
            continue
        holder, fence = event.data["holder"], event.data["fence"]
        before = held.get(event.stream, ("", 0))
        if event.kind == "lease.acquired" and fence == before[1] + 1:
            held[event.stream] = (holder, fence)
        elif (holder, fence) != before:
            yield f"{event.stream} {event.seq}: {event.kind} by {holder} under {fence}, but {before} holds it"


def _fences_told(acks: list[Ack]) -> Iterator[str]:
    """No two holders were told that they won the same fence."""
    winners: dict[tuple[str, int], str] = {}
    for ack in acks:
        if ack.get("fence") is not None:
            winner = winners.setdefault((ack["lease"], ack["fence"]), ack["by"])
            if winner != ack["by"]:
                yield f"{ack['lease']}: fence {ack['fence']} was given to {winner} and to {ack['by']}"


def _undone(events: list[Event], acks: list[Ack]) -> Iterator[str]:
    """What was taken back was the last word that stood in its stream, and was taken back once."""
    undone: Counter[tuple[str, int]] = Counter()
    at = {(event.stream, event.seq): event for event in events}
    for event in events:
        if event.kind == UNDO:
            back = event.data["undone"]
            undone[event.stream, back] += 1
            between = [at[event.stream, seq] for seq in range(back + 1, event.seq)]
            gone = {one.data["undone"] for one in between if one.kind == UNDO}
            stands = any(one.kind != UNDO and one.seq not in gone for one in between)
            if stands or at[event.stream, back].actor != event.actor:
                yield f"{event.stream} {event.seq}: took back {back}, which was not the actor's last word"
    for ack in acks:
        if "undone" in ack and undone[tuple(ack["undone"])] != 1:
            yield f"lost: {ack['tag']} was told that {ack['undone']} was taken back"


def _rows(store: Store, acks: list[Ack]) -> Iterator[str]:
    with store.engine.reading() as reader:
        for ack in acks:
            if "row" in ack:
                table, key = ack["row"]
                if not reader.count(BY_NAME[table], where(id=key)):
                    yield f"lost: {ack['tag']} made {table} {key}, which is not there"
