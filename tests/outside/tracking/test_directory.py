"""Plain directories: real ones, with everything that can lie in them, compared before and after."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from handrail.domain.journal.entry import Changes, ExternalChange, FileChange, Rename
from handrail.domain.journal.paths import path_text
from handrail.domain.journal.ports import OtherTask, Snapshot, Tracker
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import PlaceUnusable
from handrail.kernel.ids import CountingIds, Ids
from handrail.outside.tracking.directory import DirectoryTracker
from handrail.outside.tracking.manifest import ManifestBounds


class Watched:
    """A directory, and the tracker that looks at it before and after something is done."""

    def __init__(self, root: Path, bounds: ManifestBounds | None = None, ids: Ids | None = None) -> None:
        self.root = root
        self.state = root / ".handrail" / "snapshots"
        self.clock = FixedClock()
        self.ids = ids or CountingIds()
        self.tracker = DirectoryTracker(self.state, clock=self.clock, ids=self.ids, bounds=bounds)

    def with_bounds(self, bounds: ManifestBounds) -> Watched:
        return Watched(self.root, bounds, self.ids)

    def write(self, path: str, content: str | bytes = "text\n") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def snapshot(self) -> Snapshot:
        self.clock.advance(1000)
        return self.tracker.snapshot(str(self.root))

    def changes(self, action: Callable[[], object]) -> Changes:
        before = self.snapshot()
        action()
        return self.tracker.changes(before, self.snapshot())


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    root = tmp_path / "project"
    root.mkdir()
    return Watched(root)


def told(changes: Changes) -> dict[str, str]:
    return {change.path: change.change for change in changes.own}


def test_it_is_a_tracker(watched: Watched) -> None:
    tracker: Tracker = watched.tracker
    assert tracker.disk_use() == 0


def test_files_that_came_changed_and_went_are_told_apart(watched: Watched) -> None:
    watched.write("kept.txt"), watched.write("changed.txt"), watched.write("gone/deep.txt")

    def work() -> None:
        watched.write("changed.txt", "other\n")
        watched.write("new/file.txt")
        shutil.rmtree(watched.root / "gone")

    found = watched.changes(work)
    assert told(found) == {"changed.txt": "modified", "new/file.txt": "added", "gone/deep.txt": "deleted"}
    assert [change.path for change in found.own] == sorted(told(found))
    assert (found.warnings, found.partial) == ([], False)


def test_what_is_changed_back_or_comes_and_goes_is_no_change(watched: Watched) -> None:
    file = watched.write("a.txt", "one\n")

    def work() -> None:
        file.write_text("two\n")
        watched.snapshot()
        file.write_text("one\n")
        watched.write("b.txt").unlink()
        (watched.root / "empty").mkdir()

    assert told(watched.changes(work)) == {}


AWKWARD = [
    *(b"new\nline", b"tab\there", b"space ", b" lead", b'"quoted"', b"it's", b"back\\slash", b"*glob[?]", b"-dash"),
    *(b"caf\xe9", b"\xff\xfe", "café".encode(), "cafe\u0301".encode(), b"#hash", b"!bang", "😀".encode(), b"a" * 255),
]


def test_awkward_names_are_names(watched: Watched) -> None:
    root = os.fsencode(watched.root)
    for name in AWKWARD:
        Path(os.fsdecode(root + b"/" + name)).write_bytes(b"one")

    def work() -> None:
        for name in AWKWARD:
            Path(os.fsdecode(root + b"/" + name)).write_bytes(b"two")
            Path(os.fsdecode(root + b"/in/" + name)).parent.mkdir(exist_ok=True)
            Path(os.fsdecode(root + b"/in/" + name)).write_bytes(b"new")

    found = watched.changes(work)
    assert told(found) == {path_text(name): "modified" for name in AWKWARD} | {
        path_text(b"in/" + name): "added" for name in AWKWARD
    }
    assert msgspec.json.decode(msgspec.json.encode(found), type=Changes) == found


def test_symbolic_links_are_links_and_never_followed(watched: Watched, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("one")
    root = watched.root
    watched.write("real.txt", "one")
    (root / "folder").symlink_to(outside)
    (root / "loop").symlink_to(".")
    (root / "turned").symlink_to("real.txt")
    (root / "same").symlink_to("real.txt")

    def work() -> None:
        (outside / "secret.txt").write_text("two")
        (root / "turned").unlink()
        (root / "turned").symlink_to("nowhere")
        (root / "dangling").symlink_to("gone")
        (root / "real.txt").unlink()
        (root / "real.txt").symlink_to("one")  # the same bytes, as a link

    found = watched.changes(work)
    assert told(found) == {"dangling": "added", "real.txt": "modified", "turned": "modified"}


def test_pipes_and_sockets_are_left_out_and_block_nothing(watched: Watched) -> None:
    watched.write("was-file")

    def work() -> None:
        os.mkfifo(watched.root / "pipe")
        (watched.root / "was-file").unlink()
        os.mkfifo(watched.root / "was-file")
        with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(watched.root):
            made.bind("socket")

    assert told(watched.changes(work)) == {"was-file": "deleted"}


@contextlib.contextmanager
def as_somebody_without_rights() -> Iterator[Path]:
    """A project, and rights that end at its modes: those of root do not."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "project"
        root.mkdir()
        owner = 65534 if os.geteuid() == 0 else os.geteuid()
        os.chown(place, owner, -1)
        os.chown(root, owner, -1)
        was = os.geteuid()
        os.seteuid(owner)
        try:
            yield root
        finally:
            os.seteuid(was)


