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
    """True when it was there already, as asked: an earlier try got this far."""


class Looked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What git says of one worktree now."""

    path: str
    exists: bool
    branch: str | None = None
    head: str | None = None
    dirty: tuple[str, ...] = ()
    """Files that are not committed, the first few; not the ignored ones."""
    dirty_count: int = 0
    ignored_count: int = 0
    """Files that git is told to ignore: they go with the folder."""
    ahead: int = 0
    behind: int = 0
    bytes_used: int | None = None
    locked_by: str | None = None
    problem: str | None = None
    """Why there is no answer, or only a part of one."""


class Clash(msgspec.Struct, frozen=True):
    """Two branches, or a branch and its base, that would not merge."""

    one: str
    other: str
    paths: tuple[str, ...]


class MergeDone(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that is part of its base now."""

    commit: str
    already: bool = False
    """True when it was before."""
    checks: tuple[dict[str, object], ...] = ()


class Removal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What taking a worktree away did, or would do."""

    path: str
    removed: bool
    branch_deleted: bool = False
    kept_commit: str | None = None
    """The commit on its branch that holds what was not committed before."""
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

    def foresee(self, worktrees: Mapping[str, str], base: str) -> list[Clash]:
        """Which of these worktrees (by name) would not merge with each other, or with `base`, as they are now: with
        what is not committed. The base's name in a clash is the empty text."""
        ...

    def merge(self, branch: str, base: str, *, message: str, checks: CheckRun | None) -> MergeDone:
        """Makes the branch part of its base by a merge commit; refused where it conflicts, a check fails, or the base's
        own working copy is in the way. Nothing is changed then."""
        ...

    def remove(self, path: str, *, base: str | None, delete_branch: bool, ignored: bool, dry_run: bool) -> Removal:
        """Takes a worktree away when nothing is lost by it. What is not committed is committed to its branch first;
        files that git ignores go only when `ignored` says so. A branch goes only when `base` has all of it."""
        ...
