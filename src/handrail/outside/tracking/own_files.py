"""Which files of a tree are Handrail's own state: its database with what belongs to it, its snapshots, and its notes
about worktrees. They are never part of what a task did. Names are compared whole, down to the last file of a snapshot:
a file that only looks similar, or only lies among them, is somebody's work."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

_WITH_JOURNAL = r"(?:-wal|-shm|-journal|\.gate)?"
_DATABASE = rf"handrail\.db(?:\.hooks|-search|\.part-\d+|\.rebuilt-\d+)?{_WITH_JOURNAL}"
_OLDER = r"handrail\.db\.(?:before-restore|before-rebuild|schema-\d+)(?:-\d+)?"
_ID = r"snap_[0-9A-Za-z]{1,26}"
_DRAFT = r"\.[0-9a-f]{8}"
_NOTES = r"(?:large|hidden|last)\.json"
_RECORD = rf"{_NOTES}|\.{_NOTES}{_DRAFT}|kept/(?:{_ID}\.json|\.{_ID}\.json{_DRAFT})"
_INDEX = rf"(?:index(?:\.new)?|(?:staged|basis)\.\d+|kept/{_ID}\.index)(?:\.lock)?"
_LOOSE = r"[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62}|tmp_obj_\w{6})"
_PACKED = r"pack/(?:\.?(?:tmp-\d+-)?pack-[0-9a-f]{40,64}\.(?:pack|idx|rev|keep)|tmp_(?:pack|idx|rev)_\w{6})"
_TRIED = r"probe-\w{8}(?:/(?:probe|link))?|merge-\w{8}(?:/(?:edited|base|arrived))?"
_OF_GIT = rf"git-[0-9a-f]{{20}}/(?:tree|lock|{_RECORD}|{_INDEX}|{_TRIED}|objects/(?:{_LOOSE}|{_PACKED}))"
_MANIFEST = rf"latest|clock|\.latest{_DRAFT}|kept/(?:{_ID}\.(?:manifest|latest)|\.{_ID}\.manifest{_DRAFT})"
_OF_FOLDERS = rf"plain-[0-9a-f]{{20}}/(?:{_MANIFEST})"
_SNAPSHOTS = rf"snapshots(?:/(?:\.gitignore|pruned|{_OF_GIT}|{_OF_FOLDERS}))?"
_WORKTREES = rf"worktrees/(?:\.gitignore|\.lock|\.made/(?:[0-9a-f]{{24}}\.json|\.[0-9a-f]{{24}}\.json{_DRAFT}))"
_OURS = re.compile(rf"\.handrail/(?:{_DATABASE}|{_OLDER}|{_SNAPSHOTS}|{_WORKTREES})", re.ASCII)
_PASSING = re.compile(r"\.(?:scratch|checks|new)-\w{8}", re.ASCII)
"""Folders among the worktrees that last as long as one query."""
_ONCE_IGNORED = re.compile(r"handrail\.db.*|.*\.gate", re.DOTALL)
"""What the .gitignore that Handrail writes into its folder used to cover: more than its own files."""
_FOLDER = b".handrail"
_KEPT = (b".handrail/snapshots", b".handrail/worktrees")
"""Folders of Handrail's that git is told to ignore as a whole."""


def is_ours(path: bytes) -> bool:
    """Whether a path, relative to the top of a tree, is Handrail's own."""
    return path.startswith(b".handrail/") and is_own_text(os.fsdecode(path))


def is_own_text(path: str) -> bool:
    return _OURS.fullmatch(path) is not None


def is_own_worktree(top: bytes, path: bytes) -> bool:
    """Whether a folder is a worktree in the place that Handrail has for them. `top` ends in a slash."""
    return path.rpartition(b"/")[0] == _KEPT[1] and os.path.isfile(top + path + b"/.git")  # noqa: PTH113


def is_overlooked(path: str) -> bool:
    """Whether a .gitignore of Handrail's own hides a file that is not its own."""
    folder, _, name = path.rpartition("/")
    return folder == ".handrail" and _ONCE_IGNORED.fullmatch(name) is not None and not is_own_text(path)


def overlooked(top: bytes) -> list[bytes]:
    """The files for which that is so. `top` ends in a slash."""
    found: list[bytes] = []
    pending = list(_KEPT)
    for path, is_folder in _entries(top, _FOLDER):
        if is_folder:  # a rule for a file covers a folder of that name, and what is in it
            pending += [path] if _ONCE_IGNORED.fullmatch(os.fsdecode(path).rpartition("/")[2]) else []
        elif is_overlooked(os.fsdecode(path)):
            found.append(path)
    while pending:
        folder = pending.pop()
        for path, is_folder in _entries(top, folder):
            if not is_folder:
                found += [] if is_ours(path) else [path]
            elif not _is_passing(path) and not is_own_worktree(top, path):
                pending.append(path)
    return sorted(found)


def _is_passing(path: bytes) -> bool:
    folder, _, name = path.rpartition(b"/")
    return folder == _KEPT[1] and _PASSING.fullmatch(os.fsdecode(name)) is not None


def _entries(top: bytes, folder: bytes) -> Iterator[tuple[bytes, bool]]:
    """The entries of a folder, and whether each is a folder. A link is not followed."""
    if os.path.islink(top + folder):  # noqa: PTH114
        return
    try:
        with os.scandir(top + folder) as listing:
            for entry in listing:
                yield folder + b"/" + entry.name, entry.is_dir(follow_symlinks=False)
    except OSError:
        return
