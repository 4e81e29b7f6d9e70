"""What git says about a worktree now: branch, uncommitted files, distance to its base, disk space. Only reads; one
broken worktree never hides the others.

Walks through a worktree's folder: how much disk space it takes, and which repositories are inside it. Bounded: an
unfinished walk says so.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.journal.paths import path_text
from handrail.domain.workspaces.worktrees import WorktreeState
from handrail.outside.tracking.discovery import GitRepository, discover
from handrail.outside.tracking.git_process import Deadline, GitFailed
from handrail.outside.worktrees.git import Git
from handrail.outside.worktrees.place import real_path
from handrail.outside.worktrees.worktree_list import INITIALIZING, WorktreeRecord, entry_at

ENTRIES = 2_000_000


class Measured(NamedTuple):
    """What a walk found."""

    bytes_used: int
    nested: list[str]
    """Folders with a `.git` of their own."""
    is_whole: bool


def measure(folder: str, deadline: Deadline, *, entries: int = ENTRIES) -> Measured:
    """Measures a folder. Links are not followed; a file with two names counts once."""
    total, left = 0, entries
    nested: list[str] = []
    seen: set[tuple[int, int]] = set()
    pending = [folder]
    while pending:
        if left < 0 or deadline.left() <= 0:
            return Measured(total, nested, is_whole=False)
        current = pending.pop()
        with contextlib.suppress(OSError), os.scandir(current) as found:
            for entry in found:
                left -= 1
                if entry.name == ".git" and current != folder:
                    nested.append(current)
                with contextlib.suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if facts.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                        if (facts.st_dev, facts.st_ino) in seen:
                            continue
                        seen.add((facts.st_dev, facts.st_ino))
                    total += facts.st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return Measured(total, nested, is_whole=True)


SHOWN = 10
DISK_ENTRIES = 300_000
STATUS = ("status", "--porcelain=v2", "-z", "-uall", "--ignored=matching", "--no-renames", "--ignore-submodules=dirty")


class WorkingCopyStatus(NamedTuple):
    """`git status` of one working copy."""

    dirty: list[str]
    ignored: list[str]
    """A folder that is ignored as a whole appears once, with a slash."""


def status_of(git: Git) -> WorkingCopyStatus:
    """The status of a working copy. Submodules count by their commit: one that is not checked out is not dirty."""
    dirty, ignored = [], []
    for record in git.run(*STATUS).split(b"\0"):
        kind = record[:1]
        if kind == b"?":
            dirty.append(path_text(record[2:]))
        elif kind == b"!":
            ignored.append(path_text(record[2:]))
        elif kind in (b"1", b"u"):
            dirty.append(path_text(record.split(b" ", 8 if kind == b"1" else 10)[-1]))
    return WorkingCopyStatus(sorted(dirty), ignored)


def worktree_at(git: Git, entry: WorktreeRecord) -> GitRepository | None:
    """The working copy of an entry, its configuration disarmed, if it exists and is linked to this repository."""
    found = discover(entry.path, git.deadline) if entry.exists else None
    if found is None or found.top != entry.path or found.common_dir != git.repository.common_dir:
        return None
    return found


def read_worktrees(git: Git, path: str, base: str | None, entries: Sequence[WorktreeRecord]) -> WorktreeState:
    """The state of one worktree; whatever could not be determined is described in `problem`."""
    entry = entry_at(entries, real_path(path))
    if entry is None:
        if not os.path.isdir(path):  # noqa: PTH112
            return WorktreeState(path=path, exists=False)
        return WorktreeState(path=path, exists=True, problem=_why_not_linked(path))
    looked = WorktreeState(path=path, exists=entry.exists, branch=entry.branch, head=entry.head, locked_by=entry.locked)
    if not entry.exists:
        return looked
    try:
        return _looked_into(git, entry, base, looked)
    except (GitFailed, OSError) as problem:
        return msgspec.structs.replace(looked, problem=str(problem))


def _looked_into(git: Git, entry: WorktreeRecord, base: str | None, looked: WorktreeState) -> WorktreeState:
    repository = worktree_at(git, entry)
    if repository is None:
        return msgspec.structs.replace(looked, problem=_why_not_linked(entry.path))
    if entry.locked == INITIALIZING:
        return msgspec.structs.replace(
            looked, problem="it was not made to the end; workspace_create with the same path and branch goes on"
        )
    here = git.at(repository)
    status = status_of(here)
    measured = measure(entry.path, Deadline(min(10.0, git.deadline.left())), entries=DISK_ENTRIES)
    ahead = behind = 0
    problem = None
    if base is not None and entry.head is not None:
        against = here.resolved(base)
        if against is None:
            problem = f"there is no {base} to compare it with"
        else:
            counted = here.line("rev-list", "--left-right", "--count", f"{against}...{entry.head}").split()
            behind, ahead = int(counted[0]), int(counted[1])
    return msgspec.structs.replace(
        looked,
        dirty=tuple(status.dirty[:SHOWN]),
        dirty_count=len(status.dirty),
        ignored_count=len(status.ignored),
        ahead=ahead,
        behind=behind,
        bytes_used=measured.bytes_used if measured.is_whole else None,
        problem=problem,
    )


def _why_not_linked(path: str) -> str:
    if os.path.isfile(f"{path}/.git"):  # noqa: PTH113
        return "its link to the repository is broken, or it belongs to another one; `git worktree repair` fixes links"
    return "it is no worktree of this repository"
