"""The measuring: one server from its start to the end of its calls, and interleaved rounds of them. Prints no table.

A round starts each server once, in an order that rotates from round to round, so that whatever else the machine does
falls on all of them alike.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import msgspec

from bench.protocol.contestants import INITIALIZE, INITIALIZED, TASK, Contestant, call, prove_equal, request
from bench.protocol.environments import NotInstalled
from bench.protocol.processes import ServerProcess, Stuck

WARM_UP_CALLS = 300


class Measure(msgspec.Struct, frozen=True):
    """One server, once."""

    start_cpu_ms: float
    start_wall_ms: float
    start_rss_mb: float
    start_pss_mb: float
    first_call_cpu_ms: float
    call_cpu_us: float
    call_p50_us: float
    end_rss_mb: float


Results = dict[str, list[Measure]]


def run_rounds(chosen: list[Contestant], home: Path, *, rounds: int, calls: int) -> Results:
    """Every contestant's measures, one for each round, in the order of the contestants."""
    commands = commands_of(chosen, home)
    running = [contestant for contestant in chosen if contestant.name in commands]
    results: Results = {contestant.name: [] for contestant in running}
    for number in range(rounds if running else 0):
        print(f"round {number + 1} of {rounds} …", file=sys.stderr)
        shift = number % len(running)
        for contestant in running[shift:] + running[:shift]:
            with start(contestant, commands[contestant.name], home) as server:
                results[contestant.name].append(measure(server, calls))
    return results


def commands_of(chosen: list[Contestant], home: Path) -> dict[str, list[str]]:
    """Each contestant's command, installed and proven equal. The proof also warms the file cache and bytecode."""
    commands = {}
    for contestant in chosen:
        try:
            command = contestant.command()
        except NotInstalled as missing:
            print(f"{contestant.name}: {missing}", file=sys.stderr)
            continue
        with start(contestant, command, home) as server:
            server.ask(0, request(0, "initialize", INITIALIZE))
            server.tell(INITIALIZED)
            prove_equal(server)
            server.finish()
        commands[contestant.name] = command
    return commands


def start(contestant: Contestant, command: list[str], home: Path) -> ServerProcess:
    log = home / f"{contestant.name.replace(' ', '-')}.stderr"
    return ServerProcess(command, cwd=home / "empty", env=environment(), log=log)


def environment() -> dict[str, str]:
    """The caller's environment without what would change how a server starts."""
    foreign = ("HANDRAIL_", "WORKFLOW_", "PYTHON", "NODE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def measure(server: ServerProcess, calls: int) -> Measure:
    server.ask(0, request(0, "initialize", INITIALIZE))
    start_wall_ns = time.perf_counter_ns() - server.started_ns
    start_cpu_ns = server.cpu_ns()
    at_start = server.memory()
    server.tell(INITIALIZED)

    before = server.cpu_ns()
    server.ask(1, call(1, TASK["accepted"]))
    first_call_cpu_ns = server.cpu_ns() - before

    warm_up, timed = range(2, WARM_UP_CALLS), range(WARM_UP_CALLS, WARM_UP_CALLS + calls)
    for number in warm_up:
        server.ask(number, call(number, TASK["accepted"]))
    lines = [(number, call(number, TASK["accepted"])) for number in timed]  # the client's work, kept out of the timing
    latencies_ns = []
    before = server.cpu_ns()
    for number, line in lines:
        sent_ns = time.perf_counter_ns()
        server.ask(number, line)
        latencies_ns.append(time.perf_counter_ns() - sent_ns)
    calls_cpu_ns = server.cpu_ns() - before
    at_end = server.memory()
    check_the_clock(server)

    return Measure(
        start_cpu_ms=start_cpu_ns / 1e6,
        start_wall_ms=start_wall_ns / 1e6,
        start_rss_mb=at_start.rss_mb,
        start_pss_mb=at_start.pss_mb,
        first_call_cpu_ms=first_call_cpu_ns / 1e6,
        call_cpu_us=calls_cpu_ns / calls / 1e3,
        call_p50_us=statistics.median(latencies_ns) / 1e3,
        end_rss_mb=at_end.rss_mb,
    )


def check_the_clock(server: ServerProcess) -> None:
    """Ends the server and holds the clock we read against the account the kernel gives of its whole life."""
    read_ns = server.cpu_ns()
    life_ns = server.finish()
    if life_ns < read_ns * 0.98:
        raise Stuck(
            f"the CPU clock said {read_ns / 1e6:.0f} ms, the account of the ended process {life_ns / 1e6:.0f} ms"
        )
