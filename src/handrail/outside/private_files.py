"""Files in the user's folder that only this user may have written: keys and tokens. What others could have put there is
refused; what they could only read is closed to them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from handrail.outside.atomic_files import PRIVATE

LARGEST = 1 << 20


class NotPrivate(Exception):  # noqa: N818 - it describes the file
    """Why a file may be somebody else's work."""


def read_private(file: Path) -> bytes | None:
    """Its content; None if there is no such file. Raises NotPrivate, or OSError."""
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError:
        if file.is_symlink():
            raise NotPrivate("it is a symbolic link") from None
        raise
    try:
        _check(os.fstat(descriptor), file.parent)
        if os.name == "posix" and os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, PRIVATE)
        return os.read(descriptor, LARGEST)
    finally:
        os.close(descriptor)


def make_private_folder(folder: Path) -> None:
    """Makes the user's folder; one that is there must be the user's, and others may not put anything into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = folder.stat()
    if os.name != "posix":
        return
    if facts.st_uid != os.geteuid():
        raise NotPrivate(f"{folder} belongs to another user")
    if facts.st_mode & 0o022:
        folder.chmod(stat.S_IMODE(facts.st_mode) & ~0o022)


def _check(facts: os.stat_result, folder: Path) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise NotPrivate("it is no ordinary file")
    if os.name != "posix":
        return
    if facts.st_uid != os.geteuid():
        raise NotPrivate("it belongs to another user")
    if facts.st_mode & 0o022 and folder.stat().st_mode & 0o011:  # who cannot enter the folder cannot reach the file
        raise NotPrivate("others may write to it, so it may be theirs: remove it, and a new one is made")
