"""Profiles of real folders and repositories: what is listed, what is not followed, and when it is looked at again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handrail.domain.pipeline.profile import Profile, lines
from handrail.outside import repository_profile
from handrail.outside.repository_profile import KEPT, RepositoryProfiles
from tests.outside.tracking.playground import GLOBAL_CONFIG, Playground


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Playground:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(GLOBAL_CONFIG, encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    top = tmp_path / "repository"
    top.mkdir()
    found = Playground(top)
    found.git("init", "-q")
    return found


def told(folder: Path) -> list[str]:
    return lines(RepositoryProfiles().of(str(folder)))


def test_a_repository_is_told_from_its_files_committed_or_not(repository: Playground) -> None:
    repository.write("go.mod", "module x\n")
    repository.write("main.go")
    repository.git("add", "-A")
    repository.git("commit", "-qm", "first")
    repository.write("web/app.ts")
    assert told(repository.top) == [
        "Languages: Go (50%), TypeScript (50%)",
        "Build command: go build ./...",
        "Test command: go test ./...",
    ]


def test_ignored_files_are_not_counted(repository: Playground) -> None:
    repository.write(".gitignore", "gen/\n")
    repository.write("gen/a.java")
    repository.write("a.rb")
    assert told(repository.top) == ["Languages: Ruby (100%)"]


def test_a_folder_below_the_root_is_told_by_itself(repository: Playground) -> None:
    repository.write("a.go")
    repository.write("tools/pyproject.toml", "[tool.pytest.ini_options]\n")
    repository.write("tools/b.py")
    assert told(repository.top / "tools") == ["Languages: Python (100%)", "Test command: pytest"]


@pytest.mark.parametrize("name", ["a*", "[a]b", "a\\b ?", ":(top)", ":!a"])
def test_a_folder_whose_name_means_something_to_git_is_told_by_itself(repository: Playground, name: str) -> None:
    repository.write(f"{name}/a.go")
    repository.write(f"{name}/.specs/past/a.rb")
    repository.write("another/folder/b.py")
    assert told(repository.top / name) == ["Languages: Go (100%)"]


@pytest.mark.parametrize("kind", ["tracked", "untracked", "plain", "below the root"])
def test_what_we_leave_in_a_repository_is_no_part_of_it(repository: Playground, tmp_path: Path, kind: str) -> None:
    place = Playground(tmp_path / "plain") if kind == "plain" else repository
    if kind == "below the root":
        place = Playground(repository.top / "tools")
    place.write("a.py")
    place.write("src/.specs/b.go")
    place.write(".specs/20260401-past/package.json", '{"scripts": {"test": "x"}}')
    place.write(".specs/20260401-past/c.rs")
    place.write(".handrail/guides/d.rb")
    if kind == "tracked":
        repository.git("add", "-A")
    assert told(place.top) == ["Languages: Go (50%), Python (50%)"]


def test_a_walk_has_room_for_the_code_however_many_runs_there_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository_profile, "WALKED", 2)
    place = Playground(tmp_path / "plain")
    for name in (".specs/one/a.md", ".handrail/b.md", "c.py", "d.go"):
        place.write(name)
    assert told(place.top) == ["Languages: Go (50%), Python (50%)"]


def test_without_git_the_folder_is_walked_and_its_ignore_files_hold(tmp_path: Path) -> None:
    place = Playground(tmp_path / "plain")
    place.write("Cargo.toml", "[package]\n")
    place.write("src/main.rs")
    place.write("target/debug/x.c")
    place.write("node_modules/y/z.js")
    place.write(".gitignore", "old/\n")
    place.write("old/a.php")
    (place.top / "loop").symlink_to(place.top)
    assert told(place.top) == [
        "Languages: Rust (100%)",
        "Build command: cargo build",
        "Test command: cargo test",
    ]


def test_a_walk_ends_after_so_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository_profile, "WALKED", 3)
    place = Playground(tmp_path / "plain")
    for name in ("a.py", "b.py", "c.py", "d.go"):
        place.write(name)
    assert told(place.top) == ["Languages: Python (100%)"]


@pytest.mark.parametrize("name", ["missing", "file"])
def test_where_there_is_nothing_to_tell_the_profile_is_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert RepositoryProfiles().of(str(tmp_path / name)) == Profile()


def test_a_home_folder_is_not_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.py").write_text("x", encoding="utf-8")
    assert RepositoryProfiles().of(str(tmp_path)) == Profile()


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every folder that is listed, as often as it is."""
    found: list[str] = []
    real = repository_profile._list_files

    def listed(top: str) -> tuple[str | None, list[str]]:
        found.append(top)
        return real(top)

    monkeypatch.setattr(repository_profile, "_list_files", listed)
    return found


def test_the_same_content_is_looked_at_once(repository: Playground, listings: list[str]) -> None:
    repository.write("package.json", '{"scripts": {"test": "x"}}')
    repository.git("add", "-A")
    profiles = RepositoryProfiles()
    first = profiles.of(str(repository.top))
    os.utime(repository.path("package.json"), ns=(0, 0))
    assert profiles.of(str(repository.top)) is first
    assert len(listings) == 1


