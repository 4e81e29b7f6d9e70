"""What git is made to see: what a file system can do is tried out, what cannot be seen is said."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.domain.setup.state_files import STATE_FILES
from handrail.outside.tracking import sight
from handrail.outside.tracking.git_tracker import GitTracker
from handrail.outside.tracking.own_files import is_ours, overlooked
from handrail.outside.tracking.same_second import changed_since, doubtful
from tests.outside.tracking.playground import Playground
from tests.outside.tracking.special_cases import anew


@pytest.fixture(autouse=True)
def _tried_anew() -> Iterator[None]:
    sight._tried.cache_clear()
    yield
    sight._tried.cache_clear()


def claims(top: Path, private: Path) -> dict[str, str]:
    settings = sight.clear_sight(str(top), str(private))
    return {key: settings[key] for key in ("core.ignoreCase", "core.fileMode", "core.symlinks")}


ALL = {"core.ignoreCase": "false", "core.fileMode": "true", "core.symlinks": "true"}
NONE = {"core.ignoreCase": "true", "core.fileMode": "false", "core.symlinks": "false"}


def refused(*_: object, **__: object) -> None:
    raise OSError("no links here")


def test_a_file_system_is_tried_and_nothing_is_left_behind(tmp_path: Path) -> None:
    assert claims(tmp_path, tmp_path) == ALL
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_that_can_do_less_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.path.lexists
    monkeypatch.setattr(os.path, "lexists", lambda path: real(str(path).lower()) or str(path).endswith("PROBE"))
    monkeypatch.setattr(os, "chmod", lambda *_args, **_more: None)
    monkeypatch.setattr(os, "symlink", refused)
    assert claims(tmp_path, tmp_path) == NONE


def test_a_folder_that_cannot_be_written_is_taken_for_a_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.TemporaryDirectory", refused)
    assert claims(tmp_path, tmp_path) == ALL


def test_on_another_file_system_a_planted_name_does_not_blind(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    os.link(tmp_path / ".git", tmp_path / ".GIT")
    assert claims(tmp_path, tmp_path / "missing") == ALL


OWN = (
    "handrail.db",
    "handrail.db-wal",
    "handrail.db-shm",
    "handrail.db-journal",
    "handrail.db.gate",
    "handrail.db.hooks",
    "handrail.db.hooks-journal",
    "handrail.db.before-restore",
    "handrail.db.before-restore-2",
    "handrail.db.before-rebuild",
    "handrail.db-search",
    "handrail.db-search-wal",
    "handrail.db.schema-7",
    "handrail.db.part-4711-wal",
    "snapshots/git-0123456789abcdef0123/index",
)


@pytest.mark.parametrize("name", OWN)
def test_handrail_s_own_files_are_known_by_their_whole_names(name: str) -> None:
    assert is_ours(f".handrail/{name}".encode())
    for other in (f".handrail/x{name}", f"src/.handrail/{name}", f".handrail/sub/{name}", name):
        assert not is_ours(other.encode()), other
    if not name.startswith("snapshots/"):
        for ending in (".py", "_x", "\n"):
            assert not is_ours(f".handrail/{name}{ending}".encode())


def test_git_is_told_to_ignore_the_same_files_and_no_others(repo: Playground) -> None:
    repo.write(".handrail/.gitignore", STATE_FILES)
    others = ("handrail.db_backdoor.py", "handrail.db-wal.py", "payload.gate", "guides/handrail.db", "config.toml")
    asked = "".join(f".handrail/{name}\0" for name in (*OWN, *others)).encode()
    ignored = repo.git("check-ignore", "-z", "--stdin", given=asked).split("\0")
    assert {name for name in ignored if name} == {f".handrail/{name}" for name in OWN}


def test_what_an_older_gitignore_hid_is_found(tmp_path: Path) -> None:
    (tmp_path / ".handrail" / "x.gate").mkdir(parents=True)
    for name in ("handrail.db", "handrail.db_backdoor.py", "payload.gate", "config.toml"):
        (tmp_path / ".handrail" / name).write_text("")
    found = overlooked(os.fsencode(tmp_path) + b"/")
    assert found == [b".handrail/handrail.db_backdoor.py", b".handrail/payload.gate"]


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_the_times_of_files_are_read_from_an_index(repo: Playground, algorithm: str) -> None:
    anew(repo, f"--object-format={algorithm}")
    repo.git("add", "-A")
    repo.git("add", "-N", ".")
    index, top = str(repo.top / ".git/index"), os.fsencode(repo.top) + b"/"
    facts = repo.path("a.txt").lstat()
    found = doubtful(index, algorithm, [facts.st_ctime_ns // 1_000_000_000])
    assert found.files[b"a.txt"] == facts.st_ctime_ns
    assert changed_since(top, found.files) == []
    repo.path("a.txt").chmod(0o600)
    assert changed_since(top, {b"a.txt": found.files[b"a.txt"], b"gone": 1}) == [b"a.txt"]
    assert doubtful(index, algorithm, [struct.unpack(">I", b"\1\2\3\4")[0]]).files == {}


@pytest.mark.parametrize("how", ["format", "worktree", "bare"])
def test_a_repository_inside_that_git_refuses_is_named(repo: Playground, tracker: GitTracker, how: str) -> None:
    inner = repo.at("evil")
    inner.top.mkdir()
    inner.git("init", "-q")
    inner.write("payload.py", "one\n")
    before = tracker.snapshot(str(repo.top))
    key, value = {
        "format": ("core.repositoryFormatVersion", "99"),
        "worktree": ("core.worktree", str(repo.top.parent)),
        "bare": ("core.bare", "true"),
    }[how]
    inner.git("config", key, value)
    inner.append("payload.py")
    found = tracker.changes(before, tracker.snapshot(str(repo.top), like=before))
    assert found.partial
    assert any("evil" in warning for warning in found.warnings)


def test_the_patch_has_a_repository_that_appeared(repo: Playground, tracker: GitTracker, tmp_path: Path) -> None:
    before = tracker.snapshot(str(repo.top))
    for place in ("lib", "lib/deeper"):
        inner = repo.at(place)
        inner.top.mkdir()
        inner.git("init", "-q")
        inner.write("code.py", f"in {place}\n")
    repo.write("lib/huge.bin", b"\1" * 3_000_000)
    patch = b"".join(tracker.patch(before, tracker.snapshot(str(repo.top), like=before)))
    copy = tmp_path / "copy"
    shutil.copytree(repo.top, copy, ignore=shutil.ignore_patterns("lib"))
    Playground(copy).git("apply", "-", given=patch)
    assert (copy / "lib/code.py").read_text() == "in lib\n"
    assert (copy / "lib/deeper/code.py").read_text() == "in lib/deeper\n"
    assert b"# lib/huge.bin: changed, content not kept\n" in patch
