"""A file is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handrail.outside.atomic_files import PRIVATE, write_new, write_whole


def test_a_file_is_made_with_the_rights_that_new_files_get(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    write_whole(tmp_path / "a.txt", b"one")
    assert (tmp_path / "a.txt").read_bytes() == b"one"
    assert (tmp_path / "a.txt").stat().st_mode == plain.stat().st_mode


def test_a_file_is_replaced_and_keeps_its_rights(tmp_path: Path) -> None:
    file = tmp_path / "a.sh"
    file.write_bytes(b"one")
    file.chmod(0o750)
    with file.open("rb") as before:
        write_whole(file, b"two")
        assert before.read() == b"one", "who reads the old one reads on"
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"two", 0o750)
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError):
        write_whole(tmp_path / "a", b"two")
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
    assert (tmp_path / "a").is_dir()


def test_what_replaces_a_private_file_is_never_open_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"one")
    file.chmod(0o600)
    made: list[int] = []
    real = os.open

    def watched(path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = real(path, flags, mode)
        made.append(os.fstat(descriptor).st_mode & 0o777)
        return descriptor

    before = os.umask(0)
    try:
        monkeypatch.setattr(os, "open", watched)
        write_whole(file, b"two")
    finally:
        os.umask(before)
    assert (file.read_bytes(), made) == (b"two", [0o600])


def test_a_new_file_never_takes_the_place_of_another(tmp_path: Path) -> None:
    write_new(tmp_path / "a", b"one", rights=PRIVATE)
    with pytest.raises(FileExistsError) as there:
        write_new(tmp_path / "a", b"two")
    assert there.value.filename == str(tmp_path / "a")
    (tmp_path / "b").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "b", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_new_file_is_made_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", unsupported)
    write_new(tmp_path / "a", b"one")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a", b"two")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"one")]
