"""Places a database must not be in, and files that were taken away."""

from __future__ import annotations

import errno
import os
import resource
import stat
import time
from pathlib import Path

import pytest

from handrail.kernel.errors import StoreUnusable
from handrail.store import places
from handrail.store.places import (
    OPEN_HINTS,
    QUIET_NS,
    Files,
    check_place,
    network_file_system,
    open_hint,
    why_not_opened,
)
from handrail.store.sqlite import SqliteEngine
from tests.store.ground import VERSION


def mounts(folder: Path, *lines: str) -> Path:
    listed = folder / "mountinfo"
    listed.write_text("".join(f"{line}\n" for line in lines))
    return listed


def mounted(at: Path | str, kind: str) -> str:
    """A line as the kernel writes it."""
    return f"36 35 98:0 / {str(at).replace(' ', chr(92) + '040')} rw,noatime shared:1 - {kind} source rw"


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fuse.sshfs", "ceph"])
def test_a_network_file_system_is_named(tmp_path: Path, kind: str) -> None:
    listed = mounts(tmp_path, mounted("/", "ext4"), mounted(tmp_path, kind))
    assert network_file_system(tmp_path / "handrail.db", listed) == kind


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "overlay", "tmpfs", "apfs", "zfs", "fuse.ext4"])
def test_a_local_file_system_is_fine(tmp_path: Path, kind: str) -> None:
    assert network_file_system(tmp_path / "handrail.db", mounts(tmp_path, mounted(tmp_path, kind))) is None


def test_the_nearest_mount_decides(tmp_path: Path) -> None:
    inner = tmp_path / "local"
    inner.mkdir()
    listed = mounts(tmp_path, mounted("/", "nfs"), mounted(tmp_path, "nfs4"), mounted(inner, "ext4"))
    assert network_file_system(inner / "handrail.db", listed) is None
    assert network_file_system(tmp_path / "handrail.db", listed) == "nfs4"
    assert network_file_system(Path("/elsewhere/handrail.db"), listed) == "nfs"


def test_the_last_mount_on_a_place_decides(tmp_path: Path) -> None:
    listed = mounts(tmp_path, mounted(tmp_path, "nfs"), mounted(tmp_path, "ext4"))
    assert network_file_system(tmp_path / "handrail.db", listed) is None


def test_a_name_that_only_begins_alike_is_another_place(tmp_path: Path) -> None:
    listed = mounts(tmp_path, mounted("/", "ext4"), mounted(tmp_path / "data", "nfs"))
    assert network_file_system(tmp_path / "data-local" / "handrail.db", listed) is None


def test_a_mount_with_a_space_in_its_name_is_recognised(tmp_path: Path) -> None:
    share = tmp_path / "my share"
    share.mkdir()
    listed = mounts(tmp_path, mounted("/", "ext4"), mounted(share, "cifs"))
    assert network_file_system(share / "handrail.db", listed) == "cifs"


