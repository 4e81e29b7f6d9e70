"""Making worktrees: what comes of it, what is refused, what is taken up again, and eight processes at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.kernel.errors import PlaceUnusable, WorktreeRefused
from handrail.outside.worktrees import worktrees_at
from tests.outside.tracking.playground import BASE_FILES, Playground, environment, in_sight
from tests.outside.worktrees.grove import Grove


def test_a_worktree_is_made_on_a_new_branch_at_its_base(grove: Grove) -> None:
    made = grove.made("one")
    assert (made.branch, made.base_branch, made.existed) == ("work/one", "main", False)
    assert made.base_commit == grove.git("rev-parse", "main")
    assert in_sight(Path(made.path)).keys() == {name.encode() for name in BASE_FILES}
    assert grove.repo.git("branch", "--show-current", at=Path(made.path)) == "work/one"


def test_without_a_base_it_begins_at_head(grove: Grove) -> None:
    grove.git("checkout", "-q", "-b", "topic")
    grove.repo.append("a.txt")
    head = grove.repo.commit()
    made = grove.made("one", base=None)
    assert (made.base_branch, made.base_commit) == ("topic", head)


def test_a_base_whose_name_is_not_utf8_is_known_by_its_commit(grove: Grove) -> None:
    grove.git("checkout", "-q", "-b", "odd\udcff")
    made = grove.made("one", base=None)
    assert (made.base_branch, made.base_commit) == (None, grove.git("rev-parse", "HEAD"))
    assert grove.made("one", base=None).existed


def test_a_base_that_is_a_commit_has_no_branch(grove: Grove) -> None:
    first = grove.git("rev-parse", "main~1")
    made = grove.made("one", base=first)
    assert (made.base_branch, made.base_commit) == (None, first)


def test_a_branch_comes_before_a_tag_of_the_same_name(grove: Grove) -> None:
    grove.git("tag", "main", "main~1")
    assert grove.made("one").base_commit == grove.git("rev-parse", "refs/heads/main")


def test_the_users_status_stays_clean(grove: Grove) -> None:
    grove.make("one", path=str(grove.top / ".handrail/worktrees/one"))
    assert grove.git("status", "--porcelain", "-uall") == ""


def test_the_branch_follows_nothing(grove: Grove) -> None:
    grove.git("config", "branch.autoSetupMerge", "always")
    grove.make("one")
    assert grove.repo.git("config", "--get-regexp", r"^branch\.work", check=False) == ""


def test_the_same_again_finds_it_there(grove: Grove) -> None:
    first = grove.made("one")
    Playground(Path(first.path)).write("new.txt")
    again = grove.made("one")
    assert again.existed
    assert (again.path, again.base_commit) == (first.path, first.base_commit)
    assert Path(first.path, "new.txt").exists()


def test_a_base_that_moved_does_not_matter_the_second_time(grove: Grove) -> None:
    first = grove.made("one")
    grove.repo.append("a.txt")
    grove.repo.commit()
    assert grove.made("one").base_commit == first.base_commit


def test_a_branch_that_somebody_else_made_is_refused(grove: Grove) -> None:
    grove.git("branch", "work/one", "main")
    with pytest.raises(WorktreeRefused, match="already") as refused:
        grove.made("one")
    assert refused.value.hint
    assert not Path(grove.path("one")).exists()


def test_a_branch_that_is_checked_out_elsewhere_is_refused(grove: Grove) -> None:
    grove.make("one")
    with pytest.raises(WorktreeRefused):
        grove.trees.make(grove.path("two"), "work/one", "main")
    with pytest.raises(WorktreeRefused):
        grove.trees.make(grove.path("two"), "main", None)


def test_a_place_with_another_worktree_is_refused(grove: Grove) -> None:
    grove.make("one")
    with pytest.raises(WorktreeRefused, match="already"):
        grove.trees.make(grove.path("one"), "work/two", "main")
    assert "work/two" not in grove.branches()


def test_a_branch_below_a_branch_is_refused_by_name(grove: Grove) -> None:
    grove.git("branch", "work")
    with pytest.raises(WorktreeRefused, match="beside work"):
        grove.made("one")


def test_a_base_that_is_not_there_is_refused(grove: Grove) -> None:
    for base in ("nowhere", "--help", "-h", "main\0x", "\ud800", "", "main:a.txt"):
        with pytest.raises(WorktreeRefused):
            grove.made("one", base=base)
    assert grove.branches() == {"main"}


BRANCHES = [
    "",
    "-b",
    "--force",
    "a..b",
    "a b",
    "a~1",
    "main~1",
    "a^",
    "a:b",
    "x.lock",
    "x/.hidden",
    "@",
    "HEAD",
    "a@{1}",
    "refs/heads/x",
    "a\\b",
    "a\nb",
    "a\0b",
    "\ud800",
    "x/",
    "/x",
    "a//b",
    "a" * 300,
    "0123456789012345678901234567890123456789",
    "*",
    "a[b",
]


@pytest.mark.parametrize("branch", BRANCHES, ids=[ascii(name)[:20] for name in BRANCHES])
def test_a_name_that_is_no_branch_is_refused(grove: Grove, branch: str) -> None:
    with pytest.raises(WorktreeRefused) as refused:
        grove.trees.make(grove.path("one"), branch, "main")
    assert refused.value.hint
    assert grove.branches() == {"main"}
    assert not Path(grove.path("one")).exists()


def test_places_that_are_others_are_refused(grove: Grove, tmp_path: Path) -> None:
    grove.make("inner", path=str(grove.top / ".handrail/worktrees/inner"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("mine\n")
    (tmp_path / "link").symlink_to(tmp_path / "full")
    (tmp_path / "file").write_text("mine\n")
    top = str(grove.top)
    bad = [
        "relative/path",
        "",
        f"{top}/.git/here",
        f"{top}/.git",
        f"{top}/src/sub",
        f"{top}/new",
        top,
        str(tmp_path),
        "/",
        f"{top}/.handrail/worktrees",
        f"{top}/.handrail/worktrees/.made/x",
        f"{top}/.handrail/worktrees/.lock",
        f"{top}/.handrail/worktrees/inner/deeper",
        f"{top}/.handrail/snapshots/x",
        f"{top}/.handrail/worktrees/../../x",
        f"{tmp_path}/full",
        f"{tmp_path}/link",
        f"{tmp_path}/file",
        f"{tmp_path}/a\0b",
        f"{tmp_path}/a\nb",
        f"{tmp_path}/\ud800",
        f"{tmp_path}/other/.git/worktrees/x",
        f"{tmp_path}/{'long' * 1000}",
    ]
    for path in bad:
        with pytest.raises(WorktreeRefused) as refused:
            grove.trees.make(path, "work/x", "main")
        assert refused.value.hint, path
        assert "work/x" not in grove.branches(), path
    assert (tmp_path / "full/file").read_text() == "mine\n"


def test_a_link_above_the_place_is_followed_before_it_is_judged(grove: Grove, tmp_path: Path) -> None:
    (tmp_path / "sideways").symlink_to(grove.top / ".git")
    with pytest.raises(WorktreeRefused, match="git's own"):
        grove.trees.make(str(tmp_path / "sideways/x"), "work/x", "main")
    (tmp_path / "beside").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "beside")
    made = grove.trees.make(str(tmp_path / "alias/x"), "work/x", "main")
    assert made.path == str(tmp_path / "beside/x")
    assert grove.trees.make(str(tmp_path / "alias/x"), "work/x", "main").existed


def test_a_state_folder_that_is_a_link_is_refused(grove: Grove, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (grove.top / ".handrail").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PlaceUnusable):
        worktrees_at(grove.top)


def test_an_unborn_repository_is_refused(grove: Grove, tmp_path: Path) -> None:
    grove.git("init", "-q", str(tmp_path / "empty"))
    with pytest.raises(WorktreeRefused, match="no commit yet"):
        worktrees_at(tmp_path / "empty").make(str(tmp_path / "x"), "work/x", None)


def test_no_repository_and_a_bare_one_are_refused(grove: Grove, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    grove.git("clone", "-q", "--bare", str(grove.top), str(tmp_path / "bare"))
    for place in ("plain", "bare"):
        with pytest.raises(WorktreeRefused, match="no git repository"):
            worktrees_at(tmp_path / place).make(str(tmp_path / "x"), "work/x", None)


def test_a_repository_with_sha256_works(grove: Grove, tmp_path: Path) -> None:
    top = tmp_path / "long"
    grove.git("init", "-q", "--object-format=sha256", str(top))
    other = Grove(Playground(top))
    other.repo.write("a.txt", "one\n")
    other.repo.commit()
    tree = Playground(Path(other.trees.make(str(tmp_path / "x"), "work/x", None).path))
    tree.write("b.txt")
    assert other.trees.foresee({"x": str(tree.top)}, "main").clashes == ()
    tree.commit()
    done = other.trees.merge("work/x", "main", message="m", checks=None)
    assert len(done.commit) == 64
    tree.write("c.txt")
    removed = other.trees.remove(str(tree.top), base="main", delete_branch=True, ignored=False, dry_run=False)
    assert removed.kept_commit is not None
    assert other.git("show", f"{removed.kept_commit}:c.txt") == "something"


def test_submodules_are_not_checked_out_and_that_is_said(grove: Grove, tmp_path: Path) -> None:
    grove.git("clone", "-q", str(grove.top), str(tmp_path / "lib"))
    grove.git("submodule", "--quiet", "add", str(tmp_path / "lib"), "lib")
    grove.repo.commit("a submodule")
    made = grove.made("one")
    assert any("submodules" in note for note in made.notes)
    assert list(Path(made.path, "lib").iterdir()) == []
    looked = grove.trees.look({made.path: "main"})[made.path]
    assert (looked.dirty_count, looked.problem) == (0, None)
    assert grove.remove("one").removed


def test_a_folder_deleted_by_hand_is_made_again_with_what_was_staged(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("staged.txt", "only in the index\n")
    tree.git("add", "staged.txt")
    shutil.rmtree(tree.top)
    assert grove.made("one").existed
    assert tree.read("staged.txt") == b"only in the index\n"
    assert tree.git("status", "--porcelain") == ""


def test_after_a_prune_the_branch_is_taken_again(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("more.txt")
    head = tree.commit()
    shutil.rmtree(tree.top)
    grove.git("worktree", "prune", "--expire=now")
    made = grove.made("one")
    assert made.existed
    assert tree.git("rev-parse", "HEAD") == head


def test_a_moved_repository_is_told_and_mended_by_git(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("new.txt")
    moved = Grove(Playground(grove.top.rename(grove.top.with_name("moved"))))
    looked = moved.trees.look({str(tree.top): "main"})[str(tree.top)]
    assert "git worktree repair" in str(looked.problem)
    with pytest.raises(WorktreeRefused, match="not linked"):
        moved.made("one")
    assert "repair" in str(moved.remove("one").kept_because)
    moved.git("worktree", "repair", str(tree.top))
    assert moved.trees.look({str(tree.top): "main"})[str(tree.top)].dirty == ("new.txt",)


def test_a_worktree_cut_short_is_finished(grove: Grove) -> None:
    tree = grove.make("one")
    git_dir = Path(tree.git("rev-parse", "--absolute-git-dir"))
    (git_dir / "locked").write_text("initializing")
    (git_dir / "index").unlink()
    (git_dir / "index.lock").write_text("")
    tree.remove("src")
    tree.write("docs/guide.md", "# Gui")
    looked = grove.trees.look({str(tree.top): "main"})[str(tree.top)]
    assert "not made to the end" in str(looked.problem)
    assert grove.made("one").existed
    assert tree.git("status", "--porcelain") == ""
    assert not (git_dir / "locked").exists()


def on_no_branch_yet(grove: Grove, head: str) -> Path:
    """As git leaves it when it is killed after the worktree is on record and before it is on its branch."""
    tree = grove.make("one")
    git_dir = Path(tree.git("rev-parse", "--absolute-git-dir"))
    for name in tree.git("ls-files").splitlines():
        tree.remove(name)
    (git_dir / "locked").write_text("initializing")
    (git_dir / "index").unlink()
    (git_dir / "HEAD").write_text(f"{head}\n")
    (git_dir / "HEAD.lock").write_text("")
    return tree.top


def test_a_worktree_that_did_not_get_to_its_branch_is_finished(grove: Grove) -> None:
    top = on_no_branch_yet(grove, "0" * 40)
    made = grove.made("one")
    assert (made.existed, made.branch) == (True, "work/one")
    assert grove.git("-C", str(top), "status", "--porcelain", "--branch") == "## work/one"


def test_a_worktree_on_no_branch_that_is_somebodys_is_left_alone(grove: Grove) -> None:
    on_no_branch_yet(grove, grove.git("rev-parse", "main"))
    with pytest.raises(WorktreeRefused, match="on no branch"):
        grove.made("one")


def test_a_strangers_file_in_a_worktree_cut_short_is_left_alone(grove: Grove) -> None:
    tree = grove.make("one")
    git_dir = Path(tree.git("rev-parse", "--absolute-git-dir"))
    (git_dir / "locked").write_text("initializing")
    tree.write("docs/guide.md", "my own words\n")
    with pytest.raises(WorktreeRefused, match=r"docs/guide\.md"):
        grove.made("one")
    assert tree.read("docs/guide.md") == b"my own words\n"


def test_a_link_to_nowhere_is_not_in_the_way(grove: Grove) -> None:
    path = Path(grove.path("one"))
    path.mkdir(parents=True)
    (path / ".git").write_text(f"gitdir: {grove.top}/.git/worktrees/one\n")
    assert not grove.made("one").existed


def test_the_users_name_is_on_commits_and_another_where_there_is_none(grove: Grove) -> None:
    first = grove.make("one")
    first.write("new.txt")
    kept = grove.remove("one").kept_commit
    assert grove.git("log", "-1", "--format=%an <%ae> %cn", str(kept)) == "Somebody <somebody@example.org> Somebody"
    second = grove.make("two")
    second.write("new.txt")
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("")
    kept = grove.remove("two").kept_commit
    assert grove.git("log", "-1", "--format=%an <%ae> %cn", str(kept)) == "Handrail <handrail@localhost> Handrail"


def test_the_branchs_log_is_written(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("new.txt")
    grove.remove("one")
    assert "handrail" in grove.git("reflog", "work/one")


EIGHT = """
import json, sys
from pathlib import Path
from handrail.outside.worktrees import worktrees_at
trees = worktrees_at(Path(sys.argv[1]))
sys.stdin.readline()
found = []
for name in sys.argv[3:]:
    made = trees.make(f"{sys.argv[2]}/{name}", f"work/{name}", "main")
    found.append([made.branch, made.existed])
print(json.dumps(found))
"""


def test_eight_processes_make_worktrees_at_once(grove: Grove) -> None:
    trees = str(grove.top.parent / "trees")
    processes = []
    for number in range(8):
        command = [sys.executable, "-c", EIGHT, str(grove.top), trees, f"own{number}", "shared"]
        process = subprocess.Popen(
            command,
            env={**environment(), "PYTHONPATH": "src"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        processes.append(process)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    found = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        found += json.loads(out)
    assert sorted(branch for branch, _ in found if branch != "work/shared") == [f"work/own{n}" for n in range(8)]
    assert sorted(existed for branch, existed in found if branch == "work/shared") == [False] + [True] * 7
    for name in [*(f"own{number}" for number in range(8)), "shared"]:
        assert Playground(Path(trees, name)).git("status", "--porcelain") == ""
    assert len(grove.git("worktree", "list").splitlines()) == 10
