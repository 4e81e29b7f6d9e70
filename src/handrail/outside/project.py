"""Where a project's state is: the root of git's main worktree, so that linked worktrees share it; outside git, the
given folder. Reads a few small files; never runs git, because this is on every start-up path."""

from __future__ import annotations

import os
from pathlib import Path

from handrail.kernel.limits import GIT_FILE_BYTES
from handrail.regular_files import read_regular


def find_project(start: Path) -> Path:
    """The folder that holds (or would hold) `.handrail/` for work done in `start`."""
    start = start.resolve()
    for folder in (start, *start.parents):
        marker = folder / ".git"
        if marker.is_dir():
            return folder
        if marker.is_file():
            return _main_worktree(marker) or folder
    return start


def repository_root(path: str) -> str:
    """The root of the repository that contains an absolute path. A path that is not a folder here is only normalised:
    it may be another machine's, or gone."""
    try:
        if Path(path).is_dir():
            return str(find_project(Path(path)))
    except (OSError, RuntimeError):  # not readable, too long, or circular links
        pass
    return os.path.normpath(path)


def _main_worktree(marker: Path) -> Path | None:
    """The main worktree of the linked worktree whose `.git` file is `marker`; None for a submodule, a bare repository
    and anything that cannot be read: there the folder itself is the root."""
    try:
        text = _small_text(marker)
        git_dir = (marker.parent / text.removeprefix("gitdir:").strip()).resolve()
        common = (git_dir / _small_text(git_dir / "commondir")).resolve()
    except (OSError, ValueError, RuntimeError):  # ValueError: no text, or a NUL in it; RuntimeError: circular links
        return None
    return common.parent if common.name == ".git" else None


def _small_text(file: Path) -> str:
    return read_regular(file, GIT_FILE_BYTES).decode().strip()
