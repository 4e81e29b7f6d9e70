"""Who claims, in how many processes, against whom; and whether every acknowledged claim is in the ledger once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from bench.crew.contestants import database_address
from bench.store.__main__ import Section
from bench.store.contestants import Contestant, Place
from bench.store.crews import Effort
from handrail import __version__
from handrail.kernel.ledger import Event
from handrail.outside.world import RandomIds, SystemClock
from handrail.store.open_engine import open_engine
from handrail.store.store import Store

CREW = 8
SECONDS = 1.5
MOST_ALONE, MOST_EACH = 4000, 600
"""Calls that one process, and each of several, could make in that time: more than any has made."""
WITHOUT_END = 1_000_000
SQLITE_AIM, POSTGRES_AIM = 0.7, 1.4
RAW = "raw psycopg, one row"
CLAIMED, COMPLETED = "task.claimed", "task.completed"


def _made(place: Place) -> str:
    """The address of a new store."""
    return str(place.folder / "bench.db") if place.server is None else place.server.database(place.name)


def _workers(kind: str, lanes: int) -> Callable[[Place], list[list[str]]]:
    def commands(place: Place) -> list[list[str]]:
        module = [sys.executable, "-m", "bench.crew.claiming", kind, _made(place)]
        return [[*module, str(lane), str(lanes)] for lane in range(lanes)]

    return commands


def _raw(place: Place) -> list[list[str]]:
    return [[sys.executable, "-m", "bench.store.on_postgres", "raw-row", _made(place), "0"]]


def _of(
    name: str, kind: str, lanes: int, scale: float, against: str | None = None, aim: float | None = None
) -> Contestant:
    most = int((MOST_ALONE if lanes == 1 else MOST_EACH) * scale)
    return Contestant(name, _workers(kind, lanes), Effort(most, SECONDS * scale), against, "per_s", aim)


def claim_sections(scale: float) -> dict[str, list[Contestant]]:
    """Everything, in the order it is told. `scale` shortens all slices alike."""
    claim, work = "1 process, claims", "1 process, claims and completions"
    spread, shared = f"{CREW} processes, claims, a workflow each", f"{CREW} processes, claims, one workflow"
    working = f"{CREW} processes, claims and completions, "
    return {
        "claims-sqlite": [
            _of(claim, "claim", 1, scale),
            _of(spread, "claim", CREW, scale, claim, SQLITE_AIM),
            _of(shared, "claim-shared", CREW, scale, claim, SQLITE_AIM),
            _of(work, "work", 1, scale),
            _of(f"{working}a workflow each", "work", CREW, scale, work, SQLITE_AIM),
            _of(f"{working}one workflow", "work-shared", CREW, scale, work, SQLITE_AIM),
        ],
        "claims-postgres": [
            Contestant(RAW, _raw, Effort(WITHOUT_END, SECONDS * scale), keeps=False),
            _of(claim, "claim", 1, scale, RAW),
            _of(spread, "claim", CREW, scale, RAW, POSTGRES_AIM),
            _of(shared, "claim-shared", CREW, scale, RAW),
            _of(f"{working}a workflow each", "work", CREW, scale, RAW, POSTGRES_AIM),
        ],
    }


class ClaimSection(Section):
    """The contestants of one engine, measured together and looked over afterwards."""

    def problems(self) -> list[str]:
        found = []
        for contestant in self._all:
            if contestant.keeps and contestant.name in self._crews:
                told = _problems(self._places[contestant.name], self._acknowledged[contestant.name])
                found += [f"{contestant.name}: {problem}" for problem in told]
        return found


def _problems(place: Place, acknowledged: int) -> list[str]:
    """What is wrong with a store: the engine's own check, ledger against tables, claims that are missing or doubled."""
    clock = SystemClock()
    engine = open_engine(_address(place), project=place.folder, version=__version__, durable=False)
    store = Store(engine, clock=clock, ids=RandomIds(clock))
    try:
        return [*engine.check(), *store.verify(), *claim_problems(_events(store), acknowledged)]
    finally:
        engine.close()


def _address(place: Place) -> str:
    if place.server is None:
        return str(place.folder / "bench.db")
    return database_address(place.server, place.name)


def _events(store: Store) -> Iterator[Event]:
    position = 0
    while page := store.feed(after=position):
        yield from page
        position = page[-1].position


def claim_problems(events: Iterable[Event], acknowledged: int) -> list[str]:
    """Every task claimed once, and as many claims and completions as were acknowledged."""
    claims: Counter[str] = Counter()
    completed = 0
    for event in events:
        if event.kind == CLAIMED:
            claims[next(change.key for change in event.changes if change.table == "lease")] += 1
        completed += event.kind == COMPLETED
    twice = [f"{task} was claimed {count} times" for task, count in claims.items() if count > 1]
    there = claims.total() + completed
    missing = [f"{acknowledged} calls were acknowledged, {there} are there"] if there != acknowledged else []
    return [*twice, *missing]
