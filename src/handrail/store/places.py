"""Where database files may be. Recognises network file systems, on which several machines would share a file and SQLite
is not safe; notices files that were removed under an open database, because what is written to them is lost."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

from handrail.kernel.errors import StoreUnusable

_SHARED = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "virtiofs",
    "afs",
    "ceph",
    "glusterfs",
    "fuse.sshfs",
    "fuse.glusterfs",
)
_MOUNTS = Path("/proc/self/mountinfo")
OTHER_FILE = "choose another file with --db"
QUIET_NS = 3_000_000_000
"""Longer than a tick of any file system's clock."""

OPEN_HINTS: dict[int, str] = {
    errno.EMFILE: "this process has too many files open: raise the limit (ulimit -n), then start it again",
    errno.ENFILE: "this machine has too many files open: end something, then call again",
    errno.ENOSPC: "free some space, then call again",
    errno.ELOOP: "it is a symbolic link, which is not followed here: remove it, then call again",
    errno.EROFS: "reading also needs a folder that may be written: copy the file to one, and name the copy with --db",
}
"""What helps when a file cannot be opened, by errno."""
_OPEN_HINT = "check that its folder exists, and that both may be written"


def open_hint(reason: int | None) -> str:
    return OPEN_HINTS.get(reason or 0, _OPEN_HINT)


def why_not_opened(path: Path) -> str:
    """A hint for when SQLite could not open a file: it does not give the reason, but opening another file may."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return open_hint(error.errno)
    # unlike Path's functions, these never raise
    if os.path.isfile(path) and not os.access(os.path.dirname(path), os.W_OK):  # noqa: PTH113, PTH120
        return open_hint(errno.EROFS)
    return _OPEN_HINT


class Files:
    """Files of one folder that an open database relies on, as they were when it was opened.

    They are checked on every write, so the check is cheap: as long as the folder's own times show that nothing in it
    was created, moved or removed, its files are the same. Only a folder that has been quiet for a while is trusted: two
    changes within one tick of the clock leave the same time behind.
    """

    def __init__(self, *paths: Path) -> None:
        self._paths = tuple(map(str, paths))
        self._folder = str(paths[0].parent)
        self._is_plain = not any(path.is_symlink() for path in paths)
        self._seen = self._identities()
        self._believed: _Stamp | None = None

    def check(self) -> None:
        """Raises StoreUnusable if one was removed or replaced: nobody would find what is written now."""
        stamp = _stamp(self._folder)
        if stamp is not None and stamp == self._believed:
            return
        self._believed = None
        if self._identities() != self._seen:
            raise StoreUnusable(
                f"{self._paths[0]} was removed or replaced while it was open",
                hint="start this process again; nothing was written",
            )
        if stamp is not None and self._is_plain and max(stamp[2:]) < time.time_ns() - QUIET_NS:
            self._believed = stamp

    def _identities(self) -> tuple[tuple[int, int], ...]:
        return tuple(map(_identity, self._paths))


_Stamp = tuple[int, int, int, int]


@contextlib.contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A temporary name to write a database under. The file gets its real name once it is complete and on disk, and
    never replaces another; if killed meanwhile, only the temporary file is left behind."""
    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    check_free(target)
    _remove(part)
    make_private(part)
    try:
        yield part
        _sync(part)
        try:
            os.link(part, target)
        except FileExistsError:  # even if that one is gone again: the promised name does not hold our file
            raise _already_there(target) from None
        except OSError:  # a file system without links
            check_free(target)
            part.rename(target)
        _sync(target.parent)
    finally:
        _remove(part)


def make_private(path: Path) -> None:
    """Creates a file that only its owner may read, unless it exists: what agents and people said is private. SQLite
    gives the files it puts beside a database the same permissions."""
    with contextlib.suppress(OSError):  # the next to open it reports what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def check_free(target: Path) -> None:
    """Raises StoreUnusable if a new database would overwrite something."""
    if os.path.lexists(target):
        raise _already_there(target)
    if not target.parent.is_dir():
        raise StoreUnusable(f"there is no folder {target.parent}", hint="make it first; nothing was changed")
    check_place(target)


def _already_there(target: Path) -> StoreUnusable:
    return StoreUnusable(f"{target} is there already", hint="choose another name; nothing was changed")


def _remove(part: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal", ".gate"):
        Path(f"{part}{ending}").unlink(missing_ok=True)


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _stamp(folder: str) -> _Stamp | None:
    """Which folder it is, and when something in it was last created, moved or removed."""
    try:
        found = os.stat(folder)  # noqa: PTH116 - in every write
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def check_place(path: Path) -> None:
    """Raises StoreUnusable where there can be no database: SQLite would not say why."""
    name = str(path)
    if "\0" in name or name.encode(errors="replace").decode() != name:
        raise StoreUnusable(f"{name!r} cannot be the name of a database: only text without NUL can", hint=OTHER_FILE)
    if os.path.isdir(path):  # noqa: PTH112 - as below
        raise StoreUnusable(f"{path} cannot be opened: it is a folder", hint="name a file in it with --db")
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - unlike Path's, they never raise
        raise StoreUnusable(f"{path} cannot be opened: it is no ordinary file", hint=OTHER_FILE)
    network = network_file_system(path)
    if network is not None:
        raise StoreUnusable(
            f"{path} is on {network}, where several processes cannot share one SQLite file safely",
            hint="put it on a local disk with --db FILE, or use --db postgresql://…",
        )


def network_file_system(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """The kind of network file system `path` is on; None if it is local or the system does not tell."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    target = Path(os.path.realpath(path))  # Path.resolve would fail on circular links
    best, kind = Path("/"), ""
    for line in lines:
        before, _, after = line.partition(" - ")
        parts = before.split()
        if len(parts) < 5 or not after:
            continue
        mount = Path(parts[4].replace("\\040", " "))
        if target.is_relative_to(mount) and len(mount.parts) >= len(best.parts):
            best, kind = mount, after.split()[0]
    return kind if kind in _SHARED else None
