"""What the engine keeps for one working tree: a private index, a private object store, and snapshots.

Everything is in a folder of its own, never in the user's repository, and readable by nobody else: untracked files may
hold secrets. The layout:

    <key>/tree           the path of the working tree
    <key>/lock           one snapshot at a time
    <key>/index          the private index, kept between snapshots for its cache of file times
    <key>/objects/       blobs and trees that the user's repository does not have
    <key>/large.json     fingerprints of files too large to store
    <key>/last.json      what the last snapshot found: most of it still holds at the next
    <key>/kept/ID.json   a snapshot's notes; ID.index, its index, by hard link
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from handrail.outside.atomic_files import write_whole
from handrail.outside.file_lock import FileLock
from handrail.outside.record_files import read_record
from handrail.outside.tracking.git_process import Deadline


class Large(msgspec.Struct, frozen=True, array_like=True):
    """A file that is in no tree: too large to store, unreadable, or under a filter that is not run."""

    mode: str
    size: int
    print: str
    """A hash of its content, prefixed with the hash's name."""
    oid: str | None = None
    """The id of the blob that git would make of it, if that is known."""
    raw: str | None = None
    """The id that a blob of its bytes would have."""


class IgnoreSources(msgspec.Struct, frozen=True, kw_only=True):
    """The ignore rules that are in no tree. Their texts are bytes, written as latin-1."""

    repository: str = ""
    """Those of `.git/info/exclude`."""
    user: str = ""
    """Those of the user's file for all repositories."""
    inside: dict[str, str] = {}
    """Those of .gitignore files that are ignored themselves, by their paths."""
    is_whole: bool = True
    """False if there is more than is kept; then there is only a fingerprint."""


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """What a snapshot knows besides its tree. Paths are texts as in `domain/journal/paths.py`."""

    began_ns: int = 0
    """When it began, by the file system's clock."""
    tree: str = ""
    branch: str | None = None
    refs: list[str] = []
    """Everything any ref pointed to: the commits that were known."""
    heads: dict[str, str] = {}
    """The branches among them."""
    large: dict[str, Large] = {}
    unstaged: dict[str, str] = {}
    """Where the user's index differs from the working tree: `D` not in the index, `A` only there, others modified."""
    dirty: list[str] = []
    """Paths that differed from HEAD, roughly. Comparing the trees is exact, as long as they exist."""
    rules: str = ""
    """A fingerprint of the ignore rules that are in no tree."""
    ignoring: IgnoreSources | None = None
    """Those rules; None in snapshots of older versions."""
    since: str = ""
    """The snapshot since whose time hidden files were looked for: they are in `large`."""
    are_rules_new: bool = False
    """Whether ignore rules changed since."""
    hidden_folders: dict[str, int] = {}
    """Folders of tools that are hidden since, and how many files are in them."""
    is_hidden_cut: bool = False
    """Whether more may be hidden than was found."""
    attributes: str = ""
    """A fingerprint of the rules for conversions outside the tree."""
    line_ends: str = ""
    """What is configured about line ends."""
    raw: dict[str, str] = {}
    """For files that git converts: the ids of their bytes as they were, as far as they were read."""
    reflog_size: int = 0
    reflog_end: str = ""
    """A fingerprint of the last line of HEAD's reflog, to detect whether the log was cut since."""


class Last(msgspec.Struct, frozen=True, kw_only=True):
    """What the last snapshot found, and the conditions under which that holds."""

    tree: str
    users_index: list[int]
    """Size, times and inode of the user's index."""
    rules: str
    unstaged: dict[str, str]
    submodules: list[str]
    raw: dict[str, str] = {}
    sparse: str = ""
    """A fingerprint of the patterns of a sparse checkout."""
    doubtful: dict[str, int] = {}
    """Files that changed in the second in which git looked at them, with the times of their last changes."""
    are_folders_doubtful: bool = False


class Busy(Exception):  # noqa: N818 - it leads to a partial answer
    """Another process has kept the tree locked for too long."""


