"""Taking worktrees away: what is kept, why a folder stays, what becomes of the branch, and what a dry run tells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.kernel.errors import WorktreeRefused
from handrail.outside.worktrees import worktrees_at
from tests.outside.tracking.playground import Playground, contents_of, environment
from tests.outside.worktrees.grove import Grove


def test_a_merged_worktree_goes_with_its_branch(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("new.txt")
    tree.commit()
    grove.merge("one")
    removed = grove.remove("one")
    assert (removed.removed, removed.branch_deleted, removed.kept_commit) == (True, True, None)
    assert removed.bytes_freed > 0
    assert not tree.top.exists()
    assert grove.branches() == {"main"}
    assert len(grove.git("worktree", "list").splitlines()) == 1


def test_unmerged_commits_keep_their_branch(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("new.txt")
    head = tree.commit()
    removed = grove.remove("one")
    assert (removed.removed, removed.branch_deleted) == (True, False)
    assert grove.git("rev-parse", "work/one") == head


def test_everything_uncommitted_is_committed_first(grove: Grove) -> None:
    tree = grove.make("one")
    tree.append("a.txt", "changed\n")
    tree.write("deep/untracked.txt", "untracked\n")
    tree.write("staged.txt", "staged\n")
    tree.git("add", "staged.txt")
    tree.remove("b.txt")
    tree.link("link", "a.txt")
    removed = grove.remove("one")
    assert removed.removed
    assert removed.committed_files == 5
    assert grove.git("rev-parse", "work/one") == removed.kept_commit
    shown = grove.git("show", "--format=", "--name-status", "work/one").splitlines()
    assert shown == ["M\ta.txt", "D\tb.txt", "A\tdeep/untracked.txt", "A\tlink", "A\tstaged.txt"]
    assert grove.git("show", "work/one:deep/untracked.txt") == "untracked"


def test_what_is_staged_otherwise_than_it_lies_there_is_kept_too(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("a.txt", "staged\n")
    tree.write("only-staged.txt", "only staged\n")
    tree.git("add", "-A")
    tree.write("a.txt", "in the folder\n")
    tree.remove("only-staged.txt")
    grove.remove("one")
    assert grove.git("show", "work/one:a.txt") == "in the folder"
    assert {b"staged\n", b"only staged\n", b"in the folder\n"} <= grove.contents()


def test_edits_that_git_was_told_to_overlook_are_kept(grove: Grove) -> None:
    tree = grove.make("one")
    tree.git("update-index", "--skip-worktree", "a.txt")
    tree.git("update-index", "--assume-unchanged", "b.txt")
    tree.write("a.txt", "hidden one\n")
    tree.write("b.txt", "hidden two\n")
    assert tree.git("status", "--porcelain") == ""
    assert grove.remove("one").committed_files == 2
    assert grove.git("show", "work/one:a.txt", "work/one:b.txt") == "hidden one\nhidden two"


def test_ignored_files_keep_the_folder_until_they_may_go(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("x.log", "ignored\n")
    tree.write("build/out", "ignored\n")
    tree.append("a.txt")
    before = contents_of(tree.top), grove.git("for-each-ref")
    removed = grove.remove("one")
    assert (removed.removed, removed.ignored_files) == (False, 2)
    assert "ignored" in str(removed.kept_because)
    assert (contents_of(tree.top), grove.git("for-each-ref")) == before
    removed = grove.remove("one", ignored=True)
    assert (removed.removed, removed.ignored_files) == (True, 2)
    assert removed.kept_commit


def test_handrails_own_files_in_a_worktree_count_as_ignored(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write(".handrail/handrail.db", b"a store\n")
    assert grove.remove("one").ignored_files == 1
    assert tree.path(".handrail/handrail.db").exists()


def test_a_dry_run_tells_the_same_and_changes_nothing(grove: Grove) -> None:
    for name in ("merged", "dirty", "ignored", "detached", "half"):
        tree = grove.make(name)
        tree.write(f"{name}.txt")
        tree.commit()
    grove.merge("merged")
    Playground(Path(grove.path("dirty"))).append("a.txt")
    Playground(Path(grove.path("ignored"))).write("x.log")
    detached = Playground(Path(grove.path("detached")))
    detached.git("checkout", "-q", "--detach")
    detached.write("more.txt")
    detached.commit()
    detached.write("uncommitted.txt")
    shutil.rmtree(grove.path("half"))
    before = contents_of(grove.top.parent)
    told = {name: grove.remove(name, dry_run=True) for name in ("merged", "dirty", "ignored", "detached", "half")}
    assert contents_of(grove.top.parent) == before
    for name, would in told.items():
        did = grove.remove(name)
        assert would == type(did)(**{f: getattr(did, f) for f in did.__struct_fields__ if f != "kept_commit"}), name
    assert told["merged"].branch_deleted
    assert told["detached"].kept_branch is not None


def test_a_dry_run_where_nothing_was_ever_made_makes_nothing(grove: Grove) -> None:
    grove.git("worktree", "add", "-q", grove.path("one"), "-b", "theirs")
    before = contents_of(grove.top)
    assert grove.remove("one", dry_run=True).removed
    assert contents_of(grove.top) == before


def test_the_main_working_copy_and_the_projects_own_are_never_removed(grove: Grove) -> None:
    for path in (str(grove.top), str(grove.top) + "/", f"{grove.top}/src/.."):
        with pytest.raises(WorktreeRefused, match="main working copy"):
            grove.trees.remove(path, base="main", delete_branch=True, ignored=True, dry_run=False)
    tree = grove.make("one")
    with pytest.raises(WorktreeRefused, match="project itself"):
        worktrees_at(tree.top).remove(str(tree.top), base="main", delete_branch=True, ignored=True, dry_run=False)
    for path in (str(grove.top / "src"), str(grove.top.parent)):
        with pytest.raises(WorktreeRefused):
            result = grove.trees.remove(path, base="main", delete_branch=True, ignored=True, dry_run=False)
            assert result.kept_because, path
            raise WorktreeRefused
    assert (grove.top / "src/app.py").exists()


def test_a_worktree_with_another_inside_stays(grove: Grove) -> None:
    outer = grove.make("outer")
    outer.git("worktree", "add", "-q", str(outer.path("inner")), "-b", "inner")
    with pytest.raises(WorktreeRefused, match="lies in"):
        grove.remove("outer", ignored=True)
    assert outer.path("inner/a.txt").exists()


def test_a_locked_worktree_stays(grove: Grove) -> None:
    tree = grove.make("one")
    grove.git("worktree", "lock", "--reason", "on a stick", grove.path("one"))
    assert "on a stick" in str(grove.remove("one").kept_because)
    assert tree.path("a.txt").exists()


def test_a_rebase_under_way_keeps_the_folder(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("a.txt", "one\n")
    tree.commit()
    grove.repo.write("a.txt", "main\n")
    grove.repo.commit()
    tree.git("rebase", "main", check=False)
    assert "under way" in str(grove.remove("one").kept_because)
    assert b"<<<<<<<" in tree.read("a.txt")


def test_an_index_with_conflicts_keeps_the_folder(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("a.txt", "stashed\n")
    tree.git("stash")
    tree.write("a.txt", "committed\n")
    tree.commit()
    tree.git("stash", "pop", check=False)
    assert "conflicts" in str(grove.remove("one").kept_because)


def test_commits_of_a_detached_head_get_a_branch(grove: Grove) -> None:
    tree = grove.make("one")
    tree.git("checkout", "-q", "--detach")
    tree.write("loose.txt", "loose\n")
    head = tree.commit()
    tree.write("looser.txt", "looser\n")
    removed = grove.remove("one")
    assert removed.removed
    assert removed.kept_branch == f"handrail/kept-{head[:12]}"
    assert grove.git("rev-parse", f"{removed.kept_branch}~1") == head
    assert grove.git("show", f"{removed.kept_branch}:looser.txt") == "looser"
    assert "work/one" in grove.branches()


def test_a_detached_head_that_a_branch_holds_needs_none(grove: Grove) -> None:
    tree = grove.make("one")
    tree.git("checkout", "-q", "--detach")
    assert grove.remove("one").kept_branch is None
    assert grove.branches() == {"main", "work/one"}


def test_commits_that_only_the_worktrees_log_knows_get_a_branch(grove: Grove) -> None:
    tree = grove.make("one")
    tree.git("checkout", "-q", "--detach")
    tree.write("loose.txt", "loose\n")
    loose = tree.commit()
    tree.git("checkout", "-q", "work/one")
    assert grove.remove("one").removed
    assert loose in grove.commits()


def test_a_squashed_branch_goes_and_its_commits_stay_out_of_sight(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("new.txt", "first\n")
    tree.commit()
    tree.write("new.txt", "second\n")
    head = tree.commit()
    grove.git("merge", "-q", "--squash", "work/one")
    grove.repo.commit("squashed")
    removed = grove.remove("one")
    assert removed.branch_deleted
    assert grove.branches() == {"main"}
    assert head in grove.commits()


def test_a_branch_whose_content_was_taken_back_stays(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("new.txt", "first\n")
    tree.commit()
    grove.git("merge", "-q", "--squash", "work/one")
    squashed = grove.repo.commit("squashed")
    grove.git("revert", "--no-edit", squashed)
    assert not grove.remove("one").branch_deleted
    assert "work/one" in grove.branches()


def test_a_branch_stays_without_a_base_or_when_it_is_the_base(grove: Grove) -> None:
    grove.make("one")
    assert not grove.remove("one", base=None).branch_deleted
    grove.make("two")
    assert not grove.remove("two", base="work/two").branch_deleted
    grove.make("three")
    assert not grove.remove("three", base="nowhere").branch_deleted
    assert grove.branches() == {"main", "work/one", "work/two", "work/three"}


def test_a_repository_inside_with_work_of_its_own_keeps_the_folder(grove: Grove, tmp_path: Path) -> None:
    tree = grove.make("one")
    inner = tree.at("vendor/inner")
    grove.git("init", "-q", str(inner.top))
    inner.write("x.txt", "of the inner one\n")
    inner.commit()
    removed = grove.remove("one", ignored=True)
    assert not removed.removed
    assert "vendor/inner" in str(removed.kept_because)
    assert inner.path("x.txt").exists()


def test_a_clean_clone_in_an_ignored_folder_may_go(grove: Grove) -> None:
    tree = grove.make("one")
    grove.git("clone", "-q", str(grove.top), str(tree.path("build/clone")))
    assert not grove.remove("one").removed
    tree.at("build/clone").write("x.txt")
    assert "build/clone" in str(grove.remove("one", ignored=True).kept_because)
    tree.at("build/clone").commit()
    assert "build/clone" in str(grove.remove("one", ignored=True).kept_because)
    tree.at("build/clone").git("push", "-q", "origin", "HEAD:refs/heads/from-inside")
    assert grove.remove("one", ignored=True).removed


def test_a_submodule_with_unpushed_commits_keeps_the_folder(grove: Grove, tmp_path: Path) -> None:
    grove.git("clone", "-q", str(grove.top), str(tmp_path / "lib"))
    grove.git("submodule", "--quiet", "add", str(tmp_path / "lib"), "lib")
    grove.repo.commit("a submodule")
    tree = grove.make("one")
    tree.git("submodule", "--quiet", "update", "--init")
    tree.at("lib").write("deep.txt", "in the submodule\n")
    assert "lib" in str(grove.remove("one").kept_because)
    tree.at("lib").commit()
    assert "lib" in str(grove.remove("one").kept_because)
    assert tree.path("lib/deep.txt").exists()


def test_files_under_a_filter_that_is_not_run_keep_the_folder(grove: Grove) -> None:
    grove.repo.write(".gitattributes", "*.dat filter=secret\n")
    grove.repo.write("x.dat", "stored\n")
    grove.repo.commit()
    grove.git("config", "filter.secret.clean", "cat")
    tree = grove.make("one")
    tree.write("x.dat", "edited\n")
    assert "filter" in str(grove.remove("one").kept_because)
    assert tree.read("x.dat") == b"edited\n"


def test_read_only_folders_are_deleted_too(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("build/cache/x")
    tree.path("build/cache").chmod(0o555)
    assert grove.remove("one", ignored=True).removed
    assert not tree.top.exists()


def test_a_link_out_of_the_worktree_is_removed_and_not_followed(grove: Grove, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_text("mine\n")
    tree = grove.make("one")
    tree.link("build", str(tmp_path / "precious"))
    tree.link("out", str(tmp_path / "precious"))
    assert grove.remove("one", ignored=True).removed
    assert (tmp_path / "precious/file").read_text() == "mine\n"


def test_a_folder_deleted_by_hand_is_cleared_up_and_its_index_kept(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("staged.txt", "only in the index\n")
    tree.git("add", "staged.txt")
    shutil.rmtree(tree.top)
    removed = grove.remove("one")
    assert removed.removed
    assert removed.kept_commit
    assert grove.git("show", "work/one:staged.txt") == "only in the index"
    assert len(grove.git("worktree", "list").splitlines()) == 1


def test_what_is_not_there_is_removed_and_what_is_no_worktree_stays(grove: Grove, tmp_path: Path) -> None:
    assert grove.remove("never").removed
    plain = Path(grove.path("plain"))
    plain.mkdir(parents=True)
    (plain / "file").write_text("mine\n")
    assert not grove.remove("plain", ignored=True).removed
    assert (plain / "file").exists()


def test_a_removed_worktree_is_made_again_where_it_was(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("untracked.txt", "kept\n")
    base = grove.git("rev-parse", "main")
    grove.remove("one")
    grove.repo.append("b.txt")
    grove.repo.commit()
    made = grove.made("one")
    assert (made.existed, made.base_commit) == (True, base)
    assert tree.read("untracked.txt") == b"kept\n"


WRITER = """
import sys
from pathlib import Path
folder, number = Path(sys.argv[1]), 0
print("ready", flush=True)
while True:
    try:
        (folder / f"n{number}.txt").write_text(f"written {number}\\n")
    except FileNotFoundError:
        break
    print(number, flush=True)
    number += 1
    if number >= 20000:
        break
