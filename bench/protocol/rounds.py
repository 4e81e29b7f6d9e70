"""Interleaved rounds over the contestants of one transport. Speaks no protocol, prints no table.

A round starts each server once, in an order that rotates from round to round, so that whatever else the machine does
falls on all of them alike.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from bench.environments import NotInstalled
from bench.protocol.contestants import Contestant
from bench.protocol.processes import Launch
from bench.started import surroundings

Measure = TypeVar("Measure")
Results = dict[str, list[Measure]]
"""Every contestant's measures, one for each round, in the order of the contestants."""


class Transport(msgspec.Struct, Generic[Measure], frozen=True):
    """How the servers of one transport are proven equal and measured."""

    name: str
    prove: Callable[[Contestant, Launch], None]
    measure: Callable[[Contestant, Launch, int], Measure]


def run_rounds(
    transport: Transport[Measure], chosen: Sequence[Contestant], home: Path, *, rounds: int, calls: int
) -> Results[Measure]:
    launches = launches_of(transport, chosen, home)
    running = [contestant for contestant in chosen if contestant.name in launches]
    results: Results[Measure] = {contestant.name: [] for contestant in running}
    for number in range(rounds if running else 0):
        print(f"{transport.name}: round {number + 1} of {rounds} …", file=sys.stderr)
        shift = number % len(running)
        for contestant in running[shift:] + running[:shift]:
            results[contestant.name].append(transport.measure(contestant, launches[contestant.name], calls))
    return results


def launches_of(transport: Transport[Measure], chosen: Sequence[Contestant], home: Path) -> dict[str, Launch]:
    """Each contestant installed and proven equal. The proof also warms the file cache and bytecode."""
    launches = {}
    for contestant in chosen:
        try:
            command = contestant.command()
        except NotInstalled as missing:
            print(f"{contestant.name}: {missing}", file=sys.stderr)
            continue
        log = home / f"{transport.name}-{contestant.name.replace(' ', '-')}.stderr"
        launch = Launch(command, cwd=home / "empty", env=surroundings(), log=log)
        transport.prove(contestant, launch)
        launches[contestant.name] = launch
    return launches
