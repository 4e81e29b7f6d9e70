"""Names that agents choose: branches, bases and folders. Each is checked before git sees it, and refused with the
reason.

A folder must be one that nobody else uses: absolute, new or empty, outside git's own folders and every other working
tree. The one exception is the project's `.handrail/worktrees/`, which git is told to ignore.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from handrail.kernel.errors import WorktreeRefused
from handrail.outside.worktrees.git import Git
from handrail.outside.worktrees.place import WorktreeFolder
from handrail.outside.worktrees.worktree_list import WorktreeRecord

NAME_BYTES = 200
PATH_BYTES = 3000
OTHER_NAME = "choose another name, such as feature/short-words"
OTHER_PATH = "leave the path out, or name a new folder beside the repository"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OBJECT_ID = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")


def check_branch(git: Git, branch: str) -> None:
    """Refuses what cannot be a branch name."""
    shown = branch[:80]
    if not _is_text(branch) or len(branch.encode()) > NAME_BYTES:
        raise WorktreeRefused(f"{shown!r} cannot be the name of a branch", hint=OTHER_NAME)
    confusing = branch.startswith(("-", "refs/")) or branch in ("HEAD", "@") or _OBJECT_ID.fullmatch(branch)
    if confusing or not git.tells("check-ref-format", f"refs/heads/{branch}"):
        raise WorktreeRefused(f"{shown!r} cannot be the name of a branch", hint=OTHER_NAME)


def check_path(place: WorktreeFolder, path: str, entries: Sequence[WorktreeRecord], git: Git) -> str:
    """The path without links and detours, if a worktree may be there."""
    if not _is_text(path) or len(path.encode()) > PATH_BYTES:
        raise WorktreeRefused(f"{path[:80]!r} cannot be the path of a worktree", hint=OTHER_PATH)
    if not os.path.isabs(path):  # noqa: PTH117
        raise WorktreeRefused(f"{path} is not absolute", hint="begin at the root: where a relative path leads differs")
    real = real_path(path)
    if os.path.islink(os.path.normpath(path)):  # noqa: PTH114
        raise WorktreeRefused(f"{path} is a symbolic link", hint=OTHER_PATH)
    if any(part.lower() == ".git" for part in real.split("/")) or is_below(real, git.repository.common_dir):
        raise WorktreeRefused(f"{path} lies in a folder that is git's own", hint=OTHER_PATH)
    if is_below(real, place.folder) and real != place.folder:
        if real[len(place.folder) + 1 :].startswith("."):
            raise WorktreeRefused(f"{path} is a name that is kept for other things", hint=OTHER_PATH)
        outer = [entry for entry in entries if is_below(real, entry.path) and is_below(entry.path, place.folder)]
    else:
        outer = [entry for entry in entries if is_below(real, entry.path)]
    for entry in outer:
        if entry.path != real:
            raise WorktreeRefused(f"{path} lies inside the working copy {entry.path}", hint=OTHER_PATH)
    for entry in entries:
        if entry.path != real and is_below(entry.path, real):
            raise WorktreeRefused(f"the working copy {entry.path} lies inside {path}", hint=OTHER_PATH)
    if is_below(place.project, real):
        raise WorktreeRefused(f"the project lies inside {path}", hint=OTHER_PATH)
    return real


def check_free(path: str) -> None:
    """Refuses a path where something exists other than an empty folder."""
    try:
        is_free = not os.listdir(path)  # noqa: PTH208 - names need not be UTF-8
    except FileNotFoundError:
        is_free = True
    except OSError:
        is_free = False
    if not is_free:
        raise WorktreeRefused(f"there is something at {path} already", hint=OTHER_PATH)


def real_path(path: str) -> str:
    """A path without links in the folders above it; the last name stays as it is."""
    above, name = os.path.split(os.path.normpath(path))
    return os.path.join(os.path.realpath(above), name) if name else above  # noqa: PTH118


def is_below(path: str, folder: str) -> bool:
    """True if `path` is the folder or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_text(text: str) -> bool:
    if not text or _CONTROL.search(text):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
