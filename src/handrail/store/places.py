"""Where a database file lies: file systems that several machines share are recognised, because SQLite must not be
there."""

from __future__ import annotations

from pathlib import Path

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
