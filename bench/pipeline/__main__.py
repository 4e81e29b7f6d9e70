"""`python -m bench.pipeline`: fills three stores, drives a run in a copy of each in interleaved rounds, prints medians
and ratios."""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.pipeline.driving import Cpu, Driver, document
from bench.pipeline.filling import Model, fill, model_in
from handrail import __version__
from handrail.outside.world import RandomIds, SystemClock
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.wiring import Handrail, LazyLedger, WorkPlace, assemble, settings_at

SIZES = (1, 100, 10_000)
QUICK_SIZES = (1, 20, 200)
ROUNDS, ASKED = 9, 25
CONFIRMING = "pipeline_init_with_context, the confirmation"
TURN = "pipeline_next_action, a turn with a report"
AGAIN = "pipeline_next_action, asked again in {}"
ASKED_IN = ("phase-1", "phase-3", "phase-5", "phase-6")
ROWS = (TURN, *(AGAIN.format(phase) for phase in ASKED_IN), CONFIRMING)
DOCUMENTS = (
    *("request.md", "analysis.md", "investigation.md", "design.md", "review-design.md", "tasks.md", "review-tasks.md"),
    *(f"{kind}-{number}.md" for kind in ("impl", "review") for number in (1, 2, 3)),
    *("comprehensive-review.md", "final-verification.md", "summary.md", "state.json"),
)
"""What a run leaves behind."""


class Past(NamedTuple):
    """A repository, and the store with its past runs, which is copied for each round."""

    runs: int
    project: Path
    store: Path


def repository(project: Path) -> None:
    """A small repository, as a pipeline finds it."""
    (project / "importer").mkdir(parents=True)
    (project / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\n')
    for number in range(200):
        (project / "importer" / f"part_{number}.py").write_text("PART = 1\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")


def git(project: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=project, check=True, capture_output=True)


@contextmanager
def opened(project: Path, database: Path) -> Iterator[tuple[Handrail, Store]]:
    clock = SystemClock()
    store = Store(SqliteEngine(database, version=__version__), clock=clock, ids=RandomIds(clock))
    place = WorkPlace(project=project, home=project.parent, environ={})
    settings = settings_at(place, {"toolsets": "pipeline"})
    try:
        yield assemble(place, settings, ledger=LazyLedger(lambda: store)), store
    finally:
        store.engine.close()


def model(folder: Path) -> Model:
    """A run that is driven to its end, from which the past ones are made."""
    repository(folder / "model")
    with opened(folder / "model", folder / "model.db") as (handrail, store):
        driver = Driver(handrail)
        driver.confirm()
        for _ in driver.turns(Cpu()):
            pass
        return model_in(store, driver.workflow)


def filled(folder: Path, of: Model, runs: int, *, documents: bool) -> Past:
    past = Past(runs, folder / f"project-{runs}", folder / f"past-{runs}.db")
    repository(past.project)
    began = time.perf_counter()
    with opened(past.project, past.store) as (handrail, store):
        fill(store, of.at(handrail.call.here.repository), runs)
    if documents:
        leave_documents(past)
    size = past.store.stat().st_size / 1e6
    print(f"filled {runs:,} runs, {size:.1f} MB, in {time.perf_counter() - began:.0f} s", flush=True)
    return past


def leave_documents(past: Past) -> None:
    """The documents of every past run, in the repository and in git, as the last phase leaves them."""
    texts = {name: document(name) for name in DOCUMENTS}
    for number in range(past.runs):
        workspace = past.project / ".specs" / f"20231114-past-{number}"
        workspace.mkdir(parents=True)
        for name, text in texts.items():
            (workspace / name).write_text(text)
    git(past.project, "add", ".")


def one_round(past: Past) -> dict[str, float]:
    """One run over a copy of the store, as processor time in microseconds by row."""
    database = past.store.with_suffix(".round")
    shutil.copyfile(past.store, database)
    gc.collect()
    measured: dict[str, float] = {}
    with opened(past.project, database) as (handrail, _):
        driver = Driver(handrail)
        measured[CONFIRMING] = driver.confirm()
        cpu = Cpu()
        for action in driver.turns(cpu):
            row = AGAIN.format(action.get("phase"))
            if row in ROWS and row not in measured:
                measured[row] = statistics.median(driver.again()[1] for _ in range(ASKED))
        measured[TURN] = cpu.per_call
        shutil.rmtree(past.project / driver.workspace)
    for left in database.parent.glob(f"{database.name}*"):
        left.unlink()
    return measured


def ratios(smallest: list[float], others: list[float]) -> float:
    """The median of the rounds' own ratios."""
    return statistics.median(b / a for a, b in zip(smallest, others, strict=True))


def table(sizes: tuple[int, ...], rounds: list[list[dict[str, float]]]) -> Iterator[str]:
    """Medians over the rounds, of which each has one measurement for every size."""
    heads = [f"{size:,} past, µs | x" if place else f"{size:,} past, µs" for place, size in enumerate(sizes)]
    yield f"| CPU of one call | {' | '.join(heads)} |"
    yield "|---|--:|" + "--:|--:|" * (len(sizes) - 1)
    for name in ROWS:
        columns = [[one[place][name] for one in rounds] for place in range(len(sizes))]
        cells = [f"{statistics.median(columns[0]):.0f}"]
        for column in columns[1:]:
            cells += [f"{statistics.median(column):.0f}", f"{ratios(columns[0], column):.2f}"]
        yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few past runs: shows that it runs, not how it grows")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--documents", action="store_true", help="leave the documents of past runs in the repository")
    given = parser.parse_args()
    sizes = QUICK_SIZES if given.quick else SIZES
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as name:
        folder = Path(os.path.realpath(name))
        of = model(folder)
        pasts = [filled(folder, of, size, documents=given.documents) for size in sizes]
        rounds = []
        for number in range(given.rounds + 1):
            turned = number % len(pasts)
            measured = {past.runs: one_round(past) for past in (*pasts[turned:], *pasts[:turned])}
            rounds.append([measured[past.runs] for past in pasts])
        print(f"load {os.getloadavg()[0]:.1f}")
        print("\n".join(table(sizes, rounds[1:])))


if __name__ == "__main__":
    main()
