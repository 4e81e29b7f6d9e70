"""Where database files lie: file systems that several machines share are recognised, because SQLite must not be
there; files that were taken away under an open database are noticed, because what is written to them is lost."""

from __future__ import annotations

import errno
import os
import time
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
}
"""What helps when a file cannot be opened, by the system's reason."""
_OPEN_HINT = "check that its folder exists, and that both may be written"


def open_hint(reason: int | None) -> str:
    return OPEN_HINTS.get(reason or 0, _OPEN_HINT)


def why_not_opened() -> str:
    """What may help after SQLite could not open a file: it does not tell the reason, but the next opening does."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return open_hint(error.errno)
    return _OPEN_HINT


class Files:
    """Files of one folder that an open database relies on, as they were when it was opened.

    Looked for in every write, so the look is short: as long as nothing was made, moved or removed in the folder, which
    the folder's own times tell, every file in it is the one it was. Only a folder that has been quiet for a while is
    believed: two changes within one tick of the clock leave the same time behind.
    """

    def __init__(self, *paths: Path) -> None:
        self._paths = tuple(map(str, paths))
        self._folder = str(paths[0].parent)
        self._is_plain = not any(path.is_symlink() for path in paths)
        self._seen = self._look()
        self._believed: _Stamp | None = None

    def check(self) -> None:
        """Raises StoreUnusable when one was removed or replaced: nobody would find what is written now."""
        stamp = _stamp(self._folder)
        if stamp is not None and stamp == self._believed:
            return
        self._believed = None
        if self._look() != self._seen:
            raise StoreUnusable(
                f"{self._paths[0]} was removed or replaced while it was open",
                hint="start this process again; nothing was written",
            )
        if stamp is not None and self._is_plain and max(stamp[2:]) < time.time_ns() - QUIET_NS:
            self._believed = stamp

    def _look(self) -> tuple[tuple[int, int], ...]:
        return tuple(map(_identity, self._paths))


_Stamp = tuple[int, int, int, int]


def _stamp(folder: str) -> _Stamp | None:
    """Which folder it is, and when something in it was last made, moved or removed."""
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
    """Raises StoreUnusable where there can be no database: SQLite would not tell why."""
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
    """The kind of network file system `path` is on; None on a local one and where the system does not tell."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    target = Path(os.path.realpath(path))  # Path.resolve would stumble over links in a circle
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
