"""Walks through a worktree's folder: how much disk space it takes, and which repositories are inside it. Bounded: an
unfinished walk says so."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from handrail.outside.tracking.git_process import Deadline

ENTRIES = 2_000_000


class Measured(NamedTuple):
    """What a walk found."""

    bytes_used: int
    nested: list[str]
    """Folders with a `.git` of their own."""
    is_whole: bool


def measure(folder: str, deadline: Deadline, *, entries: int = ENTRIES) -> Measured:
    """Measures a folder. Links are not followed; a file with two names counts once."""
    total, left = 0, entries
    nested: list[str] = []
    seen: set[tuple[int, int]] = set()
    pending = [folder]
    while pending:
        if left < 0 or deadline.left() <= 0:
            return Measured(total, nested, is_whole=False)
        current = pending.pop()
        with contextlib.suppress(OSError), os.scandir(current) as found:
            for entry in found:
                left -= 1
                if entry.name == ".git" and current != folder:
                    nested.append(current)
                with contextlib.suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if facts.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                        if (facts.st_dev, facts.st_ino) in seen:
                            continue
                        seen.add((facts.st_dev, facts.st_ino))
                    total += facts.st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return Measured(total, nested, is_whole=True)