class TreeState:
    """The folder of one working tree."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.name = folder.rpartition("/")[2]
        self.index = f"{folder}/index"
        self.objects = f"{folder}/objects"

    def kept_index(self, snapshot_id: str) -> str:
        return f"{self.folder}/kept/{snapshot_id}.index"

    def _notes(self, snapshot_id: str) -> Path:
        return Path(self.folder, "kept", f"{snapshot_id}.json")

    def prepare(self, top: str) -> None:
        if os.path.islink(self.folder):  # noqa: PTH114
            raise OSError(errno.ELOOP, "the folder for its snapshots is a symbolic link", self.folder)
        for part in ("objects/pack", "objects/info", "kept"):
            os.makedirs(f"{self.folder}/{part}", mode=0o700, exist_ok=True)  # noqa: PTH103 - names need not be UTF-8
        Path(self.folder).chmod(0o700)
        named = Path(self.folder, "tree")
        if not named.exists():
            named.write_bytes(os.fsencode(top))

    def keep(self, snapshot_id: str, notes: Notes) -> None:
        """Keeps a snapshot. Git replaces its index with a new file, so the linked one stays as it is."""
        write_whole(self._notes(snapshot_id), msgspec.json.encode(notes))
        with contextlib.suppress(OSError):  # no hard links here: comparing then needs the trees
            os.link(self.index, self.kept_index(snapshot_id))

    def notes(self, snapshot_id: str) -> Notes | None:
        """A snapshot's notes; None if they are gone."""
        return read_record(self._notes(snapshot_id), Notes)

    def forget(self, snapshot_id: str) -> None:
        for path in (self._notes(snapshot_id), Path(self.kept_index(snapshot_id))):
            path.unlink(missing_ok=True)

    def kept(self) -> dict[str, int]:
        """The ids of the kept snapshots, with the times they were written, in milliseconds."""
        found = {}
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"{self.folder}/kept"):
                if entry.name.endswith(".json"):
                    found[entry.name.removesuffix(".json")] = entry.stat().st_mtime_ns // 1_000_000
        return found

    def last(self) -> Last | None:
        return read_record(Path(self.folder, "last.json"), Last)

    def remember(self, last: Last) -> None:
        write_whole(Path(self.folder, "last.json"), msgspec.json.encode(last))

    def now_ns(self) -> int:
        """The time as files have it: the kernel stamps them with a coarser clock than it gives programs."""
        os.utime(self.folder)
        return os.stat(self.folder).st_mtime_ns  # noqa: PTH116

    @contextlib.contextmanager
    def locked(self, deadline: Deadline) -> Iterator[None]:
        """Keeps others from taking a snapshot of this tree. The kernel releases the lock if its holder dies."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        lock = FileLock(f"{self.folder}/lock")
        try:
            if not lock.taken_within(deadline.left()):
                raise Busy(self.folder)
            yield
        finally:
            lock.leave()


_OURS = re.compile(r"git-[0-9a-f]{20}")


class StateFolder:
    """The folders of all working trees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, top: str, git_dir: str) -> TreeState:
        """The state of one tree. A linked worktree has its own: same repository, different tree."""
        key = hashlib.sha256(os.fsencode(top) + b"\0" + os.fsencode(git_dir)).hexdigest()[:20]
        return TreeState(f"{self.folder}/git-{key}")

    def named(self, name: str) -> TreeState:
        return TreeState(f"{self.folder}/{Path(name).name}")

    def all(self) -> list[TreeState]:
        try:
            entries = [entry for entry in os.scandir(self.folder) if entry.is_dir(follow_symlinks=False)]
            names = sorted(entry.name for entry in entries if _OURS.fullmatch(entry.name))
        except OSError:
            return []
        return [TreeState(f"{self.folder}/{name}") for name in names]

    def disk_use(self) -> int:
        return sum(disk_use(state.folder) for state in self.all())


def disk_use(folder: str) -> int:
    """Bytes on disk below a folder; a file with two names counts once."""
    seen: dict[int, int] = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                facts = os.lstat(f"{path}/{name}")
                seen[facts.st_ino] = facts.st_blocks * 512
    return sum(seen.values())
