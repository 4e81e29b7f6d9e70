"""The port to git's worktrees: make one, inspect many, foresee conflicts, merge, remove. No I/O here.

Unlike the tracker, what is behind this port writes to the user's repository, because it is asked to: branches,
worktrees and merge commits. It never deletes a commit that nothing else refers to, nor an uncommitted file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

CheckRun = Callable[[str], list[dict[str, object]]]
"""Runs the project's checks in a folder and says how each ended (see its `passed`)."""


class MadeWorktree(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree that exists, on its branch."""

    path: str
    branch: str
    base_branch: str | None
    """The branch it was made from; None if that was a commit."""
    base_commit: str
    existed: bool = False
    """True if the requested worktree or its branch already existed: an earlier attempt got this far, or the worktree
    was removed and its branch kept. `base_commit` is then where the branch originally began."""
    notes: tuple[str, ...] = ()
    """What anyone working there has to know: submodules that are not checked out, filters that were not run."""


class WorktreeState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What git says about one worktree now."""

    path: str
    exists: bool
    branch: str | None = None
    head: str | None = None
    dirty: tuple[str, ...] = ()
    """The first ten uncommitted files: changed, staged or untracked, but not ignored."""
    dirty_count: int = 0
    ignored_count: int = 0
    """Files that git ignores; a folder ignored as a whole counts as one."""
    ahead: int = 0
    behind: int = 0
    bytes_used: int | None = None
    """None if it could not be computed in time."""
    locked_by: str | None = None
    problem: str | None = None
    """Why there is no answer, or only a partial one."""


class Clash(msgspec.Struct, frozen=True):
    """Two branches, or a branch and its base, that would not merge."""

    one: str
    other: str
    paths: tuple[str, ...]


class ForeseenConflicts(msgspec.Struct, frozen=True, kw_only=True):
    """Which worktrees would not merge, and what could not be determined."""

    clashes: tuple[Clash, ...] = ()
    problems: dict[str, str] = {}
    """Worktrees that the forecast leaves out or covers only in part, each with the reason; an empty text as the key
    stands for all of them."""


class MergeDone(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that is now part of its base."""

    commit: str
    already: bool = False
    """True if it already was before; `commit` is then the merge that did it if there is one, else the base."""
    checks: tuple[dict[str, object], ...] = ()


class Removal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What removing a worktree did, or would do."""

    path: str
    removed: bool
    branch_deleted: bool = False
    kept_commit: str | None = None
    """The commit on its branch that saves what was uncommitted; None in a dry run, which makes none."""
    committed_files: int = 0
    """How many files are in that commit, or would be."""
    kept_branch: str | None = None
    """A branch made for commits that were on no branch: those of a detached HEAD."""
    ignored_files: int = 0
    bytes_freed: int = 0
    kept_because: str | None = None
    """Why the folder stays."""


class Worktrees(Protocol):
    """The worktrees of one repository. Every call is synchronous and bounded in time; what a process that died left
    half done is picked up by the next call for the same thing."""

    def make(self, path: str, branch: str, base: str | None) -> MadeWorktree:
        """Makes a worktree at `path` on the new branch `branch`, which begins at `base` (by default HEAD)."""
        ...

    def look(self, paths: Mapping[str, str | None]) -> dict[str, WorktreeState]:
        """What git says about these worktrees; each path comes with the base to compare its branch with."""
        ...

    def foresee(self, worktrees: Mapping[str, str], base: str) -> ForeseenConflicts:
        """Which of these worktrees (names with their paths) would not merge with each other or with `base` in their
        current state, uncommitted changes included. In a clash the base's name is the empty text."""
        ...

    def merge(self, branch: str, base: str, *, message: str, checks: CheckRun | None) -> MergeDone:
        """Merges the branch into its base, also a branch, with a merge commit. Refuses, and changes nothing, if there
        are conflicts, a check fails, the branch's worktree has uncommitted changes, or the base's own working copy is
        in the way. The checks run in a temporary worktree of the merged commit."""
        ...

    def remove(self, path: str, *, base: str | None, delete_branch: bool, ignored: bool, dry_run: bool) -> Removal:
        """Removes a worktree if that loses nothing. Uncommitted changes are first committed to its branch; files that
        git ignores are deleted only if `ignored` is set, and a branch only if `base` contains all of it. If the folder
        stays, nothing changes and `kept_because` says why; a dry run changes nothing at all."""
        ...
