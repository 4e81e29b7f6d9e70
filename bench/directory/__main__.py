"""`python -m bench.directory`: makes directories of text files, takes snapshots in interleaved rounds, prints medians
and ratios to the floor: `os.walk` with an `lstat` of each file, which no manifest can do without."""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.started import elapsed
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.outside.tracking.directory import DirectoryTracker
from handrail.outside.tracking.manifest import ManifestBounds

SIZES = (1_000, 10_000)
LARGE_SIZES = (*SIZES, 100_000)
QUICK_SIZES = (200, 1_000)
ROUNDS = 7
PER_FOLDER = 25
MEAN_BYTES = 4_300
EDITED = 35
"""Files that one round of work edits."""
BUDGET_S = 600.0
"""Nothing is cut short here: the whole is measured."""


class Fixture(NamedTuple):
    """A directory and its trackers. `warm` keeps its state between rounds."""

    root: Path
    state: Path
    files: list[Path]
    warm: DirectoryTracker


def made(folder: Path, count: int, chance: random.Random) -> Fixture:
    root = folder / str(count)
    letters = chance.randbytes(64 * 1024).hex()
    files = []
    for number in range(count):
        file = root / f"package{number // (PER_FOLDER * 40)}" / f"module{number // PER_FOLDER}" / f"file{number}.py"
        if number % PER_FOLDER == 0:
            file.parent.mkdir(parents=True)
        start = chance.randrange(60_000)
        file.write_text(f"# {number}\n" + letters[start : start + int(chance.expovariate(1 / MEAN_BYTES))])
        files.append(file)
    (root / ".gitignore").write_text("*.log\n*.py[cod]\n/out/\nsecret.txt\n")
    state = folder / f"state{count}"
    return Fixture(root, state, files, tracker(state))


def tracker(state: Path) -> DirectoryTracker:
    return DirectoryTracker(
        state,
        clock=FixedClock(),
        ids=CountingIds(),
        bounds=ManifestBounds(time.monotonic, budget_s=BUDGET_S, quiet_ns=0),
    )


def floor(fixture: Fixture) -> None:
    for folder, _, names in os.walk(fixture.root):
        for name in names:
            os.lstat(f"{folder}/{name}")


def read_with(fixture: Fixture, new_hash: Callable[[bytes], object]) -> None:
    for file in fixture.files:
        with open(file, "rb", buffering=0) as opened:
            new_hash(opened.read())


def edit(fixture: Fixture, chance: random.Random) -> None:
    for file in chance.sample(fixture.files, EDITED):
        file.write_text(f"# {chance.random()}\n")


def one_round(fixture: Fixture, number: int, chance: random.Random) -> dict[str, float]:
    """Every row once, in milliseconds."""
    root, found = str(fixture.root), {}
    found["floor: os.walk + lstat"] = elapsed(lambda: floor(fixture))
    found["first snapshot"] = elapsed(lambda: tracker(fixture.state / f"round{number}").snapshot(root))
    before = fixture.warm.snapshot(root)
    found["snapshot, nothing changed"] = elapsed(lambda: fixture.warm.snapshot(root))
    edit(fixture, chance)
    found[f"snapshot, {EDITED} files edited"] = elapsed(lambda: fixture.warm.snapshot(root))
    after = fixture.warm.snapshot(root)
    found["changes between two snapshots"] = elapsed(lambda: fixture.warm.changes(before, after))
    found["only reading every file, sha256"] = elapsed(lambda: read_with(fixture, _sha256))
    found["only reading every file, blake2b"] = elapsed(lambda: read_with(fixture, _blake2b))
    return found


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data, usedforsecurity=False).digest()


def _blake2b(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32, usedforsecurity=False).digest()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.directory", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small directories: shows that it runs")
    parser.add_argument("--large", action="store_true", help="100,000 files too; making them takes a while")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    sizes = QUICK_SIZES if given.quick else LARGE_SIZES if given.large else SIZES
    chance = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        fixtures = [made(Path(folder), size, chance) for size in sizes]
        rounds: list[list[dict[str, float]]] = [[] for _ in fixtures]
        for number in range(given.rounds + 1):
            for fixture, found in zip(fixtures, rounds, strict=True):
                found.append(one_round(fixture, number, chance))
        print_table(sizes, [found[1:] for found in rounds])


def print_table(sizes: tuple[int, ...], rounds: list[list[dict[str, float]]]) -> None:
    """Medians without the first round, which warms up; x is the median of the rounds' own ratios to the floor."""
    print("| what | " + " | ".join(f"{size:,} files, ms | x" for size in sizes) + " |")
    print("|---|" + "--:|--:|" * len(sizes))
    names = list(rounds[0][0])
    for name in names:
        cells = []
        for found in rounds:
            ratio = statistics.median(one[name] / one[names[0]] for one in found)
            cells += [f"{statistics.median(one[name] for one in found):.1f}", f"{ratio:.2f}"]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