def test_an_unreadable_file_is_judged_by_its_times_and_said() -> None:
    with as_somebody_without_rights() as root:
        watched = Watched(root)
        secret, other = watched.write("secret", "one"), watched.write("other", "one")
        for file in (secret, other):
            file.chmod(0)
        before = watched.snapshot()
        assert (before.flags, before.tree) == (["unreadable"], None)
        other.chmod(0o600)
        other.write_text("two")
        found = watched.tracker.changes(before, watched.snapshot())
        assert told(found) == {"other": "modified"}
        assert found.partial
        assert found.warnings == [
            "1 file(s) count as modified by size and times only: other",
            "1 file(s) cannot be read: secret",
        ]


def test_nothing_is_claimed_about_a_directory_that_cannot_be_entered() -> None:
    with as_somebody_without_rights() as root:
        watched = Watched(root)
        watched.write("closed/a.txt"), watched.write("listed/a.txt"), watched.write("open/a.txt")

        def work() -> None:
            watched.write("open/b.txt")
            (root / "closed").chmod(0)
            (root / "listed").chmod(0o400)

        found = watched.changes(work)
        for folder in ("closed", "listed"):
            (root / folder).chmod(0o700)
        assert told(found) == {"open/b.txt": "added"}
        assert found.partial
        assert "closed, listed" in found.warnings[0]


def test_a_change_of_the_same_size_in_one_tick_of_the_clock_is_seen(watched: Watched) -> None:
    file = watched.write("a.txt", "0000")
    before = watched.snapshot()
    for number in range(1, 40):
        file.write_bytes(b"%04d" % number)
        after = watched.snapshot()
        assert told(watched.tracker.changes(before, after)) == {"a.txt": "modified"}
        before = after


def test_a_change_behind_restored_times_is_seen(watched: Watched) -> None:
    file = watched.write("a.txt", "one")
    os.utime(file, ns=(10**18, 10**18))

    def work() -> None:
        file.write_text("two")
        os.utime(file, ns=(10**18, 10**18))

    assert told(watched.changes(work)) == {"a.txt": "modified"}


def wait_for_the_next_tick(file: Path) -> None:
    """Until the file system's clock has moved on from the file's last change."""
    probe = file.with_name("probe")
    while True:
        probe.write_text("")
        if probe.stat().st_ctime_ns > file.stat().st_ctime_ns:
            probe.unlink()
            return


def test_a_settled_file_is_not_read_again_and_a_touched_one_is(tmp_path: Path) -> None:
    watched = Watched(tmp_path, ManifestBounds(time.monotonic, quiet_ns=0))
    for number in range(5):
        last = watched.write(f"{number}.txt", str(number))
    wait_for_the_next_tick(last)
    assert watched.snapshot().data["read"] == 5
    assert watched.snapshot().data["read"] == 0
    os.utime(last)
    assert watched.snapshot().data["read"] == 1


def test_a_file_touched_just_now_is_read_again(watched: Watched) -> None:
    watched.write("a.txt")
    assert [watched.snapshot().data["read"] for _ in range(3)] == [1, 1, 1]


