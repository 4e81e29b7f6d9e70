"""`python -m bench.crew`: many agents that write and claim at once, in interleaved rounds. Prints tables, and what
of it was lost."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import apsw

from bench.crew import report
from bench.crew.claims import ClaimSection, claim_sections
from bench.crew.contestants import POSTGRES, Contestant
from bench.crew.delivery import delivery
from bench.crew.messages import FLOORS, OURS, PEERS, Crowd, measured, rounds
from bench.crew.packages import AGENT_MAIL_PIN, NODE_PINS
from bench.environments import NotInstalled, bench_home
from bench.started import Stuck
from bench.store.report import aims, table
from bench.store.server import Server, postgres

ROUNDS, QUICK_ROUNDS = 7, 2
SECONDS, QUICK_SECONDS = 3.0, 0.5
MOST = 2000
DELIVERIES, QUICK_DELIVERIES = 20, 4
QUICK_SCALE = 0.1
AGENTS, PROCESSES = 30, 10
SECTIONS = ("messages", "delivery", "claims-sqlite", "claims-postgres")


def arguments() -> argparse.Namespace:
    names = [peer.name for peer in PEERS]
    usual = ", ".join(peer.name for peer in PEERS if peer.takes_part_unasked)
    parser = argparse.ArgumentParser(prog="python -m bench.crew", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short bursts, 2 rounds: shows that it runs, not how fast")
    parser.add_argument("--only", action="append", metavar="SECTION", choices=SECTIONS, help=f"of {SECTIONS}")
    parser.add_argument("--rounds", type=int, help=f"rounds, in place of {ROUNDS}")
    parser.add_argument(
        "--peers",
        metavar="A,B",
        help=f'of {", ".join(names)}; "all" or "none"; usually {usual}: the others take gigabytes or minutes',
    )
    parser.add_argument("--agents", type=int, default=AGENTS, help=f"agents that write at once, in place of {AGENTS}")
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"servers they use, in place of {PROCESSES}")
    given = parser.parse_args()
    given.peers = _peers(parser, given.peers, names)
    return given


def _peers(parser: argparse.ArgumentParser, given: str | None, names: Sequence[str]) -> list[Contestant]:
    if given is None:
        return [peer for peer in PEERS if peer.takes_part_unasked]
    chosen = {"all": names, "none": []}.get(given, given.split(","))
    if unknown := set(chosen) - set(names):
        parser.error(f"no peer {', '.join(sorted(unknown))}: there are {', '.join(names)}")
    return [peer for peer in PEERS if peer.name in chosen]


def messages(options: argparse.Namespace, home: Path, server: Server | None) -> bool:
    seconds = QUICK_SECONDS if options.quick else SECONDS
    crowd = Crowd(options.agents, options.processes, seconds, MOST)
    contestants: list[Contestant] = [
        one for one in (*FLOORS, *OURS, *options.peers) if server is not None or POSTGRES not in one.name
    ]
    with _loads() as load:
        found = rounds(contestants, lambda one, place: measured(one, place, crowd), options.rounds, home, server)
    print(
        f"\n{crowd.agents} agents over {crowd.processes} processes, bursts of {seconds} s on a new store: "
        f"medians of {options.rounds} rounds. {load.told()}\n"
    )
    floors = {one.name: one.floor for one in contestants}
    print("\n".join(report.message_table(found, floors, OURS[0].name)), "\n")
    print("\n".join(report.message_notes(found, [one.name for one in OURS])), flush=True)
    return all(
        not (one.findings.lost or one.findings.doubled or one.findings.out_of_order or one.findings.problem)
        for ours in OURS
        for one in found.get(ours.name, ())
    )


def deliveries(options: argparse.Namespace, home: Path, server: Server | None) -> bool:
    count = QUICK_DELIVERIES if options.quick else DELIVERIES
    contestants = [one for one in OURS if server is not None or POSTGRES not in one.name]
    with _loads() as load:
        found = rounds(contestants, lambda one, place: delivery(one, place, count), options.rounds, home, server)
    print(f"\nDelivery to a waiting message_list: medians of {options.rounds} rounds. {load.told()}\n")
    print("\n".join(report.delivery_table(found)), flush=True)
    return len(found) == len(contestants)


def claims(name: str, options: argparse.Namespace, home: Path, server: Server | None) -> bool:
    if name == "claims-postgres" and server is None:
        return True
    contestants = claim_sections(QUICK_SCALE if options.quick else 1.0)[name]
    section = ClaimSection(name, contestants, home, server if name == "claims-postgres" else None)
    with _loads() as load:
        found = section.measure(options.rounds)
    problems = section.problems()
    print(f"\n{name}: medians of {options.rounds} rounds. {load.told()}\n")
    print("\n".join([*table(contestants, found), "", *aims(contestants, found), *problems]), flush=True)
    print("every claim is in its ledger once; ledgers and tables agree" if not problems else "NOT SOUND")
    return not problems


class _loads(contextlib.AbstractContextManager["_loads"]):  # noqa: N801 - reads as a statement
    """The machine's load around something."""

    def __enter__(self) -> _loads:
        self._before = self._after = os.getloadavg()[0]
        return self

    def __exit__(self, *_: object) -> None:
        self._after = os.getloadavg()[0]

    def told(self) -> str:
        return f"Load {self._before:.1f} before, {self._after:.1f} after."


def main() -> int:
    options = arguments()
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    home = bench_home("crew")
    shutil.rmtree(home / "run", ignore_errors=True)
    chosen = options.only or SECTIONS
    sound = True
    with contextlib.ExitStack() as ends:
        server = None
        try:
            server = ends.enter_context(postgres(home))
        except NotInstalled as missing:
            print(f"PostgreSQL: {missing}")
        versions = [f"{package}@{version}" for package, version in NODE_PINS.values()]
        print(
            f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, SQLite {apsw.sqlite_lib_version()}, "
            f"PostgreSQL {server.version() if server else 'none'}; pinned: {', '.join((*versions, AGENT_MAIL_PIN))}."
        )
        for name in chosen:
            try:
                if name == "messages":
                    sound &= messages(options, home, server)
                elif name == "delivery":
                    sound &= deliveries(options, home, server)
                else:
                    sound &= claims(name, options, home, server)
            except Stuck as stuck:
                print(f"{name}: {stuck}")
                sound = False
    shutil.rmtree(home / "run", ignore_errors=True)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
