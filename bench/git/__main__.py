"""`python -m bench.git`: makes three repositories, measures in interleaved rounds, prints medians and ratios.

The floor is `git status --porcelain`, run right before each measurement in the same repository. Warm start: a snapshot
of a tree that was snapshotted before. Completion: a snapshot after 35 files changed, and the comparison with line
counts, renames and origins. A round's ratio is its own time by its own floor.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.git.making import bytes_below, git, make, work
from bench.started import elapsed
from handrail.outside.tracking.git_tracker import GitTracker
from handrail.outside.tracking.large_files import Limits
from handrail.outside.world import RandomIds, SystemClock

SIZES = (200, 10_000, 100_000)
QUICK_SIZES = (200, 2_000)
ROUNDS = 9
NAMES = ("first snapshot", "warm start", "completion, 35 files", "nothing changed")


class Measured:
    """The times of one repository, with the floor beside each."""

    def __init__(self, top: Path, files: int) -> None:
        self.top, self.files = top, files
        self.times: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}
        clock = SystemClock()
        self.state = top.parent / f"state-{files}"
        self.tracker = GitTracker(self.state, clock=clock, ids=RandomIds(clock), limits=Limits(seconds=120))
        self.grown: list[int] = []
        self.git_size = bytes_below(top / ".git")

    def time(self, name: str, action: Callable[[], object]) -> None:
        floor = elapsed(lambda: git(self.top, "--no-optional-locks", "status", "--porcelain"))
        self.times[name].append((elapsed(action), floor))

    def round(self, number: int) -> None:
        root = str(self.top)
        shutil.rmtree(self.state, ignore_errors=True)
        self.time("first snapshot", lambda: self.tracker.snapshot(root))
        self.time("warm start", lambda: self.tracker.snapshot(root))
        before = self.tracker.snapshot(root)
        used = bytes_below(self.state)
        work(self.top, self.files, number)

        def complete() -> None:
            after = self.tracker.snapshot(root, like=before)
            found = self.tracker.changes(before, after)
            assert len(found.own) == 35, len(found.own)

        self.time("completion, 35 files", complete)
        self.grown.append(bytes_below(self.state) - used)
        again = self.tracker.snapshot(root)
        self.time("nothing changed", lambda: self.tracker.changes(again, self.tracker.snapshot(root, like=again)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.git", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small trees: shows that it runs, not how it grows")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--files", type=int, action="append", help="a size of your own, in place of the three")
    given = parser.parse_args()
    sizes = tuple(given.files or (QUICK_SIZES if given.quick else SIZES))
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        trees = []
        for files in sizes:
            top = Path(folder) / f"repo-{files}"
            made = elapsed(make, top, files)
            print(f"made {files:,} files in {made / 1000:.0f} s", flush=True)
            trees.append(Measured(top, files))
        for number in range(given.rounds):
            for tree in trees:
                tree.round(number)
        print_table(trees)


def print_table(trees: list[Measured]) -> None:
    print("| | " + " | ".join(f"{tree.files:,} files, ms | x status" for tree in trees) + " |")
    print("|---|" + "--:|--:|" * len(trees))
    floors = [statistics.median(floor for times in tree.times.values() for _, floor in times) for tree in trees]
    print("| `git status --porcelain` | " + " | ".join(f"{floor:.0f} | 1.00" for floor in floors) + " |")
    for name in NAMES:
        cells = []
        for tree in trees:
            times = tree.times[name]
            ratio = statistics.median(took / floor for took, floor in times)
            cells.append(f"{statistics.median(took for took, _ in times):.0f} | {ratio:.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |")
    kept = [f"{statistics.median(tree.grown) / 1024:.0f} kB" for tree in trees]
    print("| state grown by a task's end | " + " | ".join(f"{size} | " for size in kept) + " |")
    users = [f"{bytes_below(tree.top / '.git') - tree.git_size} B" for tree in trees]
    print("| user's .git grown | " + " | ".join(f"{size} | " for size in users) + " |")


if __name__ == "__main__":
    main()
