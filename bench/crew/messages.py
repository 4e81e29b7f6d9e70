"""Rounds of messages: every contestant's servers started anew on an empty store, written to at once, looked over."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from bench.crew.agent_mail import AgentMail
from bench.crew.burst import burst, percentile
from bench.crew.contestants import (
    POSTGRES,
    SQLITE,
    Backlog,
    Contestant,
    Findings,
    Floor,
    Place,
    ServerMemory,
    Shrimp,
    TaskMaster,
)
from bench.crew.ours import HandrailCrew
from bench.environments import NotInstalled
from bench.started import Stuck
from bench.store.server import Server

OURS: tuple[HandrailCrew, ...] = (HandrailCrew(SQLITE), HandrailCrew(POSTGRES))
FLOORS: tuple[Contestant, ...] = (Floor(SQLITE), Floor(POSTGRES))
PEERS: tuple[Contestant, ...] = (ServerMemory(), Shrimp(), Backlog(), TaskMaster(), AgentMail())

ContestantT = TypeVar("ContestantT", bound=Contestant)
MeasureT = TypeVar("MeasureT")


class Crowd(msgspec.Struct, frozen=True):
    """How many write, over how many processes, for how long or how often each."""

    agents: int
    processes: int
    seconds: float
    most: int


class Round(msgspec.Struct, frozen=True):
    """What one contestant did in one round."""

    written: int
    per_s: float
    p50_ms: float
    p99_ms: float
    refused: Counter[str]
    findings: Findings


def measured(contestant: Contestant, place: Place, crowd: Crowd) -> Round:
    """One burst on a new store."""
    lines = contestant.start(place, crowd.processes, crowd.agents)
    try:
        scripts = contestant.scripts(place, lines, crowd.agents)
        done = burst(lines, scripts, contestant.is_acknowledged, seconds=crowd.seconds, most=crowd.most)
        findings = contestant.findings(place, lines, done)
    finally:
        for line in lines:
            line.end()
    took = [written.took_ms for written in done.written]
    p50_ms, p99_ms = percentile(took, 0.5), percentile(took, 0.99)
    return Round(len(done.written), done.per_s, p50_ms, p99_ms, done.refused, findings)


def rounds(
    contestants: Sequence[ContestantT],
    measure: Callable[[ContestantT, Place], MeasureT],
    count: int,
    home: Path,
    server: Server | None,
) -> dict[str, list[MeasureT]]:
    """Interleaved: each round has every contestant once, in an order that rotates, each on a store of its own. Who
    cannot be installed or does not answer is left out from then on, with a line that says so."""
    left = list(contestants)
    results: dict[str, list[MeasureT]] = {contestant.name: [] for contestant in contestants}
    for number in range(count):
        shift = number % len(left) if left else 0
        for contestant in [*left[shift:], *left[:shift]]:
            print(f"round {number + 1} of {count}: {contestant.name} …", file=sys.stderr)
            name = f"crew_{number}_{contestants.index(contestant)}"
            place = Place(home / "run" / name, server, name)
            place.folder.mkdir(parents=True)
            try:
                results[contestant.name].append(measure(contestant, place))
            except (NotInstalled, Stuck) as problem:
                print(f"{contestant.name}: {problem}", flush=True)
                left.remove(contestant)
            finally:
                shutil.rmtree(place.folder, ignore_errors=True)
    return {name: measures for name, measures in results.items() if measures}