def test_a_changed_manifest_a_new_file_and_a_change_of_the_index_are_seen(repository: Playground) -> None:
    repository.write("package.json", '{"scripts": {"test": "x"}}')
    profiles = RepositoryProfiles()
    assert profiles.of(str(repository.top)).test == ["npm test"]
    repository.write("package.json", '{"scripts": {"build": "x"}}')
    assert profiles.of(str(repository.top)).test == []
    repository.write("go.mod")
    repository.write("deep/notes.txt")
    assert profiles.of(str(repository.top)).test == ["go test ./..."]
    repository.write("deep/a.rs")
    repository.git("add", "-A")
    assert profiles.of(str(repository.top)).languages == [("Rust", 100)]


@pytest.mark.parametrize("format_of_objects", ["sha1", "sha256"])
def test_an_index_of_the_same_length_with_other_names_is_seen(
    repository: Playground, tmp_path: Path, format_of_objects: str
) -> None:
    place = Playground(tmp_path / "other")
    place.write("deep/a.py")
    place.git("init", "-q", f"--object-format={format_of_objects}")
    place.git("add", "-A")
    length = place.path(".git/index").stat().st_size
    profiles = RepositoryProfiles()
    assert profiles.of(str(place.top)).languages == [("Python", 100)]
    place.path("deep/a.py").rename(place.path("deep/a.rb"))
    place.git("add", "-A")
    assert place.path(".git/index").stat().st_size == length
    assert profiles.of(str(place.top)).languages == [("Ruby", 100)]


def test_an_index_with_a_checksum_is_not_read_through(
    repository: Playground, listings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository_profile, "INDEX_BYTES", 10)
    repository.write("a.py")
    repository.git("add", "-A")
    profiles = RepositoryProfiles()
    assert profiles.of(str(repository.top)) is profiles.of(str(repository.top))
    assert len(listings) == 1


def without_checksum(index: Path, *, flags: int) -> None:
    """The index as `index.skipHash` has it written: zeros at its end. `flags` changes a byte of it, not its length."""
    raw = bytearray(index.read_bytes())
    raw[-20:] = bytes(20)
    raw[12 + 9] = flags  # within the times of the first entry
    index.write_bytes(raw)


def test_an_index_without_a_checksum_is_compared_whole(
    repository: Playground, listings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("a.py")
    repository.git("add", "-A")
    index = repository.path(".git/index")
    profiles = RepositoryProfiles()
    for flags, listed in ((1, 1), (1, 1), (2, 2), (2, 2)):
        without_checksum(index, flags=flags)
        assert profiles.of(str(repository.top)).languages == [("Python", 100)]
        assert len(listings) == listed
    monkeypatch.setattr(repository_profile, "INDEX_BYTES", 10)
    for listed in (3, 4):  # too long to compare: what it says is asked for each time
        assert profiles.of(str(repository.top)).languages == [("Python", 100)]
        assert len(listings) == listed


def test_an_index_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "index")
    assert repository_profile._index_state(str(tmp_path / "index")) is None


def test_a_folder_that_becomes_a_repository_is_told_anew(tmp_path: Path, repository: Playground) -> None:
    place = Playground(tmp_path / "plain")
    place.write("a.py")
    profiles = RepositoryProfiles()
    assert profiles.of(str(place.top)).languages == [("Python", 100)]
    place.git("init", "-q")
    place.write(".gitignore", "*.py\n")
    place.write("b.go")
    assert profiles.of(str(place.top)).languages == [("Go", 100)]


def test_links_and_pipes_are_not_read_as_manifests(repository: Playground, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"scripts": {"test": "x"}}', encoding="utf-8")
    for place in (repository, Playground(tmp_path / "plain")):
        place.write("a.js")
        place.path("package.json").symlink_to(secret)
        os.mkfifo(place.path("Makefile"))
        assert told(place.top) == ["Languages: JavaScript (100%)"]


def test_no_program_of_the_repository_runs(repository: Playground, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    hook = repository.top / "monitor.sh"
    hook.write_text(f"#!/bin/sh\ntouch {trace}\n", encoding="utf-8")
    hook.chmod(0o755)
    repository.write("a.py")
    repository.git("add", "-A")
    repository.git("config", "core.fsmonitor", str(hook))
    assert told(repository.top) == ["Languages: Python (50%), Shell (50%)"]
    assert not trace.exists()


def test_only_so_many_profiles_are_kept(tmp_path: Path) -> None:
    profiles = RepositoryProfiles()
    for number in range(KEPT + 4):
        (tmp_path / str(number)).mkdir()
        profiles.of(str(tmp_path / str(number)))
    assert len(profiles._known) == KEPT


def test_a_folder_that_became_a_link_is_not_followed_to_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "package.json").write_text("secret", encoding="utf-8")
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "sub").symlink_to(tmp_path / "out")
    assert repository_profile._text(str(tmp_path / "top"), "sub/package.json") is None