"""


def test_nothing_is_lost_to_somebody_who_writes_all_the_while(grove: Grove) -> None:
    tree = grove.make("one")
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tree.top)], stdout=subprocess.PIPE, env=environment(), text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    for _ in range(20):
        writer.stdout.readline()
    removed = grove.remove("one")
    if not removed.removed:
        writer.kill()
    written = [line for line in writer.stdout.read().split() if line.isdigit()]
    writer.wait()
    writer.stdout.close()
    contents = grove.contents()
    missing = [number for number in written if f"written {number}\n".encode() not in contents]
    assert missing == []


def test_a_gone_folder_on_a_detached_head_keeps_its_commits_and_its_index(grove: Grove) -> None:
    tree = grove.make("one")
    tree.git("checkout", "-q", "--detach")
    tree.write("loose.txt", "loose\n")
    head = tree.commit()
    tree.write("staged.txt", "only in the index\n")
    tree.git("add", "staged.txt")
    shutil.rmtree(tree.top)
    would = grove.remove("one", dry_run=True)
    removed = grove.remove("one")
    assert would.kept_branch == removed.kept_branch == f"handrail/kept-{head[:12]}"
    assert grove.git("show", f"{removed.kept_branch}:staged.txt") == "only in the index"
    assert head in grove.commits()


def test_a_half_removed_folder_with_something_new_is_put_back(grove: Grove) -> None:
    tree = grove.make("one")
    grove.git("worktree", "lock", "--reason", "handrail: being removed", grove.path("one"))
    away = tree.top.rename(tree.top.with_name(".one.handrail-removing"))
    shutil.rmtree(away / "src")
    (away / "since.txt").write_text("written since\n")
    assert "since.txt" in str(grove.remove("one", dry_run=True).kept_because)
    assert away.exists()
    assert "since.txt" in str(grove.remove("one").kept_because)
    assert tree.git("status", "--porcelain") == "?? since.txt"
    assert grove.remove("one").kept_commit
