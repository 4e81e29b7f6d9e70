"""`python -m bench.plan`: fills three stores, asks them in interleaved rounds, prints medians and ratios."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench.plan.filling import WORKFLOW, Filled, fill
from handrail import __version__
from handrail.kernel.ledger import Actor
from handrail.outside.world import RandomIds, SystemClock
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.surfaces.invocation import invoke
from handrail.wiring import Handrail, LazyLedger, WorkPlace, assemble, settings_at

SIZES = ((100, 1_000), (10_000, 100_000), (100_000, 1_000_000))
QUICK_SIZES = ((100, 1_000), (1_000, 10_000), (5_000, 50_000))
ROUNDS, CALLS = 9, 40
ASKER = Actor("bench", "mcp")


class Plan(NamedTuple):
    """A filled store, and a Handrail over it."""

    filled: Filled
    handrail: Handrail


def questions(plan: Plan) -> dict[str, Callable[[], Any]]:
    """What is asked of every plan, by the name it is printed under."""

    def asked(name: str, **arguments: Any) -> Callable[[], Any]:
        operation = plan.handrail.switch.find(name)
        assert operation is not None
        return lambda: invoke(operation, plan.handrail.call, arguments, actor=ASKER)

    running = plan.filled.running
    return {
        "workflow_next_tasks": asked("workflow_next_tasks", workflow_id=WORKFLOW),
        "workflow_next_tasks, no id": asked("workflow_next_tasks"),
        "task_load_context, 8000": asked("task_load_context", task_id=running),
        "task_load_context, 1500": asked("task_load_context", task_id=running, max_tokens=1500),
        "task_load_context, no id": asked("task_load_context"),
    }


def opened(folder: Path, tasks: int, events: int) -> Plan:
    project = folder / str(tasks)
    project.mkdir()
    engine = SqliteEngine(project / "handrail.db", version=__version__)
    began = time.perf_counter()
    filled = fill(engine, tasks, events)
    print(f"filled {tasks:,} tasks, {filled.events:,} events in {time.perf_counter() - began:.0f} s", flush=True)
    clock = SystemClock()
    store = Store(engine, clock=clock, ids=RandomIds(clock))
    place = WorkPlace(project=project, home=folder, environ={})
    settings = settings_at(place, {"toolsets": "context,orchestration"})
    return Plan(filled, assemble(place, settings, ledger=LazyLedger(lambda: store)))


def measured(asking: Callable[[], Any], calls: int) -> float:
    """The median time of one call, in microseconds."""
    times = []
    for _ in range(calls):
        began = time.perf_counter_ns()
        asking()
        times.append((time.perf_counter_ns() - began) / 1000)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.plan", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small plans: shows that it runs, not how it grows")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    sizes = QUICK_SIZES if given.quick else SIZES
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        plans = [opened(Path(folder), *size) for size in sizes]
        asked = [questions(plan) for plan in plans]
        results: dict[str, list[list[float]]] = {name: [[] for _ in plans] for name in asked[0]}
        for _ in range(given.rounds + 1):
            for name, rounds in results.items():
                for number, of_plan in enumerate(asked):
                    rounds[number].append(measured(of_plan[name], CALLS))
        print_table(sizes, results)
        for plan in plans:
            plan.handrail.ledger.open().engine.close()


def print_table(sizes: tuple[tuple[int, int], ...], results: dict[str, list[list[float]]]) -> None:
    """Medians over the rounds without the first, which warms up; x is the median of the rounds' own ratios."""
    smallest = f"{sizes[0][0]:,} tasks, µs"
    print(f"| call | {smallest} | " + " | ".join(f"{tasks:,} tasks, µs | x" for tasks, _ in sizes[1:]) + " |")
    print("|---|--:|" + "--:|--:|" * (len(sizes) - 1))
    for name, rounds in results.items():
        cells = [f"{statistics.median(rounds[0][1:]):.0f}"]
        for others in rounds[1:]:
            ratio = statistics.median(b / a for a, b in zip(rounds[0][1:], others[1:], strict=True))
            cells += [f"{statistics.median(others[1:]):.0f}", f"{ratio:.2f}"]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
