"""Which files of a tree are Handrail's own state: its database with what belongs to it, and its snapshots. They are
never part of what a task did. Names are compared whole: a file that only looks similar is somebody's work."""

from __future__ import annotations

import os
import re

_WITH_JOURNAL = r"(?:-wal|-shm|-journal|\.gate)?"
_DATABASE = rf"handrail\.db(?:\.hooks|-search|\.part-\d+|\.rebuilt-\d+)?{_WITH_JOURNAL}"
_OLDER = r"handrail\.db\.(?:before-restore|before-rebuild|schema-\d+)(?:-\d+)?"
_OURS = re.compile(rf"\.handrail/(?:{_DATABASE}|{_OLDER}|snapshots(?:/.*)?)", re.DOTALL)
_ONCE_IGNORED = re.compile(r"handrail\.db.*|.*\.gate", re.DOTALL)
"""What the .gitignore that Handrail writes into its folder used to cover: more than its own files."""


def is_ours(path: bytes) -> bool:
    """Whether a path, relative to the top of a tree, is Handrail's own."""
    return path.startswith(b".handrail/") and is_own_text(os.fsdecode(path))


def is_own_text(path: str) -> bool:
    return _OURS.fullmatch(path) is not None


def is_overlooked(path: str) -> bool:
    """Whether an older .gitignore of Handrail's own hides a file that is not its own."""
    folder, _, name = path.rpartition("/")
    return folder == ".handrail" and _ONCE_IGNORED.fullmatch(name) is not None and not is_own_text(path)


def overlooked(top: bytes) -> list[bytes]:
    """The files for which that is so. `top` ends in a slash."""
    try:
        entries = [entry for entry in os.scandir(top + b".handrail") if not entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    paths = sorted(b".handrail/" + entry.name for entry in entries)
    return [path for path in paths if is_overlooked(os.fsdecode(path))]
