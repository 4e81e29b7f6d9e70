"""Where database files lie: file systems that several machines share are recognised, because SQLite must not be
there; files that were taken away under an open database are noticed, because what is written to them is lost."""

from __future__ import annotations

import errno
import os
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
    """Files an open database relies on, as they were when it was opened."""

    def __init__(self, *paths: Path) -> None:
        self._paths = tuple(map(str, paths))
        self._seen = self._look()

    def check(self) -> None:
        """Raises StoreUnusable when one was removed or replaced: nobody would find what is written now."""
        if self._look() != self._seen:
            raise StoreUnusable(
                f"{self._paths[0]} was removed or replaced while it was open",
                hint="start this process again; nothing was written",
            )

    def _look(self) -> tuple[tuple[int, int], ...]:
        return tuple(map(_identity, self._paths))


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - in every write
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def network_file_system(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """The kind of network file system `path` is on; None on a local one and where the system does not tell."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    target = path.resolve()
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