def test_a_link_is_followed_to_where_the_file_is(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    (tmp_path / "link").symlink_to(share)
    listed = mounts(tmp_path, mounted("/", "ext4"), mounted(share, "nfs"))
    assert network_file_system(tmp_path / "link" / "handrail.db", listed) == "nfs"


def test_a_system_that_does_not_tell_is_believed(tmp_path: Path) -> None:
    assert network_file_system(tmp_path / "handrail.db", tmp_path / "nothing") is None
    assert network_file_system(tmp_path / "handrail.db", mounts(tmp_path, "nonsense", "a b c", "- - -")) is None


def test_a_store_on_a_network_file_system_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = mounts(tmp_path, mounted(tmp_path, "nfs4"))
    monkeypatch.setattr(places, "network_file_system", lambda path: network_file_system(path, listed))
    with pytest.raises(StoreUnusable, match="nfs4") as refused:
        SqliteEngine(tmp_path / "handrail.db", version=VERSION)
    assert "postgresql://" in refused.value.hint
    assert not (tmp_path / "handrail.db").exists()


def test_files_that_stay_where_they_are_are_fine(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("a")
    files = Files(kept, tmp_path / "never there")
    kept.write_text("b")
    files.check()


@pytest.mark.parametrize("change", ["removed", "replaced", "added"])
def test_a_file_that_is_not_the_same_any_more_is_noticed(tmp_path: Path, change: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("a")
    files = Files(first, second)
    if change == "removed":
        first.unlink()
    elif change == "replaced":
        (tmp_path / "other").write_text("a")
        (tmp_path / "other").rename(first)
    else:
        second.write_text("a")
    with pytest.raises(StoreUnusable, match="removed or replaced") as refused:
        files.check()
    assert "nothing was written" in refused.value.hint


class Patience:
    """A clock so far ahead that every folder has been quiet for long."""

    @staticmethod
    def time_ns() -> int:
        return time.time_ns() + 2 * QUIET_NS


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """A look at two files of a quiet folder, which is believed by now."""
    monkeypatch.setattr(places, "time", Patience)
    for name in ("first", "second"):
        (tmp_path / name).write_text("a")
    files = Files(tmp_path / "first", tmp_path / "second")
    files.check()
    assert files._believed is not None
    return files


@pytest.mark.parametrize("name", ["first", "second"])
@pytest.mark.parametrize("change", ["removed", "replaced", "moved away", "folder moved away"])
def test_a_quiet_folder_hides_nothing(tmp_path: Path, files: Files, name: str, change: str) -> None:
    changed = tmp_path / name
    if change == "removed":
        changed.unlink()
    elif change == "replaced":
        (tmp_path / "other").write_text("a")
        (tmp_path / "other").replace(changed)
    elif change == "moved away":
        changed.rename(tmp_path / "elsewhere")
    else:
        tmp_path.rename(tmp_path.with_name(f"{tmp_path.name} elsewhere"))
    for _ in range(2):
        with pytest.raises(StoreUnusable, match="removed or replaced"):
            files.check()


def test_others_may_come_and_go_in_the_folder(tmp_path: Path, files: Files) -> None:
    (tmp_path / "other").write_text("a")
    files.check()
    (tmp_path / "other").unlink()
    files.check()


def test_a_folder_in_which_something_has_just_happened_is_not_believed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("a")
    files = Files(kept)
    files.check()
    assert files._believed is None


def test_a_file_behind_a_link_is_looked_at_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "time", Patience)
    (tmp_path / "far").mkdir()
    kept = tmp_path / "far" / "kept"
    kept.write_text("a")
    (tmp_path / "link").symlink_to(kept)
    files = Files(tmp_path / "link")
    files.check()
    kept.unlink()
    with pytest.raises(StoreUnusable, match="removed or replaced"):
        files.check()


def in_a_circle(folder: Path) -> Path:
    (folder / "one").symlink_to(folder / "two")
    (folder / "two").symlink_to(folder / "one")
    return folder / "one"


def test_links_in_a_circle_are_on_no_network(tmp_path: Path) -> None:
    assert network_file_system(in_a_circle(tmp_path), mounts(tmp_path, mounted("/", "ext4"))) is None


@pytest.mark.parametrize(
    ("name", "why"), [(".", "it is a folder"), ("/dev/null", "no ordinary file"), ("a\0b", "NUL"), ("a\udcff", "text")]
)
def test_what_can_be_no_database_is_told_with_the_reason(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(StoreUnusable, match=why) as refused:
        check_place(tmp_path / name)
    assert "--db" in refused.value.hint


def test_a_hint_fits_the_reason() -> None:
    assert "ulimit" in open_hint(errno.EMFILE)
    assert open_hint(errno.EACCES) == open_hint(None) == "check that its folder exists, and that both may be written"
    assert set(OPEN_HINTS) == {errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.ELOOP, errno.EROFS}


def test_the_reason_is_found_out_when_nobody_told_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    assert why_not_opened(path) == open_hint(None)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit[1]))
    try:
        told = why_not_opened(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert told == open_hint(errno.EMFILE)


def test_a_store_in_a_folder_that_only_can_be_read_is_to_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.db").write_bytes(b"")
    monkeypatch.setattr(os, "access", lambda path, mode: (str(path), mode) != (str(tmp_path), os.W_OK))
    assert "copy the file" in why_not_opened(tmp_path / "a.db")
    assert why_not_opened(tmp_path / "none.db") == open_hint(None)


# -- files that are whole or not there --------------------------------------------------------------------------------


def test_a_file_is_its_owners_alone_from_its_first_moment(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    before = os.umask(0o022)
    try:
        with places.whole_file(target) as part:
            assert stat.S_IMODE(part.stat().st_mode) == 0o600
            part.write_text("whole")
            assert not target.exists()
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["copy.db"]


def test_a_file_takes_nobodys_place(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    with pytest.raises(StoreUnusable, match="there already"), places.whole_file(target) as part:
        part.write_text("ours")
        target.write_text("theirs")
    assert target.read_text() == "theirs"
    assert [file.name for file in tmp_path.iterdir()] == ["copy.db"]


def test_a_file_whose_place_was_taken_for_a_moment_is_not_said_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy.db"

    def taken(*_: object) -> None:
        raise FileExistsError

    monkeypatch.setattr(os, "link", taken)
    with pytest.raises(StoreUnusable, match="there already"), places.whole_file(target) as part:
        part.write_text("ours")
    assert not list(tmp_path.iterdir())
