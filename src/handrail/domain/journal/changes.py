"""What changed in a working copy between two snapshots: the task's own part and, separately, everything else.

Plain records. How they are obtained is behind the port in `tracking.py`. Paths are relative to the root of the working
copy, with `/`, in the text form of `paths.py`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Change = Literal["added", "modified", "deleted"]
Origin = Literal["committed", "staged", "working_tree", "untracked"]
Cause = Literal["merge", "pull", "switch", "reset", "rebase", "other_task", "ignore_rules", "unknown"]


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file that the task changed, and where the change is now.

    `added` and `modified` are relative to what the task found, or to what a merge, pull or switch brought meanwhile.
    Line counts are None for binary files and for files too large to keep.
    """

    path: str
    change: Change
    origin: Origin
    lines_added: int | None = None
    lines_removed: int | None = None
    binary: bool = False
    was_dirty: bool = False
    """It already differed from the last commit when the task began."""


class Rename(msgspec.Struct, frozen=True, kw_only=True, rename={"from_path": "from", "to_path": "to"}):
    """A file that moved: its old path is also listed as deleted, its new one as added."""

    from_path: str
    to_path: str
    similarity: int = 100


class ExternalChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file that changed during the task, but not by it.

    `ignore_rules`: the file was there all along, and ignore rules began or ceased to hide it. `unknown`: history
    moved, and nothing says how.
    """

    path: str
    change: Change
    cause: Cause


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """A path that changed while other tasks were open in the same tree: it counts for all of them."""

    path: str
    tasks: list[str]


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What this task did to the working copy. Every list is sorted by path."""

    own: list[FileChange]
    renamed: list[Rename] = []
    dirty_before: list[str] = []
    """What differed from the last commit when the task began, whether the task then touched it or not."""
    external: list[ExternalChange] = []
    overlaps: list[Overlap] = []
    commits: list[str] = []
    """Commits made in this working copy during the task and still part of its history, oldest first."""
    warnings: list[str] = []
    partial: bool = False
    """Something could not be examined; `warnings` says what."""
