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

from handrail.known_types import make_known
from handrail.outside.whole_files import drop_file, write_whole


class Note(msgspec.Struct, frozen=True):
    """Locks that a git may be holding, and what it writes."""

    locks: list[str]
    value: str | None


def write_note(file: str, locks: list[str], value: str | None) -> None:
    names = [os.fsencode(lock).hex() for lock in locks]  # paths need not be UTF-8
    write_whole(Path(file), msgspec.json.encode(Note(names, value)))


def drop_left(file: str, wait: Callable[[], object]) -> None:
    """Deletes the locks that a note names, and the note. `wait` takes longer than any running git holds such a lock."""
    try:
        make_known(Note)
        note = msgspec.json.decode(Path(file).read_bytes(), type=Note)
    except FileNotFoundError:
        return
    except (OSError, msgspec.MsgspecError):
        drop_file(file)
        return
    locks = [os.fsdecode(bytes.fromhex(name)) for name in note.locks]
    before = {lock: _facts(lock, note.value) for lock in locks}
    left = {lock: facts for lock, facts in before.items() if facts is not None}
    if left:
        wait()
        for lock, facts in left.items():
            if _facts(lock, note.value) == facts:
                drop_file(lock)
    drop_file(file)


def _facts(lock: str, value: str | None) -> tuple[int, int] | None:
    """What distinguishes a lock from a later one at the same path; None if there is none, or it is somebody else's."""
    try:
        facts = os.lstat(lock)
        with open(lock, "rb") as opened:  # noqa: PTH123
            content = opened.read(100).strip()
    except OSError:
        return None
    if value is not None and content not in (b"", value.encode()):
        return None
    return facts.st_ino, facts.st_mtime_ns
