"""Where the snapshots of working copies were made: a mark in their folder, as in a store.

They are the journal's evidence: an index that came with a repository could hide changes, and an object could pass for
another. So a folder that holds any and does not have this machine's mark is not used before its user trusted it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from handrail.kernel.errors import PlaceUnusable, StoreNotTrusted
from handrail.kernel.provenance import NONCE_DIGITS, MachineKey

MARKS = "made"
_WHAT = "snapshots"
_LARGEST = 1 << 16


def snapshot_folder(project: Path) -> Path:
    return project / ".handrail" / "snapshots"


def check_snapshots(folder: Path, key: MachineKey) -> None:
    """Marks a folder that holds nothing yet. Raises StoreNotTrusted for one that was filled elsewhere."""
    if not is_foreign(folder, key):
        mark_snapshots(folder, key)
        return
    raise StoreNotTrusted(
        f"{folder} was not made on this machine, so nothing is compared with what it holds",
        hint="remove it, or, if you know where it comes from or an older Handrail made it here: `handrail db trust`",
        path=str(folder),
    )


def is_foreign(folder: Path, key: MachineKey) -> bool:
    """Whether a folder holds snapshots and lacks this machine's mark."""
    if any(key.is_mark(line, _WHAT) for line in _marks(folder)):
        return False
    try:
        return any(entry.name.startswith(("git-", "plain-")) for entry in folder.iterdir())
    except OSError:
        return False


def mark_snapshots(folder: Path, key: MachineKey) -> None:
    """Adds this machine's mark to a folder's, unless it is there."""
    if any(key.is_mark(line, _WHAT) for line in _marks(folder)):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(folder / MARKS, flags, 0o600), "w", encoding="ascii") as marks:
            marks.write(key.mark(os.urandom(NONCE_DIGITS // 2).hex(), _WHAT) + "\n")
    except OSError as problem:
        raise PlaceUnusable(
            f"{folder / MARKS} cannot be written: {problem.strerror}", hint="make the folder writable, or remove it"
        ) from None


def _marks(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder / MARKS, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            return os.read(descriptor, _LARGEST).decode("ascii", "replace").splitlines()
        finally:
            os.close(descriptor)
    return []
