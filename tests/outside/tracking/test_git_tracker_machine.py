"""A state machine of everything people do in a working copy, with tasks that begin and end at any time. What the engine
tells of each is held against two full accounts of the bytes on disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from handrail.domain.journal.paths import path_bytes
from handrail.domain.journal.ports import Snapshot
from handrail.outside.tracking.git_tracker import GitTracker
from handrail.outside.tracking.large_files import Limits
from handrail.outside.world import RandomIds, SystemClock
from tests.outside.tracking.playground import File, in_sight, make_base, net_change, write_global_config

FILES = (
    "a.txt",
    "b.txt",
    "src/app.py",
    "src/lib.py",
    "docs/guide.md",
    "new.txt",
    "src/new.py",
    "deep/er/x.txt",
    "run.log",
)
NAMES = st.sampled_from([*FILES, "café.txt", "src", "deep", "x.tmp"])
CONTENTS = st.sampled_from([b"", b"one\n", b"two\nlines\n", b"three\nlines\nhere\n", b"\0binary", b"long line\n" * 60])
BRANCHES = st.sampled_from(["main", "side", "other"])
LONG = os.environ.get("HANDRAIL_HYPOTHESIS") == "torture"


class Begun(NamedTuple):
    """A task, with what was in sight when it began."""

    snapshot: Snapshot
    seen: dict[bytes, File]


class WorkingCopy(RuleBasedStateMachine):
    """One repository, many hands."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="handrail-machine-"))
        os.environ["HOME"] = str(self.folder)
        write_global_config()
        self.repo = make_base(self.folder / "repo")
        clock = SystemClock()
        limits = Limits(file_bytes=300, seconds=60)
        self.tracker = GitTracker(self.folder / "state", clock=clock, ids=RandomIds(clock), limits=limits)
        self.begun: list[Begun] = []
        self.task_begins()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def git(self, *arguments: str) -> None:
        self.repo.git(*arguments, check=False)

    @rule(name=NAMES, content=CONTENTS)
    def write(self, name: str, content: bytes) -> None:
        path = self.repo.path(name)
        for folder in path.parents:
            if folder.is_symlink() or folder.is_file():
                folder.unlink()
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        self.repo.write(name, content)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if os.path.lexists(self.repo.path(name)):
            self.repo.remove(name)

    @rule(old=NAMES, new=NAMES)
    def move(self, old: str, new: str) -> None:
        source, target = self.repo.path(old), self.repo.path(new)
        if source.is_file() and not os.path.lexists(target) and target.parent.is_dir():
            source.rename(target)

    @rule(name=NAMES, to=NAMES)
    def link(self, name: str, to: str) -> None:
        path = self.repo.path(name)
        if path.parent.is_dir() and not os.path.lexists(path):
            path.symlink_to(to)

    @rule(name=NAMES)
    def change_mode(self, name: str) -> None:
        path = self.repo.path(name)
        if path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode ^ 0o111)

    @rule(name=NAMES, force=st.booleans())
    def stage(self, name: str, force: bool) -> None:
        self.git("add", *(["-f"] if force else []), "--", name)

    @rule(name=NAMES)
    def untrack(self, name: str) -> None:
        self.git("rm", "-rq", "--cached", "--", name)

    @rule(everything=st.booleans(), amend=st.booleans())
    def commit(self, everything: bool, amend: bool) -> None:
        if everything:
            self.git("add", "-A")
        self.git("commit", "-qm", "work", *(["--amend"] if amend else []))

    @rule(branch=BRANCHES, anew=st.booleans())
    def switch(self, branch: str, anew: bool) -> None:
        self.git("checkout", "-q", *(["-b"] if anew else []), branch)

    @rule(branch=BRANCHES)
    def merge(self, branch: str) -> None:
        self.git("merge", "-q", "--no-edit", branch)

    @rule(branch=BRANCHES)
    def rebase(self, branch: str) -> None:
        self.git("rebase", "-q", branch)

    @rule(how=st.sampled_from([("merge", "--abort"), ("rebase", "--abort"), ("stash", "-q"), ("stash", "pop", "-q")]))
    def give_up_or_put_aside(self, how: tuple[str, ...]) -> None:
        self.git(*how)

    @rule(how=st.sampled_from(["--hard", "--mixed", "--soft"]), back=st.integers(0, 2))
    def reset(self, how: str, back: int) -> None:
        self.git("reset", "-q", how, f"HEAD~{back}")

    @rule(rules=st.sampled_from(["*.log\nbuild/\n", "*.log\n*.tmp\n", "deep/\n", "", "*.txt\n!b.txt\n"]))
    def ignore(self, rules: str) -> None:
        self.repo.write(".gitignore", rules)

    @precondition(lambda self: len(self.begun) < 3)
    @rule()
    def task_begins(self) -> None:
        self.begun.append(Begun(self.tracker.snapshot(str(self.repo.top)), in_sight(self.repo.top)))

    @precondition(lambda self: self.begun)
    @rule(which=st.integers(0, 2))
    def task_ends(self, which: int) -> None:
        task = self.begun.pop(which % len(self.begun))
        after = self.tracker.snapshot(str(self.repo.top), like=task.snapshot)
        found = self.tracker.changes(task.snapshot, after)
        net = net_change(task.seen, in_sight(self.repo.top))
        own = {path_bytes(file.path): file.change for file in found.own}
        external = {path_bytes(file.path): file.change for file in found.external}
        assert not found.partial, found.warnings
        assert own.keys() | external.keys() == net.keys(), (own, external, net)
        for path in own.keys() ^ external.keys():
            assert (own | external)[path] == net[path], (path, own, external, net)
        self.tracker.forget(task.snapshot)
        self.tracker.forget(after)


WorkingCopy.TestCase.settings = settings(
    max_examples=400 if LONG else 12, stateful_step_count=40 if LONG else 25, deadline=None
)
test_what_is_told_is_what_happened = WorkingCopy.TestCase
