"""A store's files before they are opened, and that hooks decide about them as servers do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from handrail.hooks.provenance import is_believed
from handrail.kernel.errors import StoreNotTrusted
from handrail.outside.store_files import check_store_files, close_to_others, foreign_signs, open_signs
from handrail.outside.trusted_stores import about_file, agree

GOOD = b"SQLite format 3\0\x10\x00\2\2" + b"\0" * 9000


@pytest.fixture
def store(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    (repo / ".handrail").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=repo, check=True)
    file = repo / ".handrail" / "handrail.db"
    file.write_bytes(GOOD)
    file.chmod(0o600)
    return file


def make_tracked(store: Path) -> None:
    subprocess.run(["git", "add", "-f", str(store)], cwd=store.parent, check=True)


def make_tracked_in_part(store: Path) -> None:
    """An index that shares most of what it lists with another file."""
    make_tracked(store)
    subprocess.run(["git", "update-index", "--split-index"], cwd=store.parent, check=True)


def make_tracked_in_a_worktree(store: Path) -> None:
    """A `.git` that is a file and leads to the index."""
    top = store.parent.parent
    make_tracked(store)
    (top / ".git").rename(top.parent / "elsewhere")
    (top / ".git").write_text(f"gitdir: {top.parent / 'elsewhere'}\n", encoding="utf-8")


def make_loose(store: Path) -> None:
    store.chmod(0o644)


def make_loose_log(store: Path) -> None:
    Path(f"{store}-wal").touch()
    Path(f"{store}-wal").chmod(0o644)


def make_link(store: Path) -> None:
    Path(f"{store}-wal").symlink_to("/nowhere")


def make_journal(store: Path) -> None:
    Path(f"{store}-journal").write_bytes(b"x" * 600)
    Path(f"{store}-journal").chmod(0o600)


def make_nothing(_store: Path) -> None:
    """The way a store should be."""


@pytest.mark.parametrize(
    ("make", "kind", "agreeable"),
    [
        (make_nothing, "", True),
        (make_tracked, "tracked", True),
        (make_tracked_in_part, "tracked", True),
        (make_tracked_in_a_worktree, "tracked", True),
        (make_loose, "mode", True),
        (make_loose_log, "mode", True),
        (make_link, "link", False),
        (make_journal, "journal", False),
    ],
)
def test_servers_and_hooks_decide_the_same(store: Path, tmp_path: Path, make, kind: str, agreeable: bool) -> None:  # type: ignore[no-untyped-def]
    home = tmp_path / "home"
    make(store)
    assert [sign.kind for sign in foreign_signs(store)] == ([kind] if kind else [])
    assert is_believed(str(store), str(home)) == (not kind)
    if kind:
        with pytest.raises(StoreNotTrusted) as refused:
            check_store_files(store, home)
        assert refused.value.hint
        agree(about_file(store, kind), home, "x")
        assert is_believed(str(store), str(home)) == agreeable == (open_signs(store, home) == [])
        other = store.with_name("other.db")
        store.rename(other)
        make_loose(other)
        assert not is_believed(str(other), str(home)), "it was agreed to for one file"


def test_a_foreign_owner_is_noticed(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert [sign.kind for sign in foreign_signs(store)] == ["owner"]
    assert not is_believed(str(store), str(tmp_path))


def test_closing_it_to_others(store: Path, tmp_path: Path) -> None:
    make_loose(store)
    make_loose_log(store)
    close_to_others(store)
    assert foreign_signs(store) == []
    assert is_believed(str(store), str(tmp_path))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    assert foreign_signs(tmp_path / "pipe.db") == []


def test_what_is_not_there_is_nobodys(tmp_path: Path) -> None:
    assert foreign_signs(tmp_path / "none.db") == []
