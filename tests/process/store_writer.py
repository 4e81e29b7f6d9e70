"""A writer process: `python -m tests.process.store_writer FILE WORKER SEED FIRST LAST`. Runs its units one after the
other and acknowledges each with a line on stdout after the store has said it is written.

With ACK_FIRST=1 it acknowledges before the commit: the lie the harness has to find.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from handrail.kernel.errors import Refusal
from handrail.store.reading import Engine, EngineInfo, Reader
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.store.writes import WriteSet
from tests.process.store_units import WallClock, Worker, prepare

ACK_FIRST = "ACK_FIRST"


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


class AckFirst:
    """An engine that lets the writer acknowledge too early."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.before: Callable[[WriteSet], None] = lambda _: None

    def commit(self, writes: WriteSet) -> int:
        self.before(writes)
        return self._engine.commit(writes)

    def info(self) -> EngineInfo:
        return self._engine.info()

    def reading(self) -> AbstractContextManager[Reader]:
        return self._engine.reading()

    def alone(self) -> AbstractContextManager[None]:
        return self._engine.alone()

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        return self._engine.wait(position, timeout_s, cancelled)

    def check(self) -> list[str]:
        return self._engine.check()

    def backup(self, target: str) -> None:
        self._engine.backup(target)

    def close(self) -> None:
        self._engine.close()


def acknowledged_early(store: Store, engine: AckFirst, worker: Worker, numbers: range) -> Iterator[float]:
    del store
    for number in numbers:

        def lie(writes: WriteSet, number: int = number) -> None:
            tag = writes.key.key if writes.key is not None else ""
            if tag:
                say({"n": number, "tag": tag, "events": sum(len(stream.events) for stream in writes.streams)})

        engine.before = lie
        began = time.monotonic()
        worker.run(number)
        yield time.monotonic() - began


def acknowledged(worker: Worker, numbers: range) -> Iterator[float]:
    for number in numbers:
        began = time.monotonic()
        answer = worker.run(number)
        took = time.monotonic() - began
        say({"n": number, **answer})
        yield took


def main(path: str, name: str, seed: int, numbers: range) -> int:
    try:
        engine = SqliteEngine(Path(path), version="0")
        early = AckFirst(engine) if os.environ.get(ACK_FIRST) == "1" else None
        store = Store(early or engine, clock=WallClock(), ids=LifeIds())
        prepare(store)
        worker = Worker(store, name, str(os.getpid()), seed)
        say({"ready": name})
        waits = (
            acknowledged(worker, numbers)
            if early is None
            else acknowledged_early(store, early, worker, numbers)
        )
        longest = max(waits, default=0.0)
        engine.close()
    except Refusal as refusal:
        say({"refused": refusal.as_dict()})
        return 1
    say({"longest_ms": round(longest * 1000, 1)})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), range(int(sys.argv[4]), int(sys.argv[5]) + 1)))
