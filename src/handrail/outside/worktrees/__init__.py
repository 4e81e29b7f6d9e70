"""Worktrees: git working copies for parallel tasks, made, examined, merged and removed without losing anything.

`worktrees_at` is the way in. Nothing here is imported before the first worktree is asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.outside.worktrees.git_worktrees import GitWorktrees


def worktrees_at(project: Path) -> GitWorktrees:
    """The worktrees of the repository that contains the project; what is kept about them is in the project's
    `.handrail/worktrees/`."""
    from handrail.outside.worktrees.git_worktrees import GitWorktrees  # noqa: PLC0415 - it needs subprocess

    return GitWorktrees(project)
