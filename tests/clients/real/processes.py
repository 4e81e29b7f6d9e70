"""Processes of a client, found in /proc: which of them are Handrail's servers, and whether one has ended."""

from __future__ import annotations

import os
import select
from pathlib import Path

DEADLINE_S = 20.0


def children() -> dict[int, list[int]]:
    """Every process of this machine, by its parent."""
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has ended meanwhile
                continue
            found.setdefault(parent, []).append(int(entry.name))
    return found


def servers_below(pid: int) -> list[int]:
    """The processes below this one that run `handrail serve`."""
    tree, below, waiting = children(), [], [pid]
    while waiting:
        for child in tree.get(waiting.pop(), ()):
            waiting.append(child)
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"handrail" in words and b"serve" in words:
                below.append(child)
    return below


def gone(pid: int, within_s: float = DEADLINE_S) -> bool:
    """Waits until a process that need not be ours has ended; whether it did."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within_s)[0])
    finally:
        os.close(watched)
