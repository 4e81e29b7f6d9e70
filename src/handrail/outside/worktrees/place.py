"""The folder `.handrail/worktrees/` of a project: the worktrees that were given no other place, and what is kept about
all of them. Git is told to ignore it.

    .lock           held while something is written, by the process and by every git that it starts
    .made/KEY.json  a worktree that Handrail made: written before it is made, gone when its branch is
    .scratch-ID/    objects and indexes for one query, deleted after it
    .checks-ID/     a worktree of a merged commit while the checks run in it
    NAME/           a worktree

A killed process leaves scratch and checks folders behind; the next call that writes removes them if nobody holds their
lock any more. Worktrees elsewhere are not managed here: those are folders like any other.

Names that agents choose: branches, bases and folders. Each is checked before git sees it, and refused with the reason.

A folder must be one that nobody else uses: absolute, new or empty, outside git's own folders and every other working
tree. The one exception is the project's `.handrail/worktrees/`, which git is told to ignore.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from handrail.kernel.errors import PlaceUnusable, WorktreeRefused
from handrail.outside.atomic_files import write_whole
from handrail.outside.file_lock import FileLock
from handrail.outside.record_files import read_record
from handrail.outside.tracking.git_process import Deadline
from handrail.outside.worktrees.git import Git
from handrail.outside.worktrees.worktree_list import WorktreeRecord

SCRATCH, CHECKS = ".scratch-", ".checks-"
NEW = ".new-"
MEMORY = "/dev/shm"  # noqa: S108 - every folder made there is private to its owner
REPOSITORY_LOCK, REPOSITORY_NOTE = "handrail.lock", "handrail.writing"
"""Two files of ours in git's own folder, which all worktrees share: whose turn it is, and which of git's locks may have
to be removed if their process is killed."""


class BranchOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a worktree's branch began. Stored before anything is made, so that a second attempt recognises it."""

    path: str
    branch: str
    base_branch: str | None
    base_commit: str


