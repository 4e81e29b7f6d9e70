"""Making, editing, committing, merging, giving up and removing in any order: every commit ever made and every content
ever written is still held by a branch, a kept commit, or a file on disk."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from handrail.kernel.errors import WorktreeRefused
from tests.outside.tracking.playground import Playground, make_base, write_global_config
from tests.outside.worktrees.grove import Grove

NAMES = st.sampled_from(["one", "two", "three"])
FILES = st.sampled_from(["a.txt", "b.txt", "new.txt", "deep/new.txt", "deep", "x.log", "build/out"])
LONG = os.environ.get("HANDRAIL_HYPOTHESIS") == "torture"


class Worktrees(RuleBasedStateMachine):
    """A repository, some worktrees, and hands that do anything."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="handrail-test-"))
        self.commits: set[str] = set()
        self.contents: set[bytes] = set()
        self.staged: dict[str, set[bytes]] = {}
        self.number = 0

    @initialize()
    def begin(self) -> None:
        write_global_config()
        self.grove = Grove(make_base(self.folder / "repo"))

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def tree(self, name: str) -> Playground | None:
        tree = Playground(Path(self.grove.path(name)))
        return tree if tree.path(".git").exists() else None

    @rule(name=NAMES)
    def make(self, name: str) -> None:
        with contextlib.suppress(WorktreeRefused):  # a branch was left detached there, or its name is kept
            self.grove.made(name)

    def _write(self, place: Playground, file: str) -> None:
        self.number += 1
        content = f"content {self.number}\n".encode()
        target = place.path(file)
        if target.is_dir() or any(part.is_file() for part in target.parents):
            return
        if target.exists() and target.read_bytes() in self.contents:
            self.contents.discard(target.read_bytes())  # overwritten by its owner, unless something else has it
        place.write(file, content)
        self.contents.add(content)

    @rule(name=NAMES, file=FILES)
    def edit(self, name: str, file: str) -> None:
        tree = self.tree(name)
        if tree is not None:
            self._write(tree, file)

    @rule(file=st.sampled_from(["b.txt", "mine.txt", "mine.log"]))
    def edit_the_main_copy(self, file: str) -> None:
        self._write(self.grove.repo, file)

    @rule(name=NAMES, file=FILES)
    def stage_and_edit_again(self, name: str, file: str) -> None:
        tree = self.tree(name)
        if tree is not None:
            self._write(tree, file)
            self._staged_anew(name)
            tree.git("add", "--", file, check=False)
            staged = tree.path(file).read_bytes() if tree.path(file).is_file() else b""
            is_staged = staged in self.contents and tree.git("ls-files", "--", file)
            self._write(tree, file)
            if is_staged:
                self.contents.add(staged)
                self.staged.setdefault(name, set()).add(staged)

    def _staged_anew(self, name: str) -> None:
        """What only the index had may be replaced there by whoever stages again."""
        self.contents -= self.staged.pop(name, set())

    @rule(name=NAMES)
    def commit(self, name: str) -> None:
        tree = self.tree(name)
        if tree is not None:
            self._staged_anew(name)
            tree.git("add", "-A")
            tree.git("commit", "-qm", f"work {self.number}", check=False)
            self.commits.add(tree.git("rev-parse", "HEAD"))

    @rule()
    def commit_in_the_main_copy(self) -> None:
        self.grove.git("add", "-A")
        self.grove.repo.git("commit", "-qm", "main", check=False)
        self.commits.add(self.grove.git("rev-parse", "HEAD"))

    @rule(name=NAMES)
    def detach(self, name: str) -> None:
        tree = self.tree(name)
        if tree is not None:
            tree.git("checkout", "-q", "--detach")

    @rule(name=NAMES)
    def back_to_the_branch(self, name: str) -> None:
        tree = self.tree(name)
        if tree is not None:
            tree.git("checkout", "-q", f"work/{name}", check=False)

    @rule(name=NAMES)
    def merge(self, name: str) -> None:
        before = self.grove.git("for-each-ref")
        try:
            self.grove.merge(name)
        except WorktreeRefused:
            assert self.grove.git("for-each-ref") == before
        else:
            tip = self.grove.git("rev-parse", f"work/{name}")
            assert self.grove.repo.git("merge-base", "--is-ancestor", tip, "main") == ""
            self.commits.add(self.grove.git("rev-parse", "main"))

    @rule(name=NAMES, delete_branch=st.booleans(), dry_run=st.booleans())
    def remove(self, name: str, delete_branch: bool, dry_run: bool) -> None:
        before = self.grove.git("for-each-ref")
        removed = self.grove.remove(name, delete_branch=delete_branch, dry_run=dry_run)
        if dry_run or not removed.removed:
            assert self.grove.git("for-each-ref") == before
        else:
            assert not Path(self.grove.path(name)).exists()

    @rule(name=NAMES)
    @precondition(lambda self: bool(self.contents))
    def forecast(self, name: str) -> None:
        there = {other: self.grove.path(other) for other in ("one", "two", "three") if self.tree(other)}
        if name in there:
            self.grove.trees.foresee(there, "main")

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "grove"):
            return
        held = set(self.grove.git("rev-list", "--glob=refs/*", "--reflog").split())
        assert self.commits <= held
        missing = self.contents - self.grove.contents(logged=True)
        assert not missing, missing
        removed = [name for name in ("one", "two", "three") if self.tree(name) is None]
        if len(removed) == 3:  # nothing is left that only a worktree's log or index could hold
            assert self.commits <= self.grove.commits()
            assert self.contents <= self.grove.contents()


Worktrees.TestCase.settings = settings(
    max_examples=400 if LONG else 12,
    stateful_step_count=50 if LONG else 20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
test_nothing_is_ever_lost = Worktrees.TestCase
