"""Another process that uses a store. Run as a module it is that process: it gets ready, waits for a line, and acts."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.store.store import Store
    from handrail.store.unit import Unit

ROOT = Path(__file__).parent.parent.parent
SHARED = "wf_shared"
EACH = 10


class Elsewhere:
    """A process that is ready to act."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextlib.contextmanager
def elsewhere(*arguments: str) -> Iterator[Elsewhere]:
    """A process that has started and waits to be told to go."""
    command = [sys.executable, "-m", "tests.store.process", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            started = Elsewhere(process)
            assert started.answer() == "ready"
            yield started
        finally:
            process.kill()


def pour(store: Store, name: str, units: int) -> None:
    """Units of `EACH` events: some in a stream that all writers share, some in one of the writer's own."""
    from handrail.kernel.ledger import Actor
    from tests.store.records import lease

    def work(unit: Unit, number: int) -> None:
        for step in range(EACH):
            stream = SHARED if step % 2 else name
            counted = lease(f"{stream}.{name}", stream=stream, fence=number * EACH + step)
            unit.record("shared.poured" if step % 2 else "own.poured", counted, data={"by": name})

    for number in range(units):
        store.run(Actor(name, "test"), partial(work, number=number), writing=True)


def main(address: str, action: str, *names: str) -> None:
    from handrail.kernel.clock import FixedClock
    from handrail.kernel.errors import StoreRefused
    from handrail.kernel.ids import CountingIds
    from handrail.store.open_engine import open_engine
    from handrail.store.store import Store
    from tests.store.records import put, workflow

    print("ready", flush=True)
    sys.stdin.readline()
    try:
        engine = open_engine(address, project=ROOT, version="0.1.0", durable=False)
    except StoreRefused as refusal:
        print(f"refused: {refusal.message}", flush=True)
        return
    store = Store(engine, clock=FixedClock(), ids=CountingIds())
    if action == "put":
        for name in names:
            put(store, workflow(name))
    elif action == "pour":
        pour(store, names[0], int(names[1]))
    engine.close()
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