def test_unchanged_snapshots_share_one_file_on_disk(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "p", ManifestBounds(time.monotonic, quiet_ns=0))
    for number in range(50):
        last = watched.write(f"{number}.txt", str(number))
    wait_for_the_next_tick(last)
    watched.snapshot()
    first = watched.tracker.disk_use()
    watched.snapshot(), watched.snapshot()
    assert watched.tracker.disk_use() == first


def test_the_executable_bit_is_a_change_and_other_rights_are_not(watched: Watched) -> None:
    tool, plain = watched.write("tool.sh"), watched.write("plain.txt")

    def work() -> None:
        tool.chmod(0o755)
        plain.chmod(0o600)

    found = watched.changes(work)
    assert [(change.path, change.lines_added, change.lines_removed) for change in found.own] == [("tool.sh", 0, 0)]


def test_moved_files_are_deleted_added_and_renamed(watched: Watched) -> None:
    for name in ("a.txt", "b.txt"):
        watched.write(f"old/{name}", "same content\n")
    watched.write("old/c.txt", "c"), watched.write("old/empty.txt", "")
    found = watched.changes(lambda: (watched.root / "old").rename(watched.root / "new"))
    assert set(told(found).values()) == {"deleted", "added"}
    assert len(found.own) == 8
    assert found.renamed == [
        Rename(from_path=f"old/{name}", to_path=f"new/{name}") for name in ("a.txt", "b.txt", "c.txt")
    ]


def test_lines_are_told_where_they_can_be_known(watched: Watched) -> None:
    watched.write("edited.txt", "1\n2\n"), watched.write("gone.txt", "1\n2\n3")
    watched.write("emptied.txt", "1\n2\n"), watched.write("gone.bin", b"\0\n")

    def work() -> None:
        watched.write("edited.txt", "1\n3\n")
        watched.write("emptied.txt", "")
        watched.write("new.txt", "1\n2\n3\n4"), watched.write("empty.txt", "")
        watched.write("large.txt", "line\n" * 500_000), watched.write("new.bin", b"\n\0\n")
        for name in ("gone.txt", "gone.bin"):
            (watched.root / name).unlink()

    found = {
        change.path: (change.lines_added, change.lines_removed, change.binary) for change in watched.changes(work).own
    }
    assert found == {
        "edited.txt": (None, None, False),
        "emptied.txt": (0, 2, False),
        "gone.txt": (0, 3, False),
        "gone.bin": (None, None, True),
        "new.txt": (4, 0, False),
        "empty.txt": (0, 0, False),
        "large.txt": (500_000, 0, False),
        "new.bin": (None, None, True),
    }


def test_a_file_may_become_a_directory_and_back(watched: Watched) -> None:
    file = watched.write("thing", "one")

    def work() -> None:
        file.unlink()
        watched.write("thing/inside", "two")

    assert told(watched.changes(work)) == {"thing": "deleted", "thing/inside": "added"}

    def back() -> None:
        shutil.rmtree(file)
        watched.write("thing", "one")

    assert told(watched.changes(back)) == {"thing": "added", "thing/inside": "deleted"}


def test_ignored_files_and_handrail_s_own_state_are_out_of_sight(watched: Watched) -> None:
    watched.write(".gitignore", "*.log\n")

    def work() -> None:
        for path in ("a.log", "node_modules/x.js", ".handrail/handrail.db", "sub/__pycache__/x.pyc"):
            watched.write(path)
        watched.write(".handrail/guides/review.yaml")

    assert told(watched.changes(work)) == {".handrail/guides/review.yaml": "added"}


def test_state_inside_the_directory_by_another_name_is_left_out(tmp_path: Path) -> None:
    tracker = DirectoryTracker(tmp_path / "elsewhere", clock=FixedClock(), ids=CountingIds())
    first = tracker.snapshot(str(tmp_path))
    assert tracker.changes(first, tracker.snapshot(str(tmp_path))).own == []


