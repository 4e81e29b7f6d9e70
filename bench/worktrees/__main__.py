"""`python -m bench.worktrees`: makes a repository with worktrees, measures in interleaved rounds, prints medians and
ratios.

Foreseeing: among 2, 8 and 32 worktrees, each with thirty files edited, five of them from a set of sixty that all draw
from, a third of the edits not committed. The floor is one plain `git merge-tree --write-tree` of two of the branches,
run right before in the same round. Making and removing: against plain `git worktree add` and `git worktree remove` of
the same commit in the same round. A round's ratio is its own time by its own floor.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.git.making import git, make, name_of
from bench.started import elapsed
from handrail.outside.worktrees import worktrees_at
from handrail.outside.worktrees.conflicts import BASE
from handrail.outside.worktrees.git_worktrees import GitWorktrees

BRANCHES = (2, 8, 32)
FILES, QUICK_FILES = 2_000, 500
ROUNDS = 9
EDITED, SHARED, HOT = 30, 5, 60


class Bench:
    """One repository and its worktrees."""

    def __init__(self, folder: Path, files: int, most: int) -> None:
        self.top, self.files = folder / "repo", files
        self.trees = GitWorktrees(self.top, looking_s=600)
        make(self.top, files)
        git(self.top, "stash", "-q", "-u")
        self.head = git(self.top, "rev-parse", "HEAD").decode().strip()
        self.paths = {f"b{number}": folder / "trees" / f"b{number}" for number in range(most)}
        choose = random.Random(7)
        for name, path in self.paths.items():
            worktrees_at(self.top).make(str(path), f"work/{name}", self.head)
            self._edit(path, choose, name)
        self.times: dict[str, list[tuple[float, float]]] = {}
        self.clashes: dict[int, int] = {}

    def _edit(self, path: Path, choose: random.Random, name: str) -> None:
        hot = choose.sample(range(HOT), SHARED)
        own = choose.sample(range(HOT, self.files), EDITED - SHARED)
        for position, number in enumerate([*hot, *own]):
            file = path / name_of(number)
            lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
            lines[choose.randrange(len(lines))] = f"changed by {name}\n"
            file.write_text("".join(lines), encoding="utf-8")
            if position == EDITED * 2 // 3:
                git(path, "commit", "-qam", name)

    def round(self, number: int) -> None:
        for count in (count for count in BRANCHES if count <= len(self.paths)):
            some = {name: str(path) for name, path in itertools.islice(self.paths.items(), count)}
            floor = elapsed(self._one_merge)
            began = time.perf_counter()
            found = self.trees.foresee(some, self.head)
            took = (time.perf_counter() - began) * 1000
            assert not found.problems, found.problems
            self.clashes[count] = len(found.clashes)
            assert all(clash.one != BASE for clash in found.clashes)
            self.times.setdefault(f"foresee among {count} worktrees", []).append((took, floor))
        plain, ours = self.top.parent / "plain", str(self.top.parent / "ours")
        removal = {"base": None, "delete_branch": False, "ignored": False, "dry_run": False}
        self._both(
            "make",
            number,
            lambda: git(self.top, "worktree", "add", "-q", "-b", f"plain{number}", str(plain), self.head),
            lambda: self.trees.make(ours, f"ours{number}", self.head),
        )
        self._both(
            "remove",
            number,
            lambda: git(self.top, "worktree", "remove", str(plain)),
            lambda: self.trees.remove(ours, **removal),  # type: ignore[arg-type]
        )
        some = {str(path): self.head for path in itertools.islice(self.paths.values(), 8)}
        self._both(
            f"look at {len(some)} worktrees",
            number,
            lambda: [git(Path(path), "--no-optional-locks", "status", "--porcelain") for path in some],
            lambda: self.trees.look(some),
        )

    def _one_merge(self) -> None:
        command = ["git", "merge-tree", "--write-tree", "work/b0", "work/b1"]
        subprocess.run(command, cwd=self.top, capture_output=True, check=False)

    def _both(self, name: str, number: int, plain: Callable[[], object], ours: Callable[[], object]) -> None:
        """Who comes second finds the disk busy with the first: they take turns."""
        if number % 2:
            took = elapsed(ours)
            self.times.setdefault(name, []).append((took, elapsed(plain)))
        else:
            floor = elapsed(plain)
            self.times.setdefault(name, []).append((elapsed(ours), floor))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.worktrees", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small tree: shows that it runs, not how it grows")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--files", type=int)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="handrail-bench-"))
    try:
        bench = Bench(
            folder, given.files or (QUICK_FILES if given.quick else FILES), 8 if given.quick else max(BRANCHES)
        )
        for number in range(given.rounds):
            bench.round(number)
        print_table(bench)
    finally:
        shutil.rmtree(folder)


def print_table(bench: Bench) -> None:
    floors = {"make": "`git worktree add`", "remove": "`git worktree remove`"}
    print(f"| {bench.files:,} files | ms | against | ms | x |")
    print("|---|--:|---|--:|--:|")
    for name, times in bench.times.items():
        against = floors.get(name, "`git status` in each" if name.startswith("look") else "one `git merge-tree`")
        took, floor = (statistics.median(pair[side] for pair in times) for side in (0, 1))
        ratio = statistics.median(pair[0] / pair[1] for pair in times)
        print(f"| {name} | {took:.0f} | {against} | {floor:.0f} | {ratio:.2f} |")
    print("pairs that clash: " + ", ".join(f"{found} among {count}" for count, found in bench.clashes.items()))


if __name__ == "__main__":
    main()
