"""What both engines are measured doing, as steps: prepared write sets committed, tasks claimed. Opens nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

from bench.store.slices import Prepare, Step
from bench.store.work import CHANGED, CLAIMED, POOL, Changes, Claims
from handrail.outside.world import RandomIds, SystemClock
from handrail.store.ports import Engine
from handrail.store.store import Store
from handrail.store.writes import WriteSet

FRESH_TTL_MS = 600_000
SHARED = "one_for_all"


def steps_of(kind: str, engine: Engine) -> Prepare:
    clock = SystemClock()
    store = Store(engine, clock=clock, ids=RandomIds(clock))
    return {
        "commit": lambda: _commits(store),
        "claim": lambda: _fresh_claims(store),
        "claim-again": lambda: _claims_again(store, "of_lane_{}".format),
        "claim-shared": lambda: _claims_again(store, lambda _: SHARED),
    }[kind]()


def prepared_changes(store: Store) -> Callable[[int, int], list[WriteSet]]:
    """From a lane and a number, that many write sets that follow one another on the lane's own stream."""
    known: dict[int, Changes] = {}

    def prepare(lane: int, count: int) -> list[WriteSet]:
        stream = f"changes_{lane}"
        if lane not in known:
            known[lane] = Changes(stream)
            store.engine.commit(known[lane].first())
        with store.engine.reading() as reader:
            known[lane].went_back_to(reader.head(stream))
        return known[lane].next(count)

    return prepare


def _commits(store: Store) -> Prepare:
    changes = prepared_changes(store)

    def prepare(lane: int, count: int) -> Step:
        waiting = iter(changes(lane, count))
        commit = store.engine.commit
        return lambda: commit(next(waiting))

    return prepare


def _fresh_claims(store: Store) -> Prepare:
    """Every claim takes a task that nobody has had."""
    known: dict[int, Claims] = {}

    def prepare(lane: int, count: int) -> Step:
        claims = known.setdefault(lane, Claims(store, f"of_lane_{lane}", lane, FRESH_TTL_MS))
        return partial(claims.claim_next, iter(claims.make(count)))

    return prepare


def _claims_again(store: Store, stream_of: Callable[[int], str]) -> Prepare:
    """Claims without end over a pool of tasks: every lease has run out by the time its turn comes again."""
    known: dict[int, tuple[Claims, itertools.cycle[str]]] = {}

    def prepare(lane: int, count: int) -> Step:
        if lane not in known:
            claims = Claims(store, stream_of(lane), lane, 0)
            known[lane] = (claims, itertools.cycle(claims.make(POOL)))
        claims, names = known[lane]
        return partial(claims.claim_next, names)

    return prepare


def problems_of(engine: Engine, acknowledged: int) -> list[str]:
    """What is wrong with a store that was measured: the engine's own check, ledger against tables, and every measured
    unit there once."""
    clock = SystemClock()
    store = Store(engine, clock=clock, ids=RandomIds(clock))
    found, position = 0, 0
    while page := store.feed(after=position):
        found += sum(event.kind in (CHANGED, CLAIMED) for event in page)
        position = page[-1].position
    missing = [f"{acknowledged} units were acknowledged, {found} are there"] if found != acknowledged else []
    return [*engine.check(), *store.verify(), *missing]
