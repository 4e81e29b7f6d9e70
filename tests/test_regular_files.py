"""Files that may be anything: only regular ones are read, nothing is waited for, no link leads out, bounds hold."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from handrail import regular_files
from handrail.regular_files import FileRefused, copy_regular, list_folder, read_beginning, read_regular, reason_of

MOST = 1000


@pytest.fixture(params=["walk", "resolve"])
def tree(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with a file, and one beside it; read as everywhere, and as where no folder can be opened."""
    monkeypatch.setattr(regular_files, "_CAN_WALK", request.param == "walk")
    found = tmp_path / "tree"
    (found / "sub").mkdir(parents=True)
    (found / "file").write_bytes(b"inside")
    (tmp_path / "secret").write_bytes(b"outside")
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "file").write_bytes(b"outside")
    (tmp_path / "tree2").mkdir()
    (tmp_path / "tree2" / "file").write_bytes(b"outside")
    return found


def _open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def why(path: Path, **how: Any) -> str:
    before = _open_files()
    with pytest.raises(FileRefused) as refused:
        read_regular(path, MOST, **how)
    assert refused.value.filename == str(path)
    assert refused.value.hint in reason_of(refused.value)
    assert _open_files() <= before  # one that an earlier test left may be closed meanwhile
    return refused.value.why


def test_a_file_is_read(tree: Path) -> None:
    assert read_regular(tree / "file", MOST) == b"inside"
    assert read_regular(tree / "file", MOST, within=tree) == b"inside"
    assert read_regular(str(tree / "sub" / ".." / "file"), MOST, within=str(tree), links=False) == b"inside"


def test_a_size_is_bounded_to_the_byte(tree: Path) -> None:
    (tree / "file").write_bytes(b"x" * MOST)
    assert len(read_regular(tree / "file", MOST, within=tree)) == MOST
    (tree / "file").write_bytes(b"x" * (MOST + 1))
    assert why(tree / "file", within=tree) == f"it is larger than {MOST} bytes"
    assert len(read_beginning(tree / "file", MOST, within=tree)) == MOST


def test_no_more_is_read_than_the_bound_and_a_byte(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tree / "file").open("wb") as file:
        file.truncate(10**12)
    real, asked = os.read, []

    def noting(descriptor: int, count: int) -> bytes:
        asked.append(count)
        return real(descriptor, count)

    monkeypatch.setattr(os, "read", noting)
    with pytest.raises(FileRefused):
        read_regular(tree / "file", MOST, within=tree)
    assert asked == [MOST + 1]


def test_a_size_is_not_believed() -> None:
    """The kernel's files say that they are empty."""
    assert Path("/proc/self/maps").stat().st_size == 0
    with pytest.raises(FileRefused, match="larger than"):
        read_regular("/proc/self/maps", 10)


def test_a_long_file_is_read_whole(tree: Path) -> None:
    content = os.urandom(3 * regular_files.CHUNK + 7)
    (tree / "long").write_bytes(content)
    assert read_regular(tree / "long", len(content), within=tree) == content
    copy_regular(tree / "long", tree / "copy", len(content))
    assert (tree / "copy").read_bytes() == content
    with pytest.raises(FileRefused, match="too large"):
        copy_regular(tree / "long", tree / "copy", len(content) - 1)


@pytest.mark.parametrize("inside", [True, False])
def test_what_is_no_regular_file_is_not_waited_for(tree: Path, inside: bool) -> None:
    how = {"within": tree} if inside else {}
    os.mkfifo(tree / "pipe")
    assert why(tree / "pipe", **how) == "it is a pipe, not a regular file"
    assert why(tree / "sub", **how) == "it is a folder, not a regular file"
    listening = socket.socket(socket.AF_UNIX)
    with listening:
        listening.bind(str(tree / "socket"))
        assert why(tree / "socket", **how) == "it is a socket, not a regular file"
    (tree / "device").symlink_to("/dev/zero")
    said = "it leads out of the project" if inside else "it is a device, not a regular file"
    assert why(tree / "device", **how) == said


def test_what_becomes_a_pipe_after_it_was_looked_at_is_refused_too(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tree / "pipe")
    looks = iter([(tree / "file").stat()])
    monkeypatch.setattr(os, "stat", lambda *_, **__: next(looks))
    with pytest.raises(FileRefused, match="a pipe"):
        read_regular(tree / "pipe", MOST)


def test_what_becomes_a_link_after_it_was_looked_at_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "file").write_bytes(b"inside")
    (tmp_path / "file").write_bytes(b"outside")
    real = os.open

    def swapping(path: str, flags: int, *rest: Any, **how: Any) -> int:
        if path == "sub" and not (tree / "sub").is_symlink():
            (tree / "sub").rename(tree / "old")
            (tree / "sub").symlink_to("..")
        return real(path, flags, *rest, **how)

    monkeypatch.setattr(os, "open", swapping)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        read_regular(tree / "sub" / "file", MOST, within=tree)


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("link", "../secret"),
        ("link", "{out}/secret"),
        ("link", "sub/../../secret"),
        ("link", "{out}/tree/../secret"),
        ("link", "{out}/tree2/file"),
        ("folder", "../beside"),
        ("folder", "{out}/beside"),
        ("folder", ".."),
        ("folder", "/"),
    ],
)
def test_no_link_leads_out(tree: Path, link: str, target: str) -> None:
    (tree / link).symlink_to(target.format(out=tree.parent))
    names = {"link": ("link",), "folder": ("folder/file", "folder/secret", "folder/etc/passwd")}[link]
    for name in names:
        if (tree / name).exists():
            assert why(tree / name, within=tree) == "it leads out of the project"
            assert read_regular(tree / name, 10**6)  # a person's own file may be anywhere


