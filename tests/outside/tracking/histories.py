"""Random histories: a random configuration, random attributes, random work before a task and in it. What the engine
tells is held against copies of the tree, and against an account of which kind of work touched which file.

One number is one history. `python -m tests.outside.tracking.histories NUMBER` plays it again and shows every step;
`… FROM TO` plays a range.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from handrail.domain.journal.entry import Changes
from handrail.domain.journal.paths import path_bytes
from handrail.outside.tracking.git_tracker import GitTracker
from handrail.outside.tracking.large_files import Limits
from handrail.outside.world import RandomIds, SystemClock
from tests.outside.tracking.history_rules import RulesAtBeginning
from tests.outside.tracking.history_steps import GIT_STEPS, TASK_STEPS
from tests.outside.tracking.history_template import ATTRIBUTES, SETTINGS, Template, at_home, written_config
from tests.outside.tracking.history_work import Step, Work
from tests.outside.tracking.playground import File, file_at

LIMITS = (None, None, Limits(file_bytes=80, seconds=60), Limits(files=3, seconds=60))


class Wrong(AssertionError):  # noqa: N818 - it is the history that is
    """A history that was told wrongly."""


def tree_of(top: Path) -> dict[bytes, File]:
    """Every file, ignored or not, as it is on disk."""
    found: dict[bytes, File] = {}
    start = len(os.fsencode(top)) + 1
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for name in (*files, *links):
            path = Path(folder, name)
            if name != ".git" and (file := file_at(path)) is not None:
                found[os.fsencode(path)[start:]] = file
    return found


class History:
    """One history, and what is expected of it."""

    def __init__(self, seed: int, folder: Path, template: Template, *, show: Callable[[str], None]) -> None:
        self.seed = seed
        self.choose = random.Random(seed)
        self.show = show
        self.folder = folder
        template.copy_to(folder / "repo")
        self.work = Work(folder / "repo", self.choose, template)
        clock = SystemClock()
        limits = self.choose.choice(LIMITS)
        self.tracker = GitTracker(folder / "state", clock=clock, ids=RandomIds(clock), limits=limits)
        self.tags: dict[bytes, set[str]] = {}
        self.edited: set[bytes] = set()
        self.settled: set[bytes] = set()
        """The task's own for certain: resolved in a conflict, or committed by plumbing."""
        self.came_in = False
        self.done: list[str] = [f"limits {limits}"]

    def configure(self) -> None:
        chosen = self.choose.sample(sorted(SETTINGS), self.choose.choice((0, 1, 1, 2, 3, 6)))
        mine: dict[str, str] = {}
        theirs: dict[str, str] = {}
        for key in chosen:
            value = self.choose.choice(SETTINGS[key])
            (mine if self.choose.random() < 0.4 else theirs)[key] = value
        self.done.append(f"user's settings {mine}, repository's {theirs}")
        with_filter = self.choose.random() < 0.15
        (self.folder / ".gitconfig").write_text(written_config(mine, with_filter=with_filter), encoding="utf-8")
        with (self.work.top / ".git" / "config").open("a", encoding="utf-8") as file:
            file.write(written_config(theirs))
        self.work.note_settings({**mine, **theirs}, with_filter=with_filter)
        if self.choose.random() < 0.4:
            self.edited.add(b".gitattributes")
            self.work.attributes(self.choose.sample(ATTRIBUTES, self.choose.choice((1, 1, 2))))
            self.done.append(f"attributes {self.work.repo.read('.gitattributes')!r}")

    def step(self, step: Step, *, in_task: bool) -> None:
        before = tree_of(self.work.top)
        tags = step(self.work)
        if tags is None:  # nothing to do
            return
        after = tree_of(self.work.top)
        touched = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        self.came_in |= in_task and tags.otherwise != "own"
        self.done.append(f"{'task: ' if in_task else ''}{tags.said} -> {sorted(touched)}")
        self.show(self.done[-1])
        if tags.otherwise != "own":
            self.settled &= tags.of.keys()
        for path in (tags.of.keys() - touched) & self.tags.keys():  # decided upon, though its bytes stayed the same
            self.tags[path].add("either")
        for path in touched:
            tag = tags.of.get(path, tags.otherwise)
            is_link = "link" in (before.get(path, " ")[0], after.get(path, " ")[0])
            if tag == "foreign" and (path in self.edited or (is_link and self.work.plain_links)):
                tag = "either"
            if self.work.was_sparse and step in GIT_STEPS and not (path in before and path in after):
                tag = "either"
            if in_task:
                self.tags.setdefault(path, set()).add(tag)
                if path in tags.of and tag == "own":
                    self.settled.add(path)
            if tag == "own":
                self.edited.add(path)

    def play(self) -> None:
        self.configure()
        for _ in range(self.choose.choice((0, 0, 1, 2, 4))):
            self.step(self.choose.choice(TASK_STEPS), in_task=False)
        if self.choose.random() < 0.3:  # an earlier look: what follows builds on its index
            self.tracker.snapshot(str(self.work.top))
            self.step(self.choose.choice(TASK_STEPS), in_task=False)
        before = self.tracker.snapshot(str(self.work.top))
        rules = RulesAtBeginning(self.work.top, self.folder / "rules")
        seen = self.in_sight(rules, ())
        self.work.begin_task()
        for _ in range(self.choose.choice((1, 1, 2, 3, 5))):
            self.step(self.choose.choice(TASK_STEPS), in_task=True)
        after = self.tracker.snapshot(str(self.work.top), like=before)
        found = self.tracker.changes(before, after)
        self.judge(seen, self.in_sight(rules, seen), found)

    def in_sight(self, rules: RulesAtBeginning, known: Collection[bytes]) -> dict[bytes, File]:
        """Every file that the rules of the beginning show, or that is tracked or was in sight."""
        found = tree_of(self.work.top)
        listed = self.work.git("ls-files", "-z").split("\0")
        shown = {*known, *map(os.fsencode, listed)}
        hidden = rules.hid([path for path in found if path not in shown])
        self.work.hidden_then |= hidden
        self.work.are_rules_new = not rules.are_the_same()
        return {path: file for path, file in found.items() if path not in hidden}

    def judge(self, before: dict[bytes, File], after: dict[bytes, File], found: Changes) -> None:
        own = {path_bytes(change.path): change.change for change in found.own}
        external = {path_bytes(change.path): change.change for change in found.external}
        problems = []
        if found.partial and not self.work.may_be_partial:
            problems.append(f"partial: {found.warnings}")
        told = own.keys() | external.keys()
        for path in sorted(told | before.keys() | after.keys()):
            problems += [f"{path!r}: {problem}" for problem in self.of(path, before, after, own, external)]
        net = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        if problems and found.partial and self.work.may_be_partial:
            problems = [] if found.warnings else ["partial without a word"]
        net = [path for path in net if not self.work.may_be_either(path)]
        if not told and net and not found.partial and any(self.must_be_told(path, before, after) for path in net):
            problems.append("silently empty")
        if problems:
            raise Wrong(
                "\n".join([f"history {self.seed}", *self.done, *problems, f"own {own}", f"external {external}"])
            )

    def may_have_come_in(self, path: bytes, file: File | None) -> bool:
        """Whether a file may be taken for what a switch brought, because that would have brought the same."""
        has_moved = self.came_in or self.work.moved_head_only
        return has_moved and path not in self.settled and self.work.is_committed(path, file)

    def was_left_out(self, path: bytes) -> bool:
        """Whether a sparse checkout may have left a file out that HEAD has: one that is written there is no new one."""
        return self.work.was_sparse and bool(self.work.git("ls-tree", "HEAD", "--", os.fsdecode(path)))

    def must_be_told(self, path: bytes, before: dict[bytes, File], after: dict[bytes, File]) -> bool:
        old, new = before.get(path), after.get(path)
        tags = self.tags.get(path, set())
        if "sparse" in tags:
            return False
        if self.work.was_sparse and tags != {"own"} and None in (old, new):  # any command may leave a file out
            return False
        return self.work.content(path, old) != self.work.content(path, new)

    def of(
        self,
        path: bytes,
        before: dict[bytes, File],
        after: dict[bytes, File],
        own: Mapping[bytes, str],
        external: Mapping[bytes, str],
    ) -> Iterator[str]:
        old, new = before.get(path), after.get(path)
        tags = self.tags.get(path, set())
        is_told = path in own or path in external
        if self.work.may_be_either(path):
            return
        if old == new:
            if is_told and not self.work.may_be_told_unchanged(path):
                yield "told, but its bytes are the same"
            return
        if not self.must_be_told(path, before, after):
            # Under the same patterns a file left out looks like one that was deleted and hidden: that is told. One that
            # is told as modified was, by a merge in the index.
            is_new = self.work.sparse_patterns() != self.work.patterns and own.get(path) != "modified"
            if tags == {"sparse"} and path in own and path not in self.edited and is_new:
                yield "only left out of the tree, or back in it"
            return
        change = "added" if old is None else "deleted" if new is None else "modified"
        if not is_told:
            yield f"{change}, but not told"
        elif (
            (path in own) != (path in external) and {**own, **external}[path] != change and not self.was_left_out(path)
        ):
            yield f"{change}, but told as {({**own, **external})[path]}"
        if tags == {"own"} and path not in own and not self.may_have_come_in(path, new):
            yield "the task's own, but not told as such"
        is_explained = path not in external or self.work.moved_head_only
        if tags == {"own"} and not is_explained and not self.may_have_come_in(path, new):
            yield "the task's own, but told as external"
        is_proven = not (self.work.moved_head_only or self.work.are_logs_gone)  # without logs nothing says what came in
        if tags == {"foreign"} and path in own and is_proven:
            yield "came in from elsewhere, but told as the task's own"


def play(seed: int, template: Template, *, show: Callable[[str], None] = lambda _: None) -> None:
    """Plays one history. Raises Wrong."""
    folder = Path(tempfile.mkdtemp(prefix=f"handrail-history-{seed}-", dir=template.folder))
    try:
        with at_home(folder):
            History(seed, folder, template, show=show).play()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(first: int, last: int | None) -> int:
    wrong = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="handrail-histories-") as folder:
        template = Template(Path(folder))
        for seed in range(first, first + 1 if last is None else last):
            if seed % 500 == 0 and seed != first:
                print(f"{seed}: {wrong} wrong, {time.monotonic() - began:.0f} s", flush=True)
            try:
                play(seed, template, show=print if last is None else lambda _: None)
            except Wrong as problem:
                wrong += 1
                print(f"{problem}\n", flush=True)
            except Exception as problem:  # noqa: BLE001 - the others are played all the same
                wrong += 1
                print(f"history {seed}: {type(problem).__name__} {problem}\n", flush=True)
    number = 1 if last is None else last - first
    print(f"{number} histories, {wrong} wrong, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))
