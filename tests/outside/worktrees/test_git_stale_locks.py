"""Locks that a killed git left behind are let go; anybody else's are not touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.kernel.errors import WorktreeRefused
from handrail.outside.worktrees.git import drop_left, write_note
from tests.outside.worktrees.grove import Grove


def test_a_lock_that_a_note_names_goes_and_others_stay(tmp_path: Path) -> None:
    value = "a" * 40
    contents = {"empty": "", "ours": value + "\n", "theirs": "b" * 40 + "\n", "unnamed": ""}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    note = str(tmp_path / "note")
    write_note(note, [str(tmp_path / name) for name in ("empty", "ours", "theirs", "never")], value)
    drop_left(note, lambda: None)
    assert {path.name for path in tmp_path.iterdir()} == {"theirs", "unnamed"}


def test_a_lock_that_is_another_one_by_now_stays(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text("")
    write_note(str(tmp_path / "note"), [str(lock)], None)

    def somebody_else_locks() -> None:
        lock.rename(tmp_path / "old")
        lock.write_text("")

    drop_left(str(tmp_path / "note"), somebody_else_locks)
    assert lock.exists()


def test_a_branch_locked_by_a_git_that_was_killed_is_free_again(grove: Grove) -> None:
    grove.make("first")
    lock = grove.top / ".git/refs/heads" / "work" / "one.lock"
    lock.write_text("")
    with pytest.raises(WorktreeRefused):
        grove.made("one")
    assert lock.exists() or not grove.made("one").existed
    lock.write_text("")
    write_note(str(grove.top / ".git/handrail.writing"), [str(lock)], grove.git("rev-parse", "main"))
    assert grove.made("one").branch == "work/one"
    assert not lock.exists()


def test_a_note_that_is_nonsense_is_in_nobodys_way(grove: Grove) -> None:
    grove.make("first")
    (grove.top / ".git/handrail.writing").write_text("nonsense")
    assert grove.made("one").branch == "work/one"


def test_a_note_that_came_with_the_repository_names_nothing_outside_of_gits_folder(tmp_path: Path) -> None:
    git_dir, precious = tmp_path / ".git", tmp_path / "precious"
    git_dir.mkdir()
    precious.touch()
    (git_dir / "refs").symlink_to(tmp_path)
    (git_dir / "mine.lock").touch()
    named = [str(precious), str(git_dir / ".." / "precious"), str(git_dir / "refs" / "precious")]
    write_note(str(git_dir / "note"), [*named, str(git_dir / "mine.lock")], None)
    drop_left(str(git_dir / "note"), lambda: None)
    assert precious.exists()
    assert not (git_dir / "mine.lock").exists()
    (git_dir / "note").write_text('{"locks": ["no hex"], "value": null}', encoding="utf-8")
    drop_left(str(git_dir / "note"), lambda: None)
    assert not (git_dir / "note").exists()