def test_a_link_to_a_link_leads_out_no_more_than_one(tree: Path) -> None:
    (tree / "one").symlink_to("sub/two")
    (tree / "sub" / "two").symlink_to("three")
    (tree / "sub" / "three").symlink_to("../../secret")
    assert why(tree / "one", within=tree) == "it leads out of the project"


@pytest.mark.parametrize("target", ["../file", "{out}/tree/file", "../../tree/file", "{out}/alias/file", "../again"])
def test_links_inside_are_followed(tree: Path, target: str) -> None:
    (tree.parent / "alias").symlink_to("tree")
    (tree / "again").symlink_to("file")
    (tree / "sub" / "link").symlink_to(target.format(out=tree.parent))
    outwards = target.startswith("../../") and regular_files._CAN_WALK
    if outwards:  # it leaves the tree on its way
        assert why(tree / "sub" / "link", within=tree) == "it leads out of the project"
    else:
        assert read_regular(tree / "sub" / "link", MOST, within=tree) == b"inside"
    assert why(tree / "sub" / "link", within=tree, links=False) == "it is a link, which is not followed"


def test_the_tree_itself_may_be_reached_by_a_link(tree: Path) -> None:
    (tree.parent / "alias").symlink_to("tree")
    assert read_regular(tree.parent / "alias" / "file", MOST, within=tree.parent / "alias", links=False) == b"inside"


def test_a_folder_that_is_a_link_is_not_followed_where_none_is(tree: Path) -> None:
    (tree / "folder").symlink_to("sub")
    (tree / "sub" / "file").write_bytes(b"x")
    assert "a link" in why(tree / "folder" / "file", within=tree, links=False)


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    assert why(tmp_path / "one", within=tmp_path) == "it leads in a circle"


def test_what_is_not_there_is_not_there(tree: Path) -> None:
    (tree / "gone").symlink_to("nowhere")
    for name in ("nothing", "no/thing", "gone"):
        with pytest.raises(FileNotFoundError):
            read_regular(tree / name, MOST, within=tree)
    with pytest.raises(NotADirectoryError):
        read_regular(tree / "file" / "below", MOST, within=tree)
    assert why(tree.parent / "secret", within=tree) == "it is not in the project"
    assert why(tree.parent / "tree2" / "file", within=tree) == "it is not in the project"


def test_a_folder_is_listed_only_inside(tree: Path) -> None:
    (tree / "in").symlink_to("sub")
    (tree / "out").symlink_to("../beside")
    (tree / "sub" / "a").touch()
    (tree / "sub" / "up").symlink_to("..")
    assert list_folder(tree / "sub", within=tree) != []
    assert list_folder(tree / "in", within=tree) == list_folder(tree / "sub")
    assert "file" in list_folder(tree / "sub" / "up", within=tree)
    assert list_folder(tree / "out") == ["file"]
    with pytest.raises(FileRefused, match="leads out"):
        list_folder(tree / "out", within=tree)


def test_a_folder_on_the_way_need_not_be_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root reads everything, so the flag is asked for."""
    (tmp_path / "dark").mkdir()
    (tmp_path / "dark" / "file").write_bytes(b"inside")
    real, asked = os.open, []

    def noting(path: str, flags: int, *rest: Any, **how: Any) -> int:
        asked.append(flags)
        return real(path, flags, *rest, **how)

    monkeypatch.setattr(os, "open", noting)
    assert read_regular(tmp_path / "dark" / "file", MOST, within=tmp_path) == b"inside"
    assert [bool(how & os.O_PATH) for how in asked] == [True, True, False]
    assert all(how & os.O_CLOEXEC for how in asked)


def test_no_swap_of_names_ever_leads_out(tmp_path: Path) -> None:
    """A folder that becomes a link and back, as fast as it can, while its file is read."""
    tree, out = tmp_path / "tree", tmp_path / "out"
    for folder, content in ((tree / "sub", b"inside"), (out, b"outside")):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(content)
    (tree / "other").symlink_to(out)
    finished = threading.Event()

    def swap() -> None:
        while not finished.is_set():
            (tree / "sub").rename(tree / "spare")
            (tree / "other").rename(tree / "sub")
            (tree / "sub").rename(tree / "other")
            (tree / "spare").rename(tree / "sub")

    swapping = threading.Thread(target=swap)
    swapping.start()
    found = set()
    try:
        for _ in range(3000):
            try:
                found.add(read_regular(tree / "sub" / "file", MOST, within=tree))
            except OSError:
                continue
    finally:
        finished.set()
        swapping.join()
    assert found == {b"inside"}
