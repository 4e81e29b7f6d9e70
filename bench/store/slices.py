"""The worker's side of a measurement: told over stdin to prepare and to go, it answers with one line each on stdout.

Standard library only: the peers run it in environments of their own. What is done is the caller's; here it is timed.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

Step = Callable[[], object]
Prepare = Callable[[int, int], Step]
"""From a lane and a number of steps, one step to be called so often. Lanes run beside each other: they share no
stream, unless that is what is measured."""


LOG_BYTES = 24_000_000


def grow_log(execute: Callable[[str], Any]) -> None:
    """Brings SQLite's write-ahead log to the size it has in long use, and back to its beginning: to append to a growing
    file costs the disk more than to write over it, and who commits little would pay that all through a short run."""
    execute("CREATE TABLE grown (bytes BLOB)")
    execute(f"INSERT INTO grown VALUES (zeroblob({LOG_BYTES}))")
    execute("DROP TABLE grown")
    execute("PRAGMA wal_checkpoint(RESTART)")


class _Lane:
    """One thread's steps and how long each took."""

    def __init__(self, step: Step, count: int) -> None:
        self._step = step
        self._count = count
        self.latencies_ns: list[int] = []
        self.errors: Counter[str] = Counter()

    def run(self, deadline_ns: int) -> None:
        step, noted, now = self._step, self.latencies_ns.append, time.perf_counter_ns
        for _ in range(self._count):
            began = now()
            if began > deadline_ns:
                return
            try:
                step()
            except Exception as error:
                self.errors[f"{type(error).__name__}: {error}"] += 1
            else:
                noted(now() - began)


def serve(prepare: Prepare, *, lane: int = 0) -> None:
    """Answers orders until stdin ends. The first lane of this worker is `lane`."""
    lanes: list[_Lane] = []
    say({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        if "prepare" in order:
            threads, count = order["threads"], order["prepare"]
            lanes = [_Lane(prepare(lane + number, count), count) for number in range(threads)]
            say({"ready": True})
        else:
            say(_timed(lanes, order["start_ns"], order["seconds"]))


def _timed(lanes: list[_Lane], start_ns: int, seconds: float) -> dict[str, Any]:
    while time.perf_counter_ns() < start_ns:  # all workers of a crew begin at one moment
        time.sleep(max(0.0, (start_ns - time.perf_counter_ns()) / 1e9))
    cpu_ns, began_ns = time.process_time_ns(), time.perf_counter_ns()
    deadline_ns = began_ns + int(seconds * 1e9)
    if len(lanes) == 1:
        lanes[0].run(deadline_ns)
    else:
        threads = [threading.Thread(target=lane.run, args=(deadline_ns,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wall_ns, cpu_ns = time.perf_counter_ns() - began_ns, time.process_time_ns() - cpu_ns
    latencies = [latency for lane in lanes for latency in lane.latencies_ns]
    errors: Counter[str] = sum((lane.errors for lane in lanes), Counter())
    return {
        "count": len(latencies),
        "cpu_us": cpu_ns / 1e3,
        "wall_s": wall_ns / 1e9,
        "p50_us": statistics.median(latencies) / 1e3 if latencies else 0.0,
        "longest_s": max(latencies, default=0) / 1e9,
        "errors": dict(errors),
    }


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
