"""The bench's side of a measurement: worker processes, started once and asked for a slice of work in every round."""

from __future__ import annotations

import select
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.started import Piped, Stuck

DEADLINE_S = 120.0
HEAD_START_NS = 20_000_000
WITHOUT_END_S = 3600.0


class Effort(msgspec.Struct, frozen=True):
    """How much a crew does in one slice: so many steps each thread, or so long, whichever ends first."""

    steps: int
    seconds: float = WITHOUT_END_S
    threads: int = 1


class Slice(msgspec.Struct, frozen=True):
    """What one crew did in one round."""

    count: int
    per_s: float
    cpu_us: float
    """Of all its processes, per step."""
    p50_us: float
    longest_s: float
    fairness: float
    """Steps of the slowest worker over those of the fastest."""
    errors: dict[str, int]


class Worker(Piped):
    """One process that does what it is told and says what it took."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        super().__init__(command, log.parent, {}, log)

    def tell(self, order: dict[str, Any]) -> None:
        self._in.write(msgspec.json.encode(order) + b"\n")
        self._in.flush()

    def hear(self) -> dict[str, Any]:
        if not select.select([self._out], [], [], DEADLINE_S)[0]:
            raise Stuck(f"no answer within {DEADLINE_S:.0f} s{self.last_words()}")
        line = self._out.readline()
        if not line:
            raise Stuck(f"the worker ended{self.last_words()}")
        said: dict[str, Any] = msgspec.json.decode(line)
        return said


class Crew:
    """The workers of one contestant."""

    def __init__(self, commands: Sequence[Sequence[str]], log: Path) -> None:
        self._workers: list[Worker] = []
        try:
            for command in commands:  # one after the other: the first makes the tables
                self._workers.append(Worker(command, log))
                self._workers[-1].hear()
        except BaseException:
            self.end()
            raise

    def work(self, effort: Effort) -> Slice:
        for worker in self._workers:
            worker.tell({"prepare": effort.steps, "threads": effort.threads})
            worker.hear()
        order = {"start_ns": time.perf_counter_ns() + HEAD_START_NS, "seconds": effort.seconds}
        for worker in self._workers:
            worker.tell(order)
        return _together([worker.hear() for worker in self._workers])

    def end(self) -> None:
        for worker in self._workers:
            worker.end()


def _together(said: list[dict[str, Any]]) -> Slice:
    counts = [one["count"] for one in said]
    total = max(1, sum(counts))
    errors: Counter[str] = sum((Counter(one["errors"]) for one in said), Counter())
    return Slice(
        count=sum(counts),
        per_s=sum(one["count"] / one["wall_s"] for one in said),
        cpu_us=sum(one["cpu_us"] for one in said) / total,
        p50_us=statistics.median(one["p50_us"] for one in said),
        longest_s=max(one["longest_s"] for one in said),
        fairness=min(counts) / max(1, *counts),
        errors=dict(errors),
    )
