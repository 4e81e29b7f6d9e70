"""Hostile repositories: nothing they name is ever run, and the answer is right all the same. Every trap is first shown
to work: plain git springs it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from handrail.domain.journal.entry import Changes
from handrail.outside.tracking.discovery import discover
from handrail.outside.tracking.git_process import Deadline
from handrail.outside.tracking.git_tracker import GitTracker
from tests.outside.tracking.canaries import CANARIES, Canary, program, spring
from tests.outside.tracking.conftest import tracker_in
from tests.outside.tracking.playground import Playground


def whole_task(repo: Playground, tracker: GitTracker) -> Changes:
    before = tracker.snapshot(str(repo.top))
    repo.append("b.txt", "by the task\n")
    repo.write("new.txt")
    after = tracker.snapshot(str(repo.top), like=before)
    list(tracker.patch(before, after))
    return tracker.changes(before, after)


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name)
def test_no_program_of_the_repository_runs(
    canary: Canary, repo: Playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    trap = program(repo, mark)
    canary.plant(repo, trap)
    mark.unlink(missing_ok=True)
    for name, value in canary.environment.items():
        monkeypatch.setenv(name, value.format(trap=trap))
    found = whole_task(repo, tracker_in(tmp_path / "state"))
    assert not mark.exists(), mark.read_text()
    assert {"b.txt", "new.txt"} <= {change.path for change in found.own}, found
    assert not found.partial


@pytest.mark.parametrize("canary", [canary for canary in CANARIES if canary.plain], ids=lambda canary: canary.name)
def test_plain_git_springs_the_trap(canary: Canary, repo: Playground, tmp_path: Path) -> None:
    """Without this, a canary that cannot sing would prove nothing."""
    if canary.name == "pager" and shutil.which("script") is None:
        pytest.skip("script(1) is not here")
    mark = tmp_path / "mark"
    trap = program(repo, mark)
    canary.plant(repo, trap)
    mark.unlink(missing_ok=True)
    spring(repo, canary, trap)
    assert mark.exists()


def test_a_working_tree_elsewhere_is_not_read(repo: Playground, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for place in (elsewhere, tmp_path, Path("/")):
        repo.git("config", "core.worktree", str(place))
        assert discover(str(repo.top), Deadline(10)) is None


def test_a_home_folder_is_no_project(repo: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(repo.top))
    assert discover(str(repo.top), Deadline(10)) is None
    assert discover(str(repo.top / "src"), Deadline(10)) is None


def test_variables_of_the_caller_do_not_lead_elsewhere(
    repo: Playground, tracker: GitTracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    shutil.copytree(repo.top, other, symlinks=True)
    index = (other / ".git/index").read_bytes()
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git/objects"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    found = whole_task(repo, tracker)
    assert [change.path for change in found.own] == ["b.txt", "new.txt"]
    assert (other / ".git/index").read_bytes() == index


def test_what_is_behind_a_link_is_not_read(repo: Playground, tracker: GitTracker, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("a secret that is nobody's business\n")
    repo.link("link", str(secret))
    repo.link("key", str(secret / "key"))
    before = tracker.snapshot(str(repo.top))
    (secret / "key").write_text("changed\n")
    after = tracker.snapshot(str(repo.top), like=before)
    assert tracker.changes(before, after).own == []
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert b"nobody's business" not in kept


def test_the_state_is_readable_by_nobody_else(repo: Playground, tracker: GitTracker, tmp_path: Path) -> None:
    tracker.snapshot(str(repo.top))
    for folder in (tmp_path / "state").glob("git-*"):
        assert folder.stat().st_mode & 0o077 == 0
