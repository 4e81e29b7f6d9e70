"""`python -m bench.registry`: appending to the ledger, following it, and hearing of a write elsewhere, each beside the
least that could do it, in interleaved rounds. Prints tables, and whether all that was appended is there."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import apsw

from bench.environments import NotInstalled, bench_home
from bench.registry.contestants import POSTGRES, RegistrySection, events_of, sections
from bench.registry.notice import notices
from bench.registry.notice import table as notice_table
from bench.started import Stuck
from bench.store import report
from bench.store.contestants import Contestant
from bench.store.server import Server, postgres

ROUNDS, QUICK_ROUNDS = 9, 2
NOTICES, QUICK_NOTICES = 40, 3
QUICK_SCALE = 0.1
NOTICE = "notice"
HEADINGS = ("step", "CPU µs an event", "events per s", "against", "x rate", "p50 µs a step", "longest ms", "errors")


def arguments() -> argparse.Namespace:
    names = [*sections(1.0), NOTICE]
    parser = argparse.ArgumentParser(prog="python -m bench.registry", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short slices, 2 rounds: shows that it runs, not how fast")
    parser.add_argument("--only", action="append", metavar="SECTION", choices=names, help=f"of {names}")
    parser.add_argument("--rounds", type=int, help=f"rounds, in place of {ROUNDS}")
    return parser.parse_args()


def throughput(name: str, contestants: Sequence[Contestant], home: Path, server: Server | None, rounds: int) -> bool:
    load_before = os.getloadavg()[0]
    section = RegistrySection(name, contestants, home, server if POSTGRES in name else None)
    results = section.measure(rounds)
    load_after = os.getloadavg()[0]
    problems = section.problems()
    print(f"\n{name}: medians of {rounds} rounds. Load {load_before:.1f} before, {load_after:.1f} after.\n")
    print("\n".join([*table(contestants, results), "", *report.aims(contestants, results), *problems]), flush=True)
    return not problems


def table(contestants: Sequence[Contestant], results: report.Results) -> list[str]:
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" + "|--:" * (len(HEADINGS) - 1) + "|"]
    for contestant in contestants:
        slices, each = results[contestant.name], events_of(contestant)
        rate = report.ratio(contestant, results, "per_s")
        cells = [
            contestant.name,
            f"{statistics.median(one.cpu_us for one in slices) / each:.1f}",
            f"{statistics.median(one.per_s for one in slices) * each:.0f}",
            contestant.against or "",
            "" if rate is None else f"{rate:.2f}",
            f"{statistics.median(one.p50_us for one in slices):.0f}",
            f"{report.longest_s(slices) * 1000:.0f}",
            str(sum(report.errors_of(slices).values())),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> int:
    options = arguments()
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    home = bench_home("registry")
    shutil.rmtree(home / "run", ignore_errors=True)
    chosen = options.only or [*sections(1.0), NOTICE]
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, SQLite {apsw.sqlite_lib_version()}.")
    sound = True
    with contextlib.ExitStack() as ends:
        server: Server | None = None
        try:
            server = ends.enter_context(postgres(home))
            print(f"PostgreSQL {server.version()}.")
        except NotInstalled as missing:
            print(f"PostgreSQL: {missing}")
        try:
            for name, contestants in sections(QUICK_SCALE if options.quick else 1.0).items():
                if name in chosen and (server is not None or POSTGRES not in name):
                    sound &= throughput(name, contestants, home, server, rounds)
            if NOTICE in chosen:
                load = os.getloadavg()[0]
                found = notices(home, server, QUICK_NOTICES if options.quick else NOTICES)
                print(f"\nA write in another process. Load {load:.1f} before, {os.getloadavg()[0]:.1f} after.\n")
                print("\n".join(notice_table(found)), flush=True)
        except Stuck as stuck:
            print(stuck)
            sound = False
    shutil.rmtree(home / "run", ignore_errors=True)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
