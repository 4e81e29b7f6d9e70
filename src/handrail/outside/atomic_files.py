"""Files that are written whole or not at all: readers see the old one or the new one, and a failed write leaves nothing
behind. Also deletes files whether they exist or not. What is in them is up to the caller."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

NEW = 0o666
"""The permissions of a new file, before the user's umask."""
PRIVATE = 0o600


def write_whole(file: Path, content: bytes) -> None:
    """Puts a file in place at once, with the permissions of the one it replaces. Raises OSError."""
    kept = _rights_of(file)
    # The replacement of a private file must not be readable by others even for a moment.
    with _draft_beside(file, content, NEW if kept is None else PRIVATE) as draft:
        if kept is not None:
            draft.chmod(kept)
        draft.replace(file)


def write_new(file: Path, content: bytes, *, rights: int = NEW) -> None:
    """The same for a file that must not exist yet. Raises FileExistsError if it does, no matter who was first."""
    with _draft_beside(file, content, rights) as draft:
        try:
            os.link(draft, file)
        except OSError:  # it exists, or this file system has no links
            if os.path.lexists(file):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(file)) from None
            draft.rename(file)


@contextlib.contextmanager
def _draft_beside(file: Path, content: bytes, rights: int) -> Iterator[Path]:
    """Writes the content under a temporary name beside the file. That name is removed at the end."""
    draft = file.with_name(f".{file.name}.{os.urandom(4).hex()}")
    try:
        with open(draft, "xb", opener=lambda path, flags: os.open(path, flags, rights)) as written:
            written.write(content)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _rights_of(file: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(file.stat().st_mode)
    return None


def drop_file(path: str) -> None:
    """Deletes a file, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - names need not be UTF-8
