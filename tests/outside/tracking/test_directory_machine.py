"""A directory under random work, held against full copies: whatever was done, the difference told is the one there is.

Nothing here waits, so every file was touched a moment ago. One tracker therefore reads all of them each time; the
other trusts a file's times from the next tick on, which is exact on a local disk and puts the cache to the test.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from handrail.domain.journal.entry import Changes
from handrail.domain.journal.paths import path_text
from handrail.domain.journal.ports import Snapshot
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.outside.tracking.directory import DirectoryTracker
from handrail.outside.tracking.manifest import ManifestBounds

FOLDERS = ("", "a/", "a/b/", "c\n/")
PATHS = st.builds(str.__add__, st.sampled_from(FOLDERS), st.sampled_from(("x", "y.txt", os.fsdecode(b"\xff"))))
CONTENTS = st.sampled_from((b"", b"one", b"two", b"line\nline\n", b"\0bin"))
Copy = dict[str, tuple[str, bytes]]


class Directory(RuleBasedStateMachine):
    """Every invariant is a new snapshot: compared with the one before it and with the first."""

    @initialize()
    def begin(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.root = self.place / "project"
        self.root.mkdir()
        self.trackers = [
            DirectoryTracker(self.place / name, clock=FixedClock(), ids=CountingIds(), bounds=bounds)
            for name, bounds in (
                ("careful", ManifestBounds(time.monotonic)),
                ("trusting", ManifestBounds(time.monotonic, quiet_ns=0)),
            )
        ]
        self.first = self.last = self.look()

    def teardown(self) -> None:
        if hasattr(self, "place"):
            shutil.rmtree(self.place)

    def look(self) -> tuple[list[Snapshot], Copy]:
        return [tracker.snapshot(str(self.root)) for tracker in self.trackers], self.copy()

    def copy(self) -> Copy:
        found: Copy = {}
        for folder, folders, names in os.walk(self.root):
            for name in (*names, *folders):
                file = Path(folder, name)
                path = str(file.relative_to(self.root))
                if file.is_symlink():
                    found[path] = ("link", os.fsencode(file.readlink()))
                elif file.is_file():
                    found[path] = ("executable" if file.stat().st_mode & 0o100 else "file", file.read_bytes())
        return found

    def make_room(self, path: str) -> Path:
        file = self.root / path
        for above in reversed(file.relative_to(self.root).parents):
            here = self.root / above
            if here.is_symlink() or here.is_file():
                here.unlink()
            here.mkdir(exist_ok=True)
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        return file

    @rule(path=PATHS, content=CONTENTS)
    def write(self, path: str, content: bytes) -> None:
        file = self.make_room(path)
        if file.is_symlink():
            file.unlink()
        file.write_bytes(content)

    @rule(path=PATHS, content=CONTENTS)
    def write_and_restore_times(self, path: str, content: bytes) -> None:
        file = self.make_room(path)
        times = file.lstat() if os.path.lexists(file) else None
        self.write(path, content)
        if times is not None:
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    @rule(path=PATHS, aim=st.sampled_from(("x", "y.txt", "a", "nowhere")))
    def link(self, path: str, aim: str) -> None:
        file = self.make_room(path)
        file.unlink(missing_ok=True)
        file.symlink_to(aim)

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        file = self.root / path
        if os.path.lexists(file) and not file.is_dir():
            file.unlink()

    @rule(folder=st.sampled_from(("a", "a/b", "c\n")))
    def delete_folder(self, folder: str) -> None:
        shutil.rmtree(self.root / folder, ignore_errors=True)

    @rule(path=PATHS, executable=st.booleans())
    def set_mode(self, path: str, executable: bool) -> None:
        file = self.root / path
        if file.is_file() and not file.is_symlink():
            file.chmod(0o755 if executable else 0o644)

    @rule(old=PATHS, new=PATHS)
    def move(self, old: str, new: str) -> None:
        source = self.root / old
        if os.path.lexists(source) and not source.is_dir():
            kept = source.rename(self.place / "moving")
            kept.rename(self.make_room(new))

    @invariant()
    def every_difference_is_told(self) -> None:
        if not hasattr(self, "last"):
            return
        now, copy = self.look()
        for snapshots, old in (self.last, self.first):
            for tracker, then, after in zip(self.trackers, snapshots, now, strict=True):
                assert (then.tree == after.tree) == (old == copy)
                check(tracker.changes(then, after), old, copy)
        self.last = (now, copy)


def check(told: Changes, old: Copy, new: Copy) -> None:
    assert {change.path: change.change for change in told.own} == difference(old, new)
    assert (told.partial, told.warnings, told.external) == (False, [], [])
    paths = {path_text(os.fsencode(path)): path for path in (*old, *new)}
    assert len({found.from_path for found in told.renamed}) == len(told.renamed)
    for found in told.renamed:
        assert old[paths[found.from_path]] == new[paths[found.to_path]]


def difference(old: Copy, new: Copy) -> dict[str, str]:
    found = {}
    for path in {*old, *new}:
        if old.get(path) != new.get(path):
            change = "added" if path not in old else "deleted" if path not in new else "modified"
            found[path_text(os.fsencode(path))] = change
    return found


TestDirectory = Directory.TestCase
TestDirectory.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