class WorktreeFolder:
    """The folder of one project."""

    def __init__(self, project: Path) -> None:
        self.project = os.path.realpath(project)
        self.folder = f"{self.project}/.handrail/worktrees"

    def check(self) -> None:
        for folder in (f"{self.project}/.handrail", self.folder, f"{self.folder}/.made"):
            if os.path.islink(folder):  # noqa: PTH114 - it may have come with the repository, and lead anywhere
                raise PlaceUnusable(f"{folder} is a symbolic link", hint="remove it; what is kept there must lie there")

    def prepare(self) -> None:
        self.check()
        os.makedirs(f"{self.folder}/.made", exist_ok=True)  # noqa: PTH103 - names need not be UTF-8
        with contextlib.suppress(FileExistsError), Path(self.folder, ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")

    @contextlib.contextmanager
    def locked(self, common_dir: str, deadline: Deadline) -> Iterator[tuple[int, ...]]:
        """Keeps other writers out; yields the locks' descriptors, so that git holds them too. There are two locks,
        because projects in several worktrees of one repository have a place each."""
        self.prepare()
        with contextlib.ExitStack() as stack:
            held = []
            for path in (f"{self.folder}/.lock", f"{common_dir}/{REPOSITORY_LOCK}"):
                lock = FileLock(path)
                stack.callback(lock.leave)
                if not lock.taken_within(deadline.left()):
                    raise WorktreeRefused(
                        "another process has worked on the worktrees for too long",
                        hint="try again when it is done",
                    )
                held.append(lock.descriptor)
            yield tuple(held)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[str]:
        """A folder for one query: inside this place if it exists, otherwise in the system's temporary folder."""
        self.check()
        above = self.folder if os.path.isdir(self.folder) else None  # noqa: PTH112
        with self._locked_folder(SCRATCH, above) as folder:
            os.makedirs(f"{folder}/objects/pack")  # noqa: PTH103
            os.makedirs(f"{folder}/objects/info")  # noqa: PTH103
            yield folder

    @contextlib.contextmanager
    def in_memory(self) -> Iterator[str]:
        """A folder for many small files of one query: in memory, if the system has such a place."""
        above = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else None
        prefix = f"handrail-{os.getuid()}-" if above else ""
        for folder in _abandoned_folders(MEMORY, prefix) if above else ():
            clear_away(folder)
        with self._locked_folder(prefix, above) as folder:
            yield folder

    @contextlib.contextmanager
    def checks(self) -> Iterator[str]:
        """A folder to put a worktree into; the caller removes the worktree before leaving."""
        with self._locked_folder(CHECKS, self.folder) as folder:
            yield folder

    @contextlib.contextmanager
    def _locked_folder(self, prefix: str, above: str | None) -> Iterator[str]:
        unheld = tempfile.mkdtemp(prefix=NEW if above else "handrail-", dir=above)
        lock = FileLock(f"{unheld}/lock")
        lock.taken_within(0)
        folder = unheld.replace(NEW, prefix) if above else unheld
        try:
            os.rename(unheld, folder)  # noqa: PTH104 - under its own name only once it is held
            yield folder
        finally:
            clear_away(folder)
            lock.leave()

    def abandoned(self) -> list[str]:
        """Folders for one query whose process is gone. Call only while the place is locked."""
        return _abandoned_folders(self.folder, (SCRATCH, CHECKS))

    def origin(self, branch: str) -> BranchOrigin | None:
        """How a branch began, if Handrail made it."""
        return self._read_origin(self._origin(branch))

    def origin_at(self, path: str) -> BranchOrigin | None:
        """The worktree that Handrail made at a path."""
        try:
            files = sorted(Path(self.folder, ".made").glob("*.json"))
        except OSError:
            return None
        return next(
            (origin for origin in map(self._read_origin, files) if origin is not None and origin.path == path), None
        )

    def remember(self, origin: BranchOrigin) -> None:
        write_whole(self._origin(origin.branch), msgspec.json.encode(origin))

    def forget(self, branch: str) -> None:
        self._origin(branch).unlink(missing_ok=True)

    def _origin(self, branch: str) -> Path:
        return Path(self.folder, ".made", f"{hashlib.sha256(os.fsencode(branch)).hexdigest()[:24]}.json")

    @staticmethod
    def _read_origin(file: Path) -> BranchOrigin | None:
        return read_record(file, BranchOrigin)


def _abandoned_folders(above: str, prefix: str | tuple[str, ...]) -> list[str]:
    """Folders left behind by processes that died."""
    found = []
    for entry in os.scandir(above):
        if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                lock = FileLock(f"{entry.path}/lock")
                if lock.taken_within(0):
                    found.append(entry.path)
                lock.leave()
    return found


def clear_away(folder: str) -> None:
    """Deletes a folder or a file, even if parts of it are read-only. Links are not followed."""
    if os.path.islink(folder) or not os.path.isdir(folder):  # noqa: PTH112, PTH114
        with contextlib.suppress(OSError):
            os.unlink(folder)  # noqa: PTH108
        return
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.lexists(folder):
        return
    for path, names, _ in os.walk(folder):
        for name in (".", *names):
            below = f"{path}/{name}"
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(os.lstat(below).st_mode):
                    os.chmod(below, 0o700)  # noqa: PTH101
    shutil.rmtree(folder, ignore_errors=True)


NAME_BYTES = 200
PATH_BYTES = 3000
OTHER_NAME = "choose another name, such as feature/short-words"
OTHER_PATH = "leave the path out, or name a new folder beside the repository"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OBJECT_ID = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")


def check_branch(git: Git, branch: str) -> None:
    """Refuses what cannot be a branch name."""
    shown = branch[:80]
    if not _is_text(branch) or len(branch.encode()) > NAME_BYTES:
        raise WorktreeRefused(f"{shown!r} cannot be the name of a branch", hint=OTHER_NAME)
    confusing = branch.startswith(("-", "refs/")) or branch in ("HEAD", "@") or _OBJECT_ID.fullmatch(branch)
    if confusing or not git.tells("check-ref-format", f"refs/heads/{branch}"):
        raise WorktreeRefused(f"{shown!r} cannot be the name of a branch", hint=OTHER_NAME)


def check_path(place: WorktreeFolder, path: str, entries: Sequence[WorktreeRecord], git: Git) -> str:
    """The path without links and detours, if a worktree may be there."""
    if not _is_text(path) or len(path.encode()) > PATH_BYTES:
        raise WorktreeRefused(f"{path[:80]!r} cannot be the path of a worktree", hint=OTHER_PATH)
    if not os.path.isabs(path):  # noqa: PTH117
        raise WorktreeRefused(f"{path} is not absolute", hint="begin at the root: where a relative path leads differs")
    real = real_path(path)
    if os.path.islink(os.path.normpath(path)):  # noqa: PTH114
        raise WorktreeRefused(f"{path} is a symbolic link", hint=OTHER_PATH)
    if any(part.lower() == ".git" for part in real.split("/")) or is_below(real, git.repository.common_dir):
        raise WorktreeRefused(f"{path} lies in a folder that is git's own", hint=OTHER_PATH)
    if is_below(real, place.folder) and real != place.folder:
        if real[len(place.folder) + 1 :].startswith("."):
            raise WorktreeRefused(f"{path} is a name that is kept for other things", hint=OTHER_PATH)
        outer = [entry for entry in entries if is_below(real, entry.path) and is_below(entry.path, place.folder)]
    else:
        outer = [entry for entry in entries if is_below(real, entry.path)]
    for entry in outer:
        if entry.path != real:
            raise WorktreeRefused(f"{path} lies inside the working copy {entry.path}", hint=OTHER_PATH)
    for entry in entries:
        if entry.path != real and is_below(entry.path, real):
            raise WorktreeRefused(f"the working copy {entry.path} lies inside {path}", hint=OTHER_PATH)
    if is_below(place.project, real):
        raise WorktreeRefused(f"the project lies inside {path}", hint=OTHER_PATH)
    return real


def check_free(path: str) -> None:
    """Refuses a path where something exists other than an empty folder."""
    try:
        is_free = not os.listdir(path)  # noqa: PTH208 - names need not be UTF-8
    except FileNotFoundError:
        is_free = True
    except OSError:
        is_free = False
    if not is_free:
        raise WorktreeRefused(f"there is something at {path} already", hint=OTHER_PATH)


def real_path(path: str) -> str:
    """A path without links in the folders above it; the last name stays as it is."""
    above, name = os.path.split(os.path.normpath(path))
    return os.path.join(os.path.realpath(above), name) if name else above  # noqa: PTH118


def is_below(path: str, folder: str) -> bool:
    """True if `path` is the folder or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_text(text: str) -> bool:
    if not text or _CONTROL.search(text):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
