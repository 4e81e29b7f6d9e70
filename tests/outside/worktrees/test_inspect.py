"""What git says of worktrees, and that one that is broken never hides the others."""

from __future__ import annotations

import shutil
from pathlib import Path

from handrail.domain.workspaces.worktrees import WorktreeState
from tests.outside.tracking.playground import contents_of
from tests.outside.worktrees.grove import Grove


def look(grove: Grove, name: str, base: str | None = "main") -> WorktreeState:
    return grove.trees.look({grove.path(name): base})[grove.path(name)]


def test_everything_about_one_worktree(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("more.txt")
    head = tree.commit()
    grove.repo.write("other.txt")
    grove.repo.commit()
    tree.append("a.txt")
    tree.write("staged.txt")
    tree.git("add", "staged.txt")
    tree.write("deep/new.txt")
    tree.write("deep/newer.txt")
    tree.write("x.log")
    tree.write("build/1")
    tree.write("build/2")
    looked = look(grove, "one")
    assert looked.dirty == ("a.txt", "deep/new.txt", "deep/newer.txt", "staged.txt")
    assert (looked.exists, looked.branch, looked.head) == (True, "work/one", head)
    assert (looked.dirty_count, looked.ignored_count, looked.ahead, looked.behind) == (4, 2, 1, 1)
    assert looked.bytes_used is not None
    assert looked.bytes_used > 0
    assert (looked.locked_by, looked.problem) == (None, None)


def test_the_first_ten_files_are_named_and_all_are_counted(grove: Grove) -> None:
    tree = grove.make("one")
    for number in range(25):
        tree.write(f"n{number:02}.txt")
    looked = look(grove, "one")
    assert (len(looked.dirty), looked.dirty_count) == (10, 25)


def test_looking_changes_nothing(grove: Grove) -> None:
    tree = grove.make("one")
    tree.append("a.txt")
    before = contents_of(grove.top), contents_of(tree.top)
    look(grove, "one")
    assert (contents_of(grove.top), contents_of(tree.top)) == before


def test_a_folder_that_is_gone_is_told_before_and_after_a_prune(grove: Grove) -> None:
    tree = grove.make("one")
    shutil.rmtree(tree.top)
    looked = look(grove, "one")
    assert (looked.exists, looked.branch) == (False, "work/one")
    grove.git("worktree", "prune", "--expire=now")
    assert look(grove, "one") == WorktreeState(path=grove.path("one"), exists=False)


def test_a_detached_head_has_no_branch(grove: Grove) -> None:
    tree = grove.make("one")
    tree.git("checkout", "-q", "--detach")
    assert (look(grove, "one").branch, look(grove, "one").head) == (None, grove.git("rev-parse", "main"))


def test_a_lock_is_told_with_its_reason(grove: Grove) -> None:
    grove.make("one")
    grove.git("worktree", "lock", "--reason", "on a stick", grove.path("one"))
    assert look(grove, "one").locked_by == "on a stick"


def test_broken_ones_hide_nobody(grove: Grove, tmp_path: Path) -> None:
    good = grove.make("good")
    good.append("a.txt")
    grove.make("headless")
    git_dir = Path(grove.make("headless").git("rev-parse", "--absolute-git-dir"))
    (git_dir / "HEAD").write_text("nonsense\n")
    (grove.make("indexless").top / ".git").write_text("gitdir: /nowhere\n")
    (tmp_path / "plain").mkdir()
    paths: dict[str, str | None] = {grove.path(name): "main" for name in ("good", "headless", "indexless", "never")}
    looked = grove.trees.look({**paths, str(tmp_path / "plain"): "main"})
    assert looked[grove.path("good")].dirty == ("a.txt",)
    assert looked[grove.path("headless")].problem
    assert looked[grove.path("indexless")].problem
    assert not looked[grove.path("never")].exists
    assert "no worktree" in str(looked[str(tmp_path / "plain")].problem)


def test_a_base_that_is_not_there_is_a_problem_beside_the_rest(grove: Grove) -> None:
    grove.make("one").append("a.txt")
    looked = look(grove, "one", "nowhere")
    assert looked.dirty == ("a.txt",)
    assert "nowhere" in str(looked.problem)
    assert look(grove, "one", None).problem is None
