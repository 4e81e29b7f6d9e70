"""`python -m bench.graphs`: differences, patches and commits of graphs of two sizes, each beside the least that could
do it, in interleaved rounds. Prints tables, and whether ledger and tables agree afterwards."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import apsw

from bench.environments import NotInstalled, bench_home
from bench.graphs.steps import Committing, Measured, in_memory
from bench.plan.filling import fill
from bench.store.server import Server, postgres
from handrail import __version__
from handrail.outside.world import RandomIds, SystemClock
from handrail.store.ports import Engine
from handrail.store.postgres import PostgresEngine
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.wiring import LazyLedger, WorkPlace, assemble, settings_at

SIZES, QUICK_SIZES = (100, 10_000), (100, 500)
ROUNDS, QUICK_ROUNDS = 9, 2
SECTIONS = ("memory", "sqlite", "postgres")
ENABLED = ("tx", "diff-patch", "bulk")
LONGEST_S = 0.3
"""How long one step is repeated in a round, at least once."""
Times = dict[str, list[float]]
"""For each row, the median of every round, in milliseconds."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.graphs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small graphs, 2 rounds: shows that it runs, not how fast")
    parser.add_argument("--only", action="append", metavar="SECTION", choices=SECTIONS, help=f"of {SECTIONS}")
    parser.add_argument("--rounds", type=int, help=f"rounds, in place of {ROUNDS}")
    return parser.parse_args()


def measure(steps: Sequence[Measured], rounds: int) -> Times:
    """Interleaved rounds; the first warms up and is not counted."""
    times: Times = {one.name: [] for one in steps}
    for number in range(rounds + 1):
        turn = number % len(steps)
        for one in (*steps[turn:], *steps[:turn]):
            found = _repeated(one)
            if number:
                times[one.name].append(found)
    return times


def _repeated(one: Measured) -> float:
    taken: list[float] = []
    while sum(taken) < LONGEST_S and len(taken) < 50:
        began = time.perf_counter()
        one.step()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


def table(sizes: Sequence[int], steps: Sequence[Measured], found: Sequence[Times]) -> list[str]:
    """A line for each step: medians, and x, the median of the rounds' own ratios to the floor."""
    heads = " | ".join(f"{size:,} nodes, ms | x" for size in sizes)
    lines = [f"| step | against | {heads} |", "|---|---|" + "--:|--:|" * len(sizes)]
    for one in steps:
        cells = [one.name, one.against or ""]
        for times in found:
            own = times.get(one.name)
            cells += ["", ""] if own is None else [f"{statistics.median(own):.3f}", ratio(one, times)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def ratio(one: Measured, times: Times) -> str:
    if one.against is None:
        return ""
    pairs = zip(times[one.name], times[one.against], strict=True)
    return f"{statistics.median(own / floor for own, floor in pairs):.1f}"


def opened(section: str, folder: Path, server: Server | None, size: int) -> Engine:
    if section == "sqlite":
        return SqliteEngine(folder / "handrail.db", version=__version__)
    assert server is not None
    return PostgresEngine(server.schema(f"graphs_{size}"), version=__version__)


def _ledger(store: Store) -> LazyLedger:
    return LazyLedger(lambda: store)


def on_store(section: str, home: Path, server: Server | None, sizes: Sequence[int], rounds: int) -> list[str]:
    """Measures one kind of store. Returns what is wrong with what it left behind."""
    found: list[Times] = []
    steps: list[Measured] = []
    problems: list[str] = []
    for size in sizes:
        folder = home / "run" / f"{section}-{size}"
        folder.mkdir(parents=True)
        with contextlib.closing(opened(section, folder, server, size)) as engine:
            fill(engine, size, 3 * size)
            clock = SystemClock()
            store = Store(engine, clock=clock, ids=RandomIds(clock))
            place = WorkPlace(project=folder, home=home, environ={})
            given = {"toolsets": "workflow,task", "enable": ENABLED}
            handrail = assemble(place, settings_at(place, given), ledger=_ledger(store))
            steps = Committing(handrail, store, size).steps()
            found.append(measure(steps, rounds))
            problems += [f"{section}, {size:,} nodes: {problem}" for problem in engine.check()]
    print("\n".join(table(sizes, steps, found)), flush=True)
    return problems


def main() -> int:
    options = arguments()
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    sizes = QUICK_SIZES if options.quick else SIZES
    chosen = options.only or SECTIONS
    home = bench_home("graphs")
    shutil.rmtree(home / "run", ignore_errors=True)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, SQLite {apsw.sqlite_lib_version()}.")
    problems: list[str] = []
    with contextlib.ExitStack() as ends:
        server: Server | None = None
        if "postgres" in chosen:
            try:
                server = ends.enter_context(postgres(home))
                print(f"PostgreSQL {server.version()}.")
            except NotInstalled as missing:
                print(f"PostgreSQL: {missing}")
        for section in chosen:
            load = os.getloadavg()[0]
            print(f"\n{section}: medians of {rounds} rounds. Load {load:.1f} before.\n")
            if section == "memory":
                both = [in_memory(size) for size in sizes]
                print("\n".join(table(sizes, both[0], [measure(steps, rounds) for steps in both])), flush=True)
            elif section == "sqlite" or server is not None:
                problems += on_store(section, home, server, sizes, rounds)
            print(f"\nLoad {os.getloadavg()[0]:.1f} after.")
    print("\n".join(problems))
    shutil.rmtree(home / "run", ignore_errors=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