def test_files_that_come_into_or_go_out_of_sight_are_not_the_task_s(watched: Watched) -> None:
    watched.write(".gitignore", "*.log\n")
    watched.write("old.log"), watched.write("notes.txt"), watched.write("edited.txt", "one")
    os.utime(watched.root / "old.log", ns=(10**18, 10**18))
    wait_for_the_next_tick(watched.root / "old.log")

    def work() -> None:
        watched.write(".gitignore", "*.txt\n")
        watched.write("edited.txt", "two"), watched.write("made.log")

    found = watched.changes(work)
    assert told(found) == {".gitignore": "modified", "edited.txt": "modified", "made.log": "added"}
    assert found.external == [
        ExternalChange(path="notes.txt", change="deleted", cause="ignore_rules"),
        ExternalChange(path="old.log", change="added", cause="ignore_rules"),
    ]
    assert found.warnings == ["ignore rules changed during the task"]


def test_a_hidden_file_stays_known_while_it_is_hidden(watched: Watched) -> None:
    watched.write(".gitignore", "")
    notes = watched.write("notes.txt", "one")
    before = watched.snapshot()
    watched.write(".gitignore", "*.txt\n")
    watched.snapshot(), watched.snapshot()
    notes.write_text("two")
    hidden = watched.snapshot()
    assert told(watched.tracker.changes(before, hidden)) == {".gitignore": "modified", "notes.txt": "modified"}
    watched.write(".gitignore", "")
    again = watched.snapshot()
    assert told(watched.tracker.changes(before, again)) == {"notes.txt": "modified"}
    assert [found.path for found in watched.tracker.changes(hidden, again).external] == ["notes.txt"]


