"""Processes around a move. `python -m tests.process.store_mover move SOURCE TARGET POINT` moves a store and kills
itself with -9 at a point; `… write ADDRESS NAME SEED` writes, acknowledging every unit, until it is refused."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from handrail.kernel.errors import Refusal, StoreBusy
from handrail.store import postgres, postgres_copy, sqlite_copy, store_copy, store_move
from handrail.store.open_engine import open_engine
from handrail.store.ports import LastingEngine
from handrail.store.store import Store
from tests.process.store_units import WallClock, Worker, prepare
from tests.process.store_writer import LifeIds, say

POINTS = ("begun", "copying", "half", "verifying", "before the mark", "in the mark", "after the mark")
"""Where a mover can be killed, in the order it comes past them."""
DONE = POINTS[POINTS.index("before the mark") :]
"""From here on the new store is complete."""
HERE = Path("/")


def opened(address: str) -> Store:
    engine = open_engine(address, project=HERE, version="0", durable=False)
    return Store(engine, clock=WallClock(), ids=LifeIds())


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def armed(point: str) -> None:
    """Sees to it that this process dies when it comes to a point."""
    counting, copied = store_copy.differences, store_copy.Copying.rows
    seen = [0]

    def rows(self: store_copy.Copying, table: store_copy.TableCopy) -> Any:
        for row in copied(self, table):
            seen[0] += 1
            if (point == "copying" and seen[0] == 1) or (point == "half" and table.name == "task"):
                die()
            yield row

    def differences(*given: Any) -> list[str]:
        if point in ("verifying", "copying", "half"):  # the latter for files that are copied in one go
            die()
        return counting(*given)

    store_copy.Copying.rows = rows  # type: ignore[method-assign]
    for module in (store_move, postgres):
        module.differences = differences  # type: ignore[attr-defined]
    for kind in (sqlite_copy.SqliteStill, postgres_copy.PostgresStill):
        _arm_mark(kind, point)


def _arm_mark(kind: Any, point: str) -> None:
    marking, beginning = kind.mark, kind.__init__

    def begin(self: Any, *given: Any) -> None:
        beginning(self, *given)
        if point == "begun":
            die()

    def mark(self: Any, moved_to: str) -> None:
        if point == "before the mark":
            die()
        if point == "in the mark":
            _die_at_commit(self)
        marking(self, moved_to)
        if point == "after the mark":
            die()

    kind.mark, kind.__init__ = mark, begin


def _die_at_commit(still: Any) -> None:
    """Everything of the mark is written but its last word."""
    if isinstance(still, sqlite_copy.SqliteStill):
        real = still._connection

        class Dying:
            def execute(self, text: str, *given: Any) -> Any:
                return die() if text == "COMMIT" else real.execute(text, *given)

        still._connection = Dying()  # type: ignore[assignment]
        return
    session = still.session
    doing = session.do
    session.do = lambda text, *given: die() if text == "COMMIT" else doing(text, *given)


def move(source: str, target: str, point: str) -> int:
    engine: LastingEngine = open_engine(source, project=HERE, version="0", durable=False)
    if point in POINTS:
        armed(point)
    say({"ready": "mover"})
    try:
        done = store_move.move(engine, target, project=HERE, version="0")
    except Refusal as refusal:
        say({"refused": refusal.as_dict()})
        return 1
    say({"moved": done.events})
    return 0


def write(address: str, name: str, seed: int) -> int:
    try:
        store = opened(address)
        prepare(store)
        say({"ready": name})
        worker = Worker(store, name, str(os.getpid()), seed)
        number = 0
        while True:
            number += 1
            try:
                say({"n": number, **worker.run(number)})
            except StoreBusy:  # a long move: nothing was written, and it may be tried again
                number -= 1
    except Refusal as refusal:
        say({"refused": refusal.as_dict()})
        return 1


if __name__ == "__main__":
    role, *given = sys.argv[1:]
    sys.exit(move(*given) if role == "move" else write(given[0], given[1], int(given[2])))
