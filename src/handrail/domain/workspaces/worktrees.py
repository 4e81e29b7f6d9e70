"""The port to git's worktrees: make one, look at many, foresee conflicts, merge, take away. No I/O here.

Unlike the tracker, what is behind this port writes to the user's repository, because it is asked to: branches,
worktrees and merge commits. It never throws away a commit that nothing else holds, nor a file that is not committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

CheckRun = Callable[[str], list[dict[str, object]]]
"""Runs the project's checks in a folder and says how each ended (`passed` tells)."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree that is there, on its branch."""

    path: str
    branch: str
    base_branch: str | None
    """The branch it was made from; None where that was a commit."""
    base_commit: str
    existed: bool = False
    """True when the worktree or its branch was there already, as asked: an earlier try got this far, or the worktree
    was taken away and its branch kept. `base_commit` is then where the branch once began."""
    notes: tuple[str, ...] = ()
    """What whoever works there has to know: submodules that are not checked out, filters that were not run."""


class Looked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What git says of one worktree now."""

    path: str
    exists: bool
    branch: str | None = None
    head: str | None = None
    dirty: tuple[str, ...] = ()
    """Files that are not committed, the first ten: changed, staged, untracked; not the ignored ones."""
    dirty_count: int = 0
    ignored_count: int = 0
    """Files that git is told to ignore; a folder that is ignored as a whole counts as one."""
    ahead: int = 0
    behind: int = 0
    bytes_used: int | None = None
    """None where it could not be counted in time."""
    locked_by: str | None = None
    problem: str | None = None
    """Why there is no answer, or only a part of one."""


class Clash(msgspec.Struct, frozen=True):
    """Two branches, or a branch and its base, that would not merge."""

    one: str
    other: str
    paths: tuple[str, ...]


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """Which worktrees would not merge, and what could not be told."""

    clashes: tuple[Clash, ...] = ()
    problems: dict[str, str] = {}
    """Worktrees that the forecast leaves out, or knows only in part, each with the reason; the empty text stands for
    all of them."""


class MergeDone(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that is part of its base now."""

    commit: str
    already: bool = False
    """True when it was before; `commit` is then the merge that did it, where there is one, else the base."""
    checks: tuple[dict[str, object], ...] = ()


class Removal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What taking a worktree away did, or would do."""

    path: str
    removed: bool
    branch_deleted: bool = False
    kept_commit: str | None = None
    """The commit on its branch that holds what was not committed before; None in a dry run, which makes none."""
    committed_files: int = 0
    """Files in that commit, or that would be in it."""
    kept_branch: str | None = None
    """A branch made for commits that no branch held: those of a detached HEAD."""
    ignored_files: int = 0
    bytes_freed: int = 0
    kept_because: str | None = None
    """Why the folder stays."""


class Worktrees(Protocol):
    """The worktrees of one repository. Every call is synchronous and bounded in time; whatever was left half done by a
    process that died is taken up by the next call for the same thing."""

    def make(self, path: str, branch: str, base: str | None) -> Made:
        """A worktree at `path` on the new branch `branch`, which begins at `base` (HEAD where none is named)."""
        ...

    def look(self, paths: Mapping[str, str | None]) -> dict[str, Looked]:
        """What git says of these worktrees; each path with the base its branch is held against."""
        ...

    def foresee(self, worktrees: Mapping[str, str], base: str) -> Foreseen:
        """Which of these worktrees (each name with its path) would not merge with each other, or with `base`, as they
        are now: with what is not committed. The base's name in a clash is the empty text."""
        ...

    def merge(self, branch: str, base: str, *, message: str, checks: CheckRun | None) -> MergeDone:
        """Makes the branch part of its base, which is a branch too, by a merge commit; refused where it conflicts, a
        check fails, the branch's worktree has something uncommitted, or the base's own working copy is in the way.
        Nothing is changed then. The checks run in a worktree of the merged commit that is gone afterwards."""
        ...

    def remove(self, path: str, *, base: str | None, delete_branch: bool, ignored: bool, dry_run: bool) -> Removal:
        """Takes a worktree away when nothing is lost by it. What is not committed is committed to its branch first;
        files that git ignores go only when `ignored` says so. A branch goes only when `base` has all of it. Where the
        folder stays, nothing is changed and `kept_because` tells why; a dry run changes nothing at all."""
        ...
