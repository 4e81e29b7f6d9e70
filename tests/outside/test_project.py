"""Where a project's state lives, on real git repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from handrail.outside.project import find_project, repository_root


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "main"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_folder_inside_a_repository_belongs_to_its_root(repository: Path) -> None:
    inner = repository / "a" / "b"
    inner.mkdir(parents=True)
    assert find_project(inner) == repository


def test_a_linked_worktree_shares_the_main_ones_state(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert find_project(tmp_path / "linked") == repository


def test_a_submodule_is_its_own_project(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(repository), "sub")
    assert find_project(outer / "sub") == outer / "sub"


def test_a_worktree_of_a_bare_repository_is_its_own_project(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "tree"))
    assert find_project(tmp_path / "tree") == tmp_path / "tree"


def test_outside_git_the_given_folder_is_the_project(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    assert find_project(folder) == folder


def test_a_git_file_that_leads_nowhere_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n", encoding="utf-8")
    assert find_project(tmp_path) == tmp_path


def test_any_path_in_a_repository_names_its_root(repository: Path, tmp_path: Path) -> None:
    (repository / "a").mkdir()
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    link = tmp_path / "link"
    link.symlink_to(repository)
    for path in (repository, repository / "a", tmp_path / "linked", link, f"{repository}/", f"{repository}/a/.."):
        assert repository_root(str(path)) == str(repository)


def test_a_path_that_is_not_here_is_only_tidied(tmp_path: Path) -> None:
    assert repository_root("/no/such//place/../shop/") == "/no/such/shop"
    assert repository_root(f"/{'x' * 5000}") == f"/{'x' * 5000}"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert repository_root(str(loop)) == str(loop)
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    assert repository_root(str(file)) == str(file)
