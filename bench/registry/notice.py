"""How soon another process knows: from the call that writes to the moment the one that waits has what was written."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.crew.burst import percentile
from bench.store.crews import Worker
from bench.store.server import Server

SETTLE_S, SPREAD_S = 0.3, 0.5
"""Until who waits looks as seldom as it ever does; and then some, another each time, so that no rhythm of looking is
met or missed."""
WARM_UP = 2
FLOORS = {"ours-sqlite": "floor-sqlite", "ours-postgres": "floor-postgres"}
NAMES = {
    "floor-sqlite": "floor, SQLite: an apsw row, looked for without a pause",
    "ours-sqlite": "Store.wait and unit.feed, SQLite",
    "floor-postgres": "floor, PostgreSQL: a psycopg row with NOTIFY",
    "ours-postgres": "Store.wait and unit.feed, PostgreSQL",
}
HEADINGS = ("who", "written p50 ms", "known p50 ms", "p99 ms", "longest ms", "x floor", "writes")


class Heard(msgspec.Struct, frozen=True):
    """One write, from its begin: until it was written, and until the other process had it."""

    written_ms: float
    known_ms: float


class Pair:
    """Two processes on one store: one writes, one waits."""

    def __init__(self, kind: str, address: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._workers: list[Worker] = []
        for role in ("write", "hear"):
            command = [sys.executable, "-m", "bench.registry.hearing", role, kind, address]
            self._workers.append(Worker(command, folder / f"{role}.err"))
            self._workers[-1].hear()

    def once(self, settle_s: float) -> Heard:
        writer, hearer = self._workers
        hearer.tell({})
        hearer.hear()
        time.sleep(settle_s)
        writer.tell({})
        written, heard = writer.hear(), hearer.hear()
        began_ns = written["began_ns"]
        return Heard((written["done_ns"] - began_ns) / 1e6, (heard["heard_ns"] - began_ns) / 1e6)

    def end(self) -> None:
        for worker in self._workers:
            worker.end()


def notices(home: Path, server: Server | None, rounds: int) -> dict[str, list[Heard]]:
    """Of every kind the writes of all rounds, in rounds that go through the kinds in turn."""
    kinds = [kind for kind in NAMES if server is not None or "postgres" not in kind]
    pairs: dict[str, Pair] = {}
    try:
        for kind in kinds:
            folder = home / "run" / kind
            folder.mkdir(parents=True)
            address = str(folder / "bench.db")
            if server is not None and "postgres" in kind:
                address = server.schema(kind.replace("-", "_"))
            pairs[kind] = Pair(kind, address, folder)
        found: dict[str, list[Heard]] = {kind: [] for kind in kinds}
        for number in range(WARM_UP + rounds):
            for kind in kinds[number % len(kinds) :] + kinds[: number % len(kinds)]:
                heard = pairs[kind].once(SETTLE_S + SPREAD_S * (number * 0.618 % 1))
                if number >= WARM_UP:
                    found[kind].append(heard)
        return found
    finally:
        for pair in pairs.values():
            pair.end()


def table(found: dict[str, list[Heard]]) -> list[str]:
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" + "|--:" * (len(HEADINGS) - 1) + "|"]
    for kind, heard in found.items():
        known = [one.known_ms for one in heard]
        cells = [
            NAMES[kind],
            f"{statistics.median(one.written_ms for one in heard):.2f}",
            f"{statistics.median(known):.2f}",
            f"{percentile(known, 0.99):.1f}",
            f"{max(known):.1f}",
            f"{ratio(heard, found[FLOORS[kind]]):.1f}" if kind in FLOORS else "",
            str(len(heard)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def ratio(heard: Sequence[Heard], floor: Sequence[Heard]) -> float:
    """Times of the floor's: the median of the rounds' own ratios."""
    return statistics.median(one.known_ms / least.known_ms for one, least in zip(heard, floor, strict=True))
