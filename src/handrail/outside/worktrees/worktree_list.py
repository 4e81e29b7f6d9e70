"""The worktrees that git has on record: `git worktree list`, read into entries, each with the folder git keeps for it.

It does not judge them: a folder may be gone, or its link broken.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from handrail.kernel.limits import GIT_FILE_BYTES
from handrail.outside.tracking.discovery import GitRepository
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.worktrees.git import Git
from handrail.regular_files import read_beginning

HEADS = "refs/heads/"
INITIALIZING = "initializing"
"""The reason with which git locks a worktree while making it."""
BEING_REMOVED = "handrail: being removed"


class WorktreeRecord(NamedTuple):
    """One worktree on record."""

    path: str
    head: str | None
    branch: str | None
    """Its short name; None for a detached HEAD."""
    is_main: bool
    locked: str | None
    git_dir: str | None
    """The folder git keeps for it; None if it could not be found."""

    @property
    def exists(self) -> bool:
        return os.path.isdir(self.path)  # noqa: PTH112


def registered(git: Git) -> list[WorktreeRecord]:
    """All of them, the main one first."""
    try:
        words = git.run("worktree", "list", "--porcelain", "-z").split(b"\0")
    except GitTimedOut:
        raise
    except GitFailed:  # before git 2.36, which cannot tell apart names with a newline
        words = git.run("worktree", "list", "--porcelain").split(b"\n")
    folders = _folders(git.repository)
    found: list[WorktreeRecord] = []
    facts: dict[str, str] = {}
    for word in words:
        if word:
            key, _, value = os.fsdecode(word).partition(" ")
            facts[key] = value
        elif facts:
            found.append(_entry(facts, folders, git.repository, is_main=not found))
            facts = {}
    return found


def _entry(
    facts: dict[str, str], folders: dict[str, str], repository: GitRepository, *, is_main: bool
) -> WorktreeRecord:
    path = os.path.realpath(facts["worktree"])
    head = facts.get("HEAD")
    branch = facts.get("branch")
    return WorktreeRecord(
        path=path,
        head=head if head and head.strip("0") else None,
        branch=branch.removeprefix(HEADS) if branch else None,
        is_main=is_main,
        locked=facts.get("locked"),
        git_dir=repository.common_dir if is_main else folders.get(path),
    )


def _folders(repository: GitRepository) -> dict[str, str]:
    """The folders of linked worktrees, by the worktree's path."""
    found = {}
    try:
        entries = [entry.path for entry in os.scandir(f"{repository.common_dir}/worktrees")]
    except OSError:
        return {}
    for folder in entries:
        path = linked_path(folder)
        if path is not None:
            found[path] = folder
    return found


def linked_path(folder: str) -> str | None:
    """The worktree that one of git's folders is for."""
    try:
        link = os.fsdecode(read_beginning(f"{folder}/gitdir", GIT_FILE_BYTES).rstrip(b"\n"))
    except OSError:
        return None
    return os.path.realpath(os.path.join(folder, os.path.dirname(link))) if link else None  # noqa: PTH118, PTH120


def entry_at(entries: Iterable[WorktreeRecord], path: str) -> WorktreeRecord | None:
    return next((entry for entry in entries if entry.path == path), None)


def entry_on(entries: Iterable[WorktreeRecord], branch: str) -> WorktreeRecord | None:
    """The worktree that has a branch checked out, or is in the middle of rebasing or bisecting it."""
    for entry in entries:
        if entry.branch == branch or (entry.git_dir is not None and branch in _being_moved(entry.git_dir)):
            return entry
    return None


def _being_moved(git_dir: str) -> set[str]:
    found = set()
    for name in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
        try:
            found.add(os.fsdecode(read_beginning(f"{git_dir}/{name}", 4096).strip()).removeprefix(HEADS))
        except OSError:
            continue
    return found
