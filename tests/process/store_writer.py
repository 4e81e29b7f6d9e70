"""A writer process: `python -m tests.process.store_writer FILE WORKER SEED FIRST LAST`. Runs its units one after the
other and acknowledges each with a line on stdout after the store has said it is written.

With ACK_FIRST=1 it acknowledges before the commit: the lie the harness has to find. DURABLE=1 syncs every commit;
CHECKPOINT_PAGES=N checkpoints often.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from handrail.kernel.errors import Refusal
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.store.writes import WriteSet
from tests.process.store_units import WallClock, Worker, prepare

ACK_FIRST = "ACK_FIRST"
DURABLE = "DURABLE"
CHECKPOINT_PAGES = "CHECKPOINT_PAGES"
REPEAT_EVERY = 7
"""Every so many units, one is run again, as after a lost reply."""


class LifeIds:
    """Ids that no other process makes."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{os.getpid()}_{self._count}"


def say(line: dict[str, Any]) -> None:
    """One line in one write, so that a kill leaves whole lines."""
    os.write(1, msgspec.json.encode(line) + b"\n")


class AckFirst(SqliteEngine):
    """An engine that lets the writer acknowledge too early."""

    number = 0

    def commit(self, writes: WriteSet) -> int:
        if writes.key is not None:
            events = sum(len(stream.events) for stream in writes.streams)
            say({"n": self.number, "tag": writes.key.key, "events": events})
        return super().commit(writes)


def run(engine: SqliteEngine, worker: Worker, numbers: range) -> float:
    """Runs the units; the longest a caller had to wait for one, in seconds."""
    longest = 0.0
    for number in numbers:
        if isinstance(engine, AckFirst):
            engine.number = number
        began = time.monotonic()
        answer = worker.run(number)
        longest = max(longest, time.monotonic() - began)
        if not isinstance(engine, AckFirst):
            say({"n": number, **answer})
        if number % REPEAT_EVERY == 0:
            again = worker.run(number)
            assert again == {key: value for key, value in answer.items() if key != "undone"}, f"{answer} became {again}"
    return longest


def main(path: str, name: str, seed: int, numbers: range) -> int:
    kind = AckFirst if os.environ.get(ACK_FIRST) == "1" else SqliteEngine
    try:
        engine = kind(Path(path), version="0", durable=os.environ.get(DURABLE) == "1")
        engine._writer.execute(
            f"PRAGMA wal_autocheckpoint = {int(os.environ.get(CHECKPOINT_PAGES, '4000'))}"
        ).fetchall()
        store = Store(engine, clock=WallClock(), ids=LifeIds())
        prepare(store)
        say({"ready": name})
        longest = run(engine, Worker(store, name, str(os.getpid()), seed), numbers)
        engine.close()
    except Refusal as refusal:
        say({"refused": refusal.as_dict()})
        return 1
    say({"longest_ms": round(longest * 1000, 1)})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), range(int(sys.argv[4]), int(sys.argv[5]) + 1)))
