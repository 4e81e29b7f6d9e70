"""`python -m bench.search`: fills two stores, builds an index for each, searches in interleaved rounds, prints medians
and their ratios to the floor."""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.search.filling import WORKFLOW, checkpoints, fill, word, write
from bench.started import elapsed
from handrail import __version__
from handrail.domain.search.words import understood
from handrail.domain.work.checkpoint import Checkpoint
from handrail.kernel.ledger import Actor
from handrail.kernel.records import PAGE, Query
from handrail.outside.search_index import SearchHits, SearchIndex, SearchQuery, with_index
from handrail.outside.world import RandomIds, SystemClock
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.store.writes import Head

SIZES = (10_000, 100_000)
QUICK_SIZES = (200, 1_000)
ROUNDS, BUILDS = 7, 3
ASKER = Actor("bench", "cli")
QUESTIONS = {
    "a seldom word": word(9_000),
    "a common word": word(0),
    "three words": f"{word(30)} {word(200)} {word(700)}",
    "a phrase": f'"{word(0)} {word(3)}"',
    "a beginning": f"{word(40)[:3]}*",
}

AFTER = "after one more note"
Results = dict[str, list[list[tuple[float, float]]]]


class Filled(NamedTuple):
    """A store with its index."""

    store: Store
    engine: SqliteEngine
    file: Path
    head: Head
    size: int


def opened(folder: Path, size: int) -> Filled:
    path = folder / f"{size}.db"
    engine = SqliteEngine(path, version=__version__)
    head = fill(engine, size)
    clock = SystemClock()
    return Filled(Store(engine, clock=clock, ids=RandomIds(clock)), engine, Path(f"{path}-search"), head, size)


# -- what is measured -------------------------------------------------------------------------------------------------


def search(filled: Filled, typed: str) -> SearchHits:
    """A search as the command makes it, from opening the index on."""

    def work(index: SearchIndex) -> SearchHits:
        index.catch_up(filled.store.feed)
        return index.search(SearchQuery(understood(typed), limit=10))

    return with_index(filled.file, work)


def scan(filled: Filled, typed: str) -> int:
    """The floor: every checkpoint read and looked through, without any ranking."""
    wanted = typed.replace('"', "").replace("*", "").lower()
    words = [wanted] if '"' in typed else wanted.split()
    found = 0
    notes = filled.store.run(ASKER, lambda unit: unit.select(Checkpoint, Query((("workflow_id", WORKFLOW),))))
    for note in notes:
        text = f"{note.summary} {' '.join(note.detail.values())} {' '.join(note.files_changed)}".lower()
        found += all(one in text for one in words)
    return found


def build(filled: Filled) -> None:
    filled.file.unlink(missing_ok=True)
    with_index(filled.file, lambda index: index.catch_up(filled.store.feed))


def read_ledger(filled: Filled) -> int:
    """The floor of the index: all events with their changes."""
    position = count = 0
    while page := filled.store.feed(after=position, limit=PAGE):
        count += sum(len(event.changes) for event in page)
        position = page[-1].position
    return count


def write_one(filled: Filled, number: int) -> Filled:
    (note,) = checkpoints(1, seed=number)
    made = msgspec.structs.replace(note, id=f"cp_x{number}", task_id=f"task_x{number}")
    return filled._replace(head=write(filled.engine, filled.head, [made]))


def note(results: Results, name: str, number: int, ours: float, floor: float) -> None:
    results.setdefault(name, [[], []])[number].append((ours, floor))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small stores: shows that it runs, not how it grows")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    sizes = QUICK_SIZES if given.quick else SIZES
    print(f"load {os.getloadavg()[0]:.1f} before", flush=True)
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        stores = [opened(Path(folder), size) for size in sizes]
        results: Results = {}
        for _ in range(BUILDS):
            for number, filled in enumerate(stores):
                note(
                    results,
                    "the first search, index built",
                    number,
                    elapsed(build, filled),
                    elapsed(read_ledger, filled),
                )
        for turn in range(given.rounds):
            for number, filled in enumerate(stores):
                for name, typed in QUESTIONS.items():
                    note(results, name, number, elapsed(search, filled, typed), elapsed(scan, filled, typed))
                stores[number] = written = write_one(filled, turn)
                typed = QUESTIONS["a seldom word"]
                note(results, AFTER, number, elapsed(search, written, typed), elapsed(scan, written, typed))
        print_table(sizes, results)
        for filled in stores:
            filled.engine.close()
            index, ledger = filled.file.stat().st_size, Path(str(filled.file).removesuffix("-search")).stat().st_size
            print(f"{filled.size:,}: index {index / 1e6:.1f} MB, store {ledger / 1e6:.1f} MB")
    print(f"load {os.getloadavg()[0]:.1f} after")


def print_table(sizes: tuple[int, ...], results: Results) -> None:
    """Medians; x is the median of the rounds' own ratios to the floor, so below 1 is faster than the floor."""
    print("| search | " + " | ".join(f"{size:,}, ms | floor, ms | x" for size in sizes) + " |")
    print("|---|" + "--:|--:|--:|" * len(sizes))
    for name, by_size in results.items():
        cells = []
        for rounds in by_size:
            ours, floors = zip(*rounds, strict=True)
            ratio = statistics.median(mine / floor for mine, floor in rounds)
            cells += [f"{statistics.median(ours):.1f}", f"{statistics.median(floors):.1f}", f"{ratio:.3f}"]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
