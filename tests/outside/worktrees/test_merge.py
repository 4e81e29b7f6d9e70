"""Merging a branch into its base: real conflicts, checks, working copies in the way, and bases that move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.kernel.errors import ChecksFailed, MergeConflict, WorktreeRefused, WouldLoseWork
from handrail.outside.worktrees import worktrees_at
from tests.outside.tracking.playground import Playground, contents_of
from tests.outside.worktrees.grove import Grove


def refs(grove: Grove) -> str:
    return grove.git("for-each-ref")


def test_a_branch_becomes_part_of_its_base_by_a_merge_commit(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("new.txt", "new\n")
    head, base = tree.commit(), grove.git("rev-parse", "main")
    done = grove.merge("one")
    assert grove.git("rev-parse", "main") == done.commit
    assert grove.git("log", "-1", "--format=%P|%s|%an", "main") == f"{base} {head}|Merge one|Somebody"
    assert not done.already
    assert grove.repo.read("new.txt") == b"new\n"
    assert grove.git("status", "--porcelain") == ""
    assert "handrail: merge work/one" in grove.git("reflog", "main")
    assert "handrail: merge work/one" in grove.git("reflog", "HEAD")


def test_a_second_time_it_is_there_already(grove: Grove) -> None:
    grove.make("one").write("new.txt")
    Playground(Path(grove.path("one"))).commit()
    done = grove.merge("one")
    grove.repo.append("b.txt")
    grove.repo.commit()
    again = grove.merge("one")
    assert (again.already, again.commit) == (True, done.commit)


def test_a_base_that_is_checked_out_nowhere_is_moved(grove: Grove) -> None:
    grove.git("checkout", "-q", "-b", "elsewhere")
    grove.make("one").write("new.txt")
    Playground(Path(grove.path("one"))).commit()
    done = grove.merge("one")
    assert grove.git("rev-parse", "main") == done.commit
    assert not grove.repo.path("new.txt").exists()


def test_a_conflict_changes_nothing_at_all(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("a.txt", "1\ntwo\nthree\n")
    tree.write("fine.txt")
    tree.commit()
    grove.repo.write("a.txt", "0\ntwo\nthree\n")
    grove.repo.commit()
    with pytest.raises(WorktreeRefused):
        grove.trees.merge("work/never", "main", message="m", checks=None)
    before = contents_of(grove.top)
    with pytest.raises(MergeConflict, match=r"a\.txt") as refused:
        grove.merge("one")
    assert refused.value.details["paths"] == ["a.txt"]
    assert contents_of(grove.top) == before


def test_uncommitted_work_of_the_branch_is_named_and_not_left_behind(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("done.txt")
    tree.commit()
    tree.append("a.txt")
    tree.write("new.txt")
    before = refs(grove)
    with pytest.raises(WouldLoseWork, match=r"a\.txt, new\.txt"):
        grove.merge("one")
    assert refs(grove) == before


def test_local_changes_elsewhere_in_the_base_stay(grove: Grove) -> None:
    tree = grove.make("one")
    tree.append("a.txt", "by the branch\n")
    tree.write("deep/new.txt")
    tree.remove("docs/guide.md")
    tree.commit()
    grove.repo.append("b.txt", "mine\n")
    grove.repo.write("staged.txt", "mine\n")
    grove.git("add", "staged.txt")
    grove.repo.write("untracked.txt", "mine\n")
    grove.repo.write("ignored.log", "mine\n")
    grove.merge("one")
    assert grove.git("status", "--porcelain").split("\n") == ["M b.txt", "A  staged.txt", "?? untracked.txt"]
    assert grove.repo.read("a.txt").endswith(b"by the branch\n")
    assert grove.repo.path("deep/new.txt").exists()
    assert not grove.repo.path("docs").exists()
    assert grove.repo.read("ignored.log") == b"mine\n"


IN_THE_WAY: dict[str, Callable[[Playground], object]] = {
    "a changed file": lambda repo: repo.append("a.txt", "mine\n"),
    "a staged file": lambda repo: repo.git("update-index", "--chmod=+x", "a.txt"),
    "a deleted file": lambda repo: repo.remove("a.txt"),
    "an untracked file": lambda repo: repo.write("new.txt", "mine\n"),
    "an ignored file": lambda repo: repo.write("result.log", "mine\n"),
    "a file where a folder goes": lambda repo: repo.write("deep", "mine\n"),
    "an ignored folder where a file goes": lambda repo: repo.write("place/build/x", "mine\n"),
    "a link where a folder goes": lambda repo: repo.link("deep", "src"),
}


@pytest.mark.parametrize("case", IN_THE_WAY)
def test_what_is_in_the_way_in_the_bases_working_copy_is_named_and_kept(grove: Grove, case: str) -> None:
    tree = grove.make("one")
    tree.append("a.txt", "by the branch\n")
    tree.write("new.txt", "by the branch\n")
    tree.write("deep/new.txt")
    tree.write("place")
    tree.write("result.log", "by the branch\n")
    tree.git("add", "-f", "result.log")
    tree.commit()
    IN_THE_WAY[case](grove.repo)
    before = refs(grove), contents_of(grove.top / "src"), grove.git("status", "--porcelain", "--ignored")
    with pytest.raises(WouldLoseWork) as refused:
        grove.merge("one")
    assert refused.value.details["paths"]
    after = refs(grove), contents_of(grove.top / "src"), grove.git("status", "--porcelain", "--ignored")
    assert after == before
    assert not (grove.top / ".git/index.lock").exists()


def test_a_file_that_only_seems_changed_is_not_in_the_way(grove: Grove) -> None:
    tree = grove.make("one")
    tree.append("a.txt")
    tree.commit()
    grove.repo.write("a.txt", grove.repo.read("a.txt"))
    grove.merge("one")
    assert grove.git("status", "--porcelain") == ""


def test_a_merge_under_way_in_the_base_is_let_be(grove: Grove) -> None:
    grove.make("one").append("b.txt")
    Playground(Path(grove.path("one"))).commit()
    grove.git("checkout", "-q", "-b", "side", "main~1")
    grove.repo.write("a.txt", "side\n")
    grove.repo.commit()
    grove.git("checkout", "-q", "main")
    grove.repo.write("a.txt", "main\n")
    grove.repo.commit()
    grove.repo.git("merge", "side", check=False)
    with pytest.raises(WouldLoseWork, match="merge is under way"):
        grove.merge("one")
    assert (grove.top / ".git/MERGE_HEAD").exists()


def test_another_git_at_work_is_waited_out_by_refusing(grove: Grove) -> None:
    grove.make("one").append("b.txt")
    Playground(Path(grove.path("one"))).commit()
    (grove.top / ".git/index.lock").write_text("")
    before = refs(grove)
    with pytest.raises(WorktreeRefused, match="another git is at work"):
        grove.merge("one")
    assert refs(grove) == before
    assert (grove.top / ".git/index.lock").exists()


def test_checks_run_on_the_merged_result_and_only_then_it_counts(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("new.txt", "new\n")
    tree.commit()
    grove.repo.write("other.txt", "other\n")
    grove.repo.commit()
    before = refs(grove)
    folders = []

    def check(folder: str) -> list[dict[str, object]]:
        folders.append(folder)
        seen = Path(folder, "new.txt").exists() and Path(folder, "other.txt").exists()
        Path(folder, "left-behind").write_text("by a check\n")
        assert refs(grove) == before
        return [{"name": "seen", "passed": seen}, {"name": "always", "passed": len(folders) > 1}]

    with pytest.raises(ChecksFailed, match="always") as refused:
        grove.trees.merge("work/one", "main", message="m", checks=check)
    assert refused.value.details["checks"][0] == {"name": "seen", "passed": True}
    assert refs(grove) == before
    done = grove.trees.merge("work/one", "main", message="m", checks=check)
    assert done.checks[1]["passed"]
    assert not any(Path(folder).exists() for folder in folders)
    assert len(grove.git("worktree", "list").splitlines()) == 2


def test_checks_that_break_leave_nothing(grove: Grove) -> None:
    grove.make("one").append("b.txt")
    Playground(Path(grove.path("one"))).commit()
    before = refs(grove)

    def broken(folder: str) -> list[dict[str, object]]:
        raise RuntimeError(folder)

    with pytest.raises(RuntimeError):
        grove.trees.merge("work/one", "main", message="m", checks=broken)
    assert refs(grove) == before
    assert len(grove.git("worktree", "list").splitlines()) == 2


def test_a_base_that_moves_meanwhile_is_merged_with_anew(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("new.txt")
    tree.commit()
    calls: list[str] = []

    def check(folder: str) -> list[dict[str, object]]:
        calls.append(folder)
        if len(calls) < 3:
            grove.repo.write(f"meanwhile{len(calls)}.txt")
            grove.repo.commit()
        return [{"name": "fine", "passed": True}]

    done = grove.trees.merge("work/one", "main", message="m", checks=check)
    assert len(calls) == 3
    assert grove.git("rev-parse", "main") == done.commit
    assert grove.repo.path("meanwhile2.txt").exists()
    assert grove.git("status", "--porcelain") == ""


def test_a_base_that_always_moves_ends_it(grove: Grove) -> None:
    grove.make("one").write("new.txt")
    Playground(Path(grove.path("one"))).commit()
    count = iter(range(100))

    def check(folder: str) -> list[dict[str, object]]:
        grove.repo.write(f"meanwhile{next(count)}.txt")
        grove.repo.commit()
        return []

    with pytest.raises(WorktreeRefused, match="moved by others"):
        grove.trees.merge("work/one", "main", message="m", checks=check)


def test_a_base_must_be_a_branch_and_no_other_name_for_one(grove: Grove) -> None:
    grove.make("one").write("new.txt")
    Playground(Path(grove.path("one"))).commit()
    grove.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    grove.git("tag", "v1")
    for base in ("nowhere", "v1", "main~1", "HEAD", "alias", "--all", "a\0b", grove.git("rev-parse", "main")):
        with pytest.raises(WorktreeRefused):
            grove.merge("one", base)


def test_unrelated_histories_are_refused(grove: Grove) -> None:
    grove.git("checkout", "-q", "--orphan", "alien")
    grove.repo.commit("alien")
    grove.git("checkout", "-q", "main")
    with pytest.raises(WorktreeRefused, match="no commit in common"):
        grove.trees.merge("alien", "main", message="m", checks=None)


def test_a_base_being_rebased_is_let_be(grove: Grove) -> None:
    grove.make("one").write("new.txt")
    Playground(Path(grove.path("one"))).commit()
    grove.git("checkout", "-q", "-b", "side", "main~1")
    grove.repo.write("b.txt", "side\n")
    grove.repo.commit()
    grove.git("checkout", "-q", "main")
    grove.repo.git("rebase", "side", check=False)
    before = refs(grove)
    with pytest.raises(WorktreeRefused, match="in use"):
        grove.merge("one")
    assert refs(grove) == before


def test_the_bases_own_worktree_follows_too(grove: Grove) -> None:
    """The base may be checked out in a linked worktree."""
    integration = grove.make("base")
    worktrees_at(grove.top).make(grove.path("one"), "work/one", "work/base")
    tree = Playground(Path(grove.path("one")))
    tree.write("new.txt")
    tree.commit()
    grove.merge("one", "work/base")
    assert integration.path("new.txt").exists()
    assert integration.git("status", "--porcelain") == ""
    assert not grove.repo.path("new.txt").exists()


def test_eight_merges_in_a_row_keep_everything(grove: Grove) -> None:
    heads = []
    for number in range(8):
        tree = grove.make(f"t{number}")
        tree.write(f"n{number}.txt", f"{number}\n")
        heads.append(tree.commit())
    for number in range(8):
        grove.merge(f"t{number}")
    assert set(heads) <= set(grove.git("rev-list", "main").split())
    assert all(grove.repo.path(f"n{number}.txt").exists() for number in range(8))
