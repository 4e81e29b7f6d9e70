"""`python -m bench.store`: measures every contestant in interleaved rounds, verifies the stores, prints the tables."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import apsw

from bench.environments import NotInstalled, bench_home
from bench.started import Stuck
from bench.store import report
from bench.store.contestants import PEER_PINS, Contestant, Place, sections
from bench.store.crews import Crew, Slice
from bench.store.server import PREFIX, Server, postgres
from bench.store.through_store import problems_of
from handrail.store.ports import Engine

ROUNDS, QUICK_ROUNDS = 9, 3
QUICK_SCALE = 0.2
POSTGRES = "postgres"


def arguments() -> argparse.Namespace:
    known = sections(1.0)
    names = [*known, *(contestant.name for section in known.values() for contestant in section)]
    parser = argparse.ArgumentParser(prog="python -m bench.store", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short slices, 3 rounds: shows that it runs, not how fast")
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=names, help=f"a section or step of {names}; may be repeated"
    )
    parser.add_argument("--rounds", type=int, help=f"rounds, in place of {ROUNDS}")
    return parser.parse_args()


class Section:
    """The contestants of one section, measured together."""

    def __init__(self, name: str, contestants: Sequence[Contestant], home: Path, server: Server | None) -> None:
        self._name = name
        self._places = {
            contestant.name: Place(home, home / "run" / f"{name}-{number}", server, f"{name}_{number}")
            for number, contestant in enumerate(contestants)
        }
        self._all = contestants
        self._crews: dict[str, Crew] = {}
        self._acknowledged: dict[str, int] = {}

    def measure(self, rounds: int) -> report.Results:
        """One round to warm up, then those that count. Every other round goes backwards: nobody always comes after
        the same one, whose pages may still be on their way to the disk."""
        try:
            self._start()
            running = [contestant for contestant in self._all if contestant.name in self._crews]
            results: report.Results = {contestant.name: [] for contestant in running}
            for number in range(rounds + 1):
                print(f"{self._name}: {f'round {number} of {rounds}' if number else 'warming up'} …", file=sys.stderr)
                shift = number % len(running)
                order = running[shift:] + running[:shift]
                for contestant in order if number % 2 else reversed(order):
                    done = self._slice(contestant)
                    if number:
                        results[contestant.name].append(done)
            return results
        finally:
            for crew in self._crews.values():
                crew.end()

    def _start(self) -> None:
        for contestant in self._all:
            place = self._places[contestant.name]
            place.folder.mkdir(parents=True)
            try:
                commands = contestant.commands(place)
            except NotInstalled as missing:
                print(f"{contestant.name}: {missing}")
                continue
            self._crews[contestant.name] = Crew(commands, place.folder / "stderr")

    def _slice(self, contestant: Contestant) -> Slice:
        try:
            done = self._crews[contestant.name].work(contestant.effort)
        except Stuck as stuck:
            raise Stuck(f"{contestant.name}: {stuck}") from stuck
        self._acknowledged[contestant.name] = self._acknowledged.get(contestant.name, 0) + done.count
        return done

    def problems(self) -> list[str]:
        """What the measured stores say of themselves afterwards."""
        found = []
        for contestant in self._all:
            if contestant.keeps and contestant.name in self._crews:
                engine = _opened(self._places[contestant.name])
                told = problems_of(engine, self._acknowledged[contestant.name])
                found += [f"{contestant.name}: {problem}" for problem in told]
                engine.close()
        return found


def _opened(place: Place) -> Engine:
    if place.server is not None:
        from psycopg.conninfo import make_conninfo

        from handrail.store.postgres import PostgresEngine

        options = f"-csearch_path={PREFIX}{place.name}"
        return PostgresEngine(make_conninfo(place.server.address, options=options), version="0")
    from handrail.store.sqlite import SqliteEngine

    return SqliteEngine(place.folder / "bench.db", version="0")


def run_section(name: str, contestants: Sequence[Contestant], home: Path, rounds: int) -> bool:
    """True when everything that was written is there and sound."""
    with contextlib.ExitStack() as ends:
        server = ends.enter_context(postgres(home)) if name == POSTGRES else None
        about = f"PostgreSQL {server.version()}" if server is not None else f"SQLite {apsw.sqlite_lib_version()}"
        load_before = os.getloadavg()[0]
        section = Section(name, contestants, home, server)
        results = section.measure(rounds)
        load_after = os.getloadavg()[0]
        problems = section.problems()
    print(f"\n{name}, {about}: medians of {rounds} rounds. Load {load_before:.1f} before, {load_after:.1f} after.\n")
    lines = [*report.table(contestants, results), "", *report.aims(contestants, results), *problems]
    print("\n".join(lines), flush=True)
    print("every measured unit is in its ledger once; ledgers and tables agree" if not problems else "NOT SOUND")
    return not problems


def main() -> int:
    options = arguments()
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    home = bench_home("store")
    shutil.rmtree(home / "run", ignore_errors=True)
    pins = ", ".join(pin for pins in PEER_PINS.values() for pin in pins)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, apsw {apsw.apsw_version()}, {pins}.")
    sound = True
    for name, contestants in sections(QUICK_SCALE if options.quick else 1.0).items():
        chosen = [
            contestant
            for contestant in contestants
            if not options.only or name in options.only or contestant.name in options.only
        ]
        if not chosen:
            continue
        try:
            sound &= run_section(name, chosen, home, rounds)
        except (NotInstalled, Stuck) as problem:
            print(f"{name}: {problem}")
            sound = sound and isinstance(problem, NotInstalled)
    shutil.rmtree(home / "run", ignore_errors=True)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
