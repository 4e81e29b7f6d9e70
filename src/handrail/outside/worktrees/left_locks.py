"""Locks that a git of ours left behind when it was killed. Without care each would block everybody's git for good.

Before a git may take locks, a note names them; when it ends, the note goes. Whoever finds a note while holding the
place's lock knows that its writer died. A lock that is named there goes if it is empty or holds what we were writing,
and is still the same after a while: any other belongs to somebody who is at work.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from handrail.known_types import make_known
from handrail.outside.tracking.state import write_whole


class Note(msgspec.Struct, frozen=True):
    """Locks that a git may be holding, and what it writes."""

    locks: list[str]
    value: str | None


def write_note(file: str, locks: list[str], value: str | None) -> None:
    names = [os.fsencode(lock).hex() for lock in locks]  # paths need not be UTF-8
    write_whole(Path(file), msgspec.json.encode(Note(names, value)))


def drop_note(file: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file)  # noqa: PTH108


def drop_left(file: str, wait: Callable[[], object]) -> None:
    """Deletes the locks that a note names, and the note. `wait` takes as long as anybody's git holds such a lock."""
    try:
        make_known(Note)
        note = msgspec.json.decode(Path(file).read_bytes(), type=Note)
    except FileNotFoundError:
        return
    except (OSError, msgspec.MsgspecError):
        drop_note(file)
        return
    locks = [os.fsdecode(bytes.fromhex(name)) for name in note.locks]
    before = {lock: _facts(lock, note.value) for lock in locks}
    left = {lock: facts for lock, facts in before.items() if facts is not None}
    if left:
        wait()
        for lock, facts in left.items():
            if _facts(lock, note.value) == facts:
                drop_note(lock)
    drop_note(file)


def _facts(lock: str, value: str | None) -> tuple[int, int] | None:
    """What tells one lock from a later one at the same place; None where there is none, or one of somebody else's."""
    try:
        facts = os.lstat(lock)
        with open(lock, "rb") as opened:  # noqa: PTH123
            content = opened.read(100).strip()
    except OSError:
        return None
    if value is not None and content not in (b"", value.encode()):
        return None
    return facts.st_ino, facts.st_mtime_ns
