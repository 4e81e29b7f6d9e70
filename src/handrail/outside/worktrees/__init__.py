"""Worktrees: git working copies for parallel tasks, made, examined, merged and removed without losing anything.

`worktrees_at` is the way in. Nothing here is imported before the first worktree is asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from handrail.kernel.late import late_module

if TYPE_CHECKING:
    from handrail.outside.worktrees import git_worktrees
else:
    git_worktrees = late_module("handrail.outside.worktrees.git_worktrees")


def worktrees_at(project: Path) -> git_worktrees.GitWorktrees:
    """The worktrees of the repository that contains the project; what is kept about them is in the project's
    `.handrail/worktrees/`."""
    return git_worktrees.GitWorktrees(project)