class Stopwatch:
    """Every look at it takes a second."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1
        return self.seconds


def test_what_there_is_no_time_to_read_is_judged_by_size_and_times(tmp_path: Path) -> None:
    watched = Watched(tmp_path, ManifestBounds(Stopwatch(), budget_s=6))
    for number in range(9):
        watched.write(f"{number}.txt", "one")
    before = watched.snapshot()
    assert before.flags == ["degraded"]
    assert 0 < before.data["read"] < before.data["files"] == 9
    watched.write("8.txt", "two")
    found = watched.tracker.changes(before, watched.snapshot())
    assert told(found) == {"8.txt": "modified"}
    assert found.partial
    assert found.warnings == ["1 file(s) count as modified by size and times only: 8.txt"]


def test_directories_there_is_no_time_for_are_named_and_nothing_is_claimed_about_them(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    for folder in "abcdef":
        watched.write(f"{folder}/x.txt")
    before = watched.snapshot()
    for folder in "af":
        (tmp_path / folder / "x.txt").unlink()
    hurried = watched.with_bounds(ManifestBounds(Stopwatch(), budget_s=4)).snapshot()
    assert (hurried.flags, hurried.tree, hurried.shown_id) == (["degraded"], None, hurried.id)
    found = watched.tracker.changes(before, hurried)
    assert told(found) == {"a/x.txt": "deleted"}
    assert found.partial
    assert found.warnings[0].endswith(": c, d, e, f")


def test_past_the_limit_of_files_directories_are_left_out_whole(tmp_path: Path) -> None:
    watched = Watched(tmp_path, ManifestBounds(time.monotonic, most_files=10))
    for folder in "abc":
        for number in range(4):
            watched.write(f"{folder}/{number}.txt")

    def work() -> None:
        (tmp_path / "a/0.txt").unlink()
        (tmp_path / "c/0.txt").unlink()

    found = watched.changes(work)
    assert told(found) == {"a/0.txt": "deleted"}
    assert found.partial
    assert "1 directory(s) were not looked into" in found.warnings[0]
    assert found.warnings[0].endswith(": c")


@pytest.mark.parametrize("where", ["/", "~", "~/.."])
def test_the_disk_and_the_home_folder_are_no_projects(watched: Watched, where: str) -> None:
    with pytest.raises(PlaceUnusable) as refused:
        watched.tracker.snapshot(str(Path(where).expanduser()))
    assert "not a project" in refused.value.message
    assert refused.value.hint


def test_a_place_that_is_no_directory_is_refused(watched: Watched) -> None:
    for place in (watched.write("file"), watched.root / "missing"):
        with pytest.raises(PlaceUnusable, match="is no directory"):
            watched.tracker.snapshot(str(place))


def test_state_that_cannot_be_written_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "project").mkdir()
    tracker = DirectoryTracker(tmp_path / "file" / "state", clock=FixedClock(), ids=CountingIds())
    with pytest.raises(PlaceUnusable, match="cannot be written: Not a directory"):
        tracker.snapshot(str(tmp_path / "project"))


def test_a_forgotten_or_spoiled_snapshot_gives_no_answer_and_says_so(watched: Watched) -> None:
    watched.write("a.txt")
    first, second, third = watched.snapshot(), watched.snapshot(), watched.snapshot()
    watched.tracker.forget(first)
    watched.tracker.forget(first)
    next(watched.state.glob(f"*/kept/{second.id}.manifest")).write_bytes(b"\x00spoiled")
    for lost in (first, second):
        found = watched.tracker.changes(lost, third)
        assert (found.own, found.partial) == ([], True)
        assert "no longer kept" in found.warnings[0]


def test_a_spoiled_last_manifest_only_costs_time(watched: Watched) -> None:
    watched.write("a.txt")
    before = watched.snapshot()
    next(watched.state.glob("*/latest")).write_bytes(b"\xff")
    after = watched.snapshot()
    assert after.tree == before.tree


def test_prune_keeps_what_is_asked_for_and_what_is_young(watched: Watched) -> None:
    watched.write("a.txt")
    first = watched.snapshot()
    watched.write("b.txt")
    second = watched.snapshot()
    watched.write("c.txt")
    third = watched.snapshot()
    young = int(watched.root.stat().st_mtime * 1000) - 10_000_000
    assert watched.tracker.prune(young, keep=[]) == 0
    later = young + 20_000_000
    used = watched.tracker.disk_use()
    freed = watched.tracker.prune(later, keep=[first.id, third.id])
    assert freed > 0
    assert watched.tracker.disk_use() == used - freed
    assert told(watched.tracker.changes(first, third)) == {"b.txt": "added", "c.txt": "added"}
    assert watched.tracker.changes(first, second).partial
    watched.tracker.prune(later, keep=[])
    assert watched.tracker.disk_use() == 0


def test_equal_directories_have_equal_hashes(tmp_path: Path) -> None:
    trees = []
    for name in ("one", "two"):
        watched = Watched(tmp_path / name)
        watched.write("a/b.txt", "same"), watched.write("c.txt", "same too")
        trees.append(watched.snapshot())
    assert trees[0].tree == trees[1].tree == trees[0].shown_id
    watched.write("c.txt", "other")
    assert watched.snapshot().tree != trees[0].tree


def test_an_empty_directory_has_a_hash_too(watched: Watched) -> None:
    empty = watched.snapshot()
    assert empty.tree is not None
    assert watched.snapshot().tree == empty.tree
    file = watched.write("a.txt")
    watched.snapshot()
    file.unlink()
    assert watched.snapshot().tree == empty.tree


def test_a_snapshot_survives_as_json(watched: Watched) -> None:
    watched.write("a.txt")
    before = watched.snapshot()
    kept = msgspec.json.decode(msgspec.json.encode(before), type=Snapshot)
    assert kept == before
    watched.write("b.txt")
    assert told(watched.tracker.changes(kept, watched.tracker.snapshot("/nowhere", like=kept))) == {"b.txt": "added"}


def test_paths_that_changed_while_another_task_was_open_are_named_with_it(watched: Watched) -> None:
    mine = watched.snapshot()
    watched.write("alone.txt")
    theirs = watched.snapshot()
    watched.write("both.txt")
    ended = watched.snapshot()
    watched.write("later.txt")
    other = OtherTask(task_id="task_b", started=theirs, ended=ended)
    lost = OtherTask(task_id="task_c", started=msgspec.structs.replace(theirs, id="snap_0", taken_at=theirs.taken_at))
    found = watched.tracker.changes(mine, watched.snapshot(), others=[other, lost])
    assert told(found) == {"alone.txt": "added", "both.txt": "added", "later.txt": "added"}
    assert [(overlap.path, overlap.tasks) for overlap in found.overlaps] == [("both.txt", ["task_b"])]
    assert found.partial
    assert "task_c" in found.warnings[-1]


def test_there_is_no_patch_without_the_contents_before(watched: Watched) -> None:
    before = watched.snapshot()
    with pytest.raises(PlaceUnusable, match="not kept"):
        watched.tracker.patch(before, before)


def test_a_change_has_the_working_tree_as_its_origin(watched: Watched) -> None:
    found = watched.changes(lambda: watched.write("a.txt", "1\n"))
    assert found.own == [
        FileChange(path="a.txt", change="added", origin="working_tree", lines_added=1, lines_removed=0)
    ]
