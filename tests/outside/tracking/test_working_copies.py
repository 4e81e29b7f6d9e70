"""Git where there is a repository, else the plain directory; and the choice stands until the task ends."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from handrail.domain.journal.ports import Snapshot
from handrail.kernel.clock import DAY_MS, FixedClock
from handrail.outside.tracking import git_process, tracker_at
from handrail.outside.tracking.working_copies import WorkingCopies
from handrail.outside.world import RandomIds, SystemClock
from tests.outside.tracking.playground import Playground, write_global_config


def copies_in(folder: Path) -> WorkingCopies:
    clock = SystemClock()
    return WorkingCopies(folder, clock=clock, ids=RandomIds(clock))


def test_a_repository_made_during_the_task_changes_nothing(tmp_path: Path) -> None:
    write_global_config()
    place = Playground(tmp_path / "plain")
    place.write("a.txt")
    place.write("b.txt")
    tracker = copies_in(tmp_path / "state")
    before = tracker.snapshot(str(place.top))
    assert before.kind == "checksum"
    place.git("init", "-q")
    place.append("a.txt")
    place.commit()
    after = tracker.snapshot(str(place.top), like=before)
    found = tracker.changes(before, after)
    assert [(change.path, change.change) for change in found.own] == [("a.txt", "modified")]


def test_without_git_a_repository_is_a_plain_directory(
    repo: Playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git_process.git_program.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    try:
        tracker = copies_in(tmp_path / "state")
        before = tracker.snapshot(str(repo.top))
        repo.append("a.txt")
        after = tracker.snapshot(str(repo.top), like=before)
    finally:
        git_process.git_program.cache_clear()
    assert before.kind == "checksum"
    assert [change.path for change in tracker.changes(before, after).own] == ["a.txt"]


def test_snapshots_survive_the_database(repo: Playground, tmp_path: Path) -> None:
    inner = repo.at("vendor/inner")
    inner.top.mkdir(parents=True)
    inner.git("init", "-q")
    inner.write("x.txt")
    tracker = copies_in(tmp_path / "state")
    before = tracker.snapshot(str(repo.top))
    stored = msgspec.json.decode(msgspec.json.encode(before), type=Snapshot)
    assert stored == before
    inner.append("x.txt")
    found = copies_in(tmp_path / "state").changes(stored, tracker.snapshot(str(repo.top), like=stored))
    assert [change.path for change in found.own] == ["vendor/inner/x.txt"]
    assert len(msgspec.json.encode(before)) < 2000


def test_the_shown_id_is_the_commit_or_the_tree(repo: Playground, tmp_path: Path) -> None:
    tracker = copies_in(tmp_path / "state")
    assert tracker.snapshot(str(repo.top)).shown_id == repo.git("rev-parse", "HEAD")
    repo.remove(".git")
    repo.git("init", "-q")
    unborn = tracker.snapshot(str(repo.top))
    assert unborn.commit is None
    assert unborn.shown_id == unborn.tree


def test_the_state_of_a_project_is_not_part_of_its_snapshots(repo: Playground) -> None:
    tracker = tracker_at(repo.top)
    before = tracker.snapshot(str(repo.top))
    after = tracker.snapshot(str(repo.top), like=before)
    assert (repo.top / ".handrail/snapshots").is_dir()
    assert before.tree == after.tree
    assert tracker.changes(before, after).own == []


def test_a_linked_worktree_has_its_own_tree_and_the_project_s_state(repo: Playground, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    tracker = tracker_at(repo.top)
    side = Playground(tmp_path / "side")
    before = tracker.snapshot(str(side.top))
    assert (before.root, before.branch) == (str(side.top), "side")
    repo.append("a.txt")
    side.append("b.txt")
    after = tracker.snapshot(str(side.top), like=before)
    assert [change.path for change in tracker.changes(before, after).own] == ["b.txt"]


def test_lines_are_counted(repo: Playground, tmp_path: Path) -> None:
    tracker = copies_in(tmp_path / "state")
    before = tracker.snapshot(str(repo.top))
    repo.write("a.txt", "one\n2\nthree\nfour\n")
    repo.write("picture.bin", b"\0\1\2")
    repo.path("src/lib.py").rename(repo.path("src/moved.py"))
    repo.append("src/moved.py", "# one more\n")
    found = tracker.changes(before, tracker.snapshot(str(repo.top), like=before))
    counts = {change.path: (change.lines_added, change.lines_removed, change.binary) for change in found.own}
    assert counts == {
        "a.txt": (2, 1, False),
        "picture.bin": (None, None, True),
        "src/moved.py": (1, 0, False),
        "src/lib.py": (0, 0, False),
    }
    assert [(name.from_path, name.to_path) for name in found.renamed] == [("src/lib.py", "src/moved.py")]


def test_git_leaves_the_state_alone_and_pruning_is_due_once_a_day(repo: Playground, tmp_path: Path) -> None:
    clock = FixedClock(SystemClock().now_ms())
    state = repo.top / ".handrail" / "snapshots"
    tracker = WorkingCopies(state, clock=clock, ids=RandomIds(clock))
    assert not tracker.is_due(DAY_MS)  # nothing has been kept yet
    tracker.snapshot(str(repo.top))
    assert repo.git("status", "--porcelain") == ""
    assert not tracker.is_due(DAY_MS)
    clock.advance(DAY_MS + 60_000)
    assert tracker.is_due(DAY_MS)
    clock.advance(-DAY_MS)
    assert not tracker.is_due(DAY_MS)
