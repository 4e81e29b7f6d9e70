"""Locks that a git of ours left behind when it was killed. If nobody removed them, each would block everybody's git for
good.

Before a git may take locks, a note names them; when it ends, the note is removed. So a note found while holding the
place's lock means that its writer died. A lock named there is removed if it is empty or holds what we were writing, and
is still the same after a while: any other belongs to somebody at work.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from handrail.outside.atomic_files import drop_file, write_whole
from handrail.outside.record_files import read_record
from handrail.regular_files import read_beginning


class LockNote(msgspec.Struct, frozen=True):
    """Locks that a git may be holding, and what it writes."""

    locks: list[str]
    value: str | None


def write_note(file: str, locks: list[str], value: str | None) -> None:
    names = [os.fsencode(lock).hex() for lock in locks]  # paths need not be UTF-8
    write_whole(Path(file), msgspec.json.encode(LockNote(names, value)))


def drop_left(file: str, wait: Callable[[], object]) -> None:
    """Deletes the locks that a note names, and the note. `wait` takes longer than any running git holds such a lock."""
    note = read_record(file, LockNote)
    if note is None:
        drop_file(file)
        return
    locks = _locks_in(note, os.path.dirname(file))  # noqa: PTH120 - names need not be UTF-8
    before = {lock: _facts(lock, note.value) for lock in locks}
    left = {lock: facts for lock, facts in before.items() if facts is not None}
    if left:
        wait()
        for lock, facts in left.items():
            if _facts(lock, note.value) == facts:
                drop_file(lock)
    drop_file(file)


def _locks_in(note: LockNote, git_dir: str) -> list[str]:
    """The locks that a note names. It may have come with the repository, so it names none outside of git's folder."""
    own = os.path.join(os.path.realpath(git_dir), "")  # noqa: PTH118 - as above
    try:
        named = [os.fsdecode(bytes.fromhex(name)) for name in note.locks]
        above = [os.path.join(os.path.realpath(os.path.dirname(lock)), "") for lock in named]  # noqa: PTH118, PTH120
    except ValueError:
        return []
    return [lock for lock, folder in zip(named, above, strict=True) if folder.startswith(own)]


def _facts(lock: str, value: str | None) -> tuple[int, int] | None:
    """What distinguishes a lock from a later one at the same path; None if there is none, or it is somebody else's."""
    try:
        facts = os.lstat(lock)
        content = read_beginning(lock, 100, links=False).strip()
    except OSError:
        return None
    if value is not None and content not in (b"", value.encode()):
        return None
    return facts.st_ino, facts.st_mtime_ns
