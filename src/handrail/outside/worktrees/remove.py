"""Removes a worktree if nothing is lost by it.

First everything is decided; if the folder has to stay, nothing is changed. Then what is not committed becomes a commit
on the branch. The folder is renamed, so that nobody writes into it any more, checked once more, and only then deleted;
then git's record of it; then the branch, if its base contains all of it. If the process dies on the way, the same call
continues from the state it left.

Commits that only a worktree's own reflog of HEAD still knows: made while HEAD was detached, then left.

They would be lost with the worktree. Commits that were on a branch and replaced there, for instance by an amendment,
are not among them: that branch's reflog has them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from handrail.domain.workspaces.worktrees import Removal
from handrail.kernel.errors import WorktreeRefused
from handrail.outside.atomic_files import write_whole
from handrail.outside.tracking.discovery import GitRepository, discover
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.worktrees.create import finish, leaving, put_back, unlocked
from handrail.outside.worktrees.git import Git
from handrail.outside.worktrees.inspect import Measured, measure, status_of, worktree_at
from handrail.outside.worktrees.merge import can_merge, merge_trees
from handrail.outside.worktrees.place import WorktreeFolder, clear_away, is_below, real_path
from handrail.outside.worktrees.uncommitted import (
    Uncommitted,
    has_staged,
    holds_work,
    keep,
    keep_staged,
    own_files,
    ref_of,
    uncommitted,
)
from handrail.outside.worktrees.worktree_list import (
    BEING_REMOVED,
    INITIALIZING,
    WorktreeRecord,
    entry_at,
    entry_on,
    registered,
)
from handrail.regular_files import open_regular

LOG_BYTES = 8 * 1024 * 1024


def stray_commits(git: Git, branch: str | None) -> list[str]:
    """The last commit of each line of such commits."""
    repository = git.repository
    seen = _commits_in_reflog(f"{repository.git_dir}/logs/HEAD")
    if branch is not None:
        seen -= _commits_in_reflog(f"{repository.common_dir}/logs/{ref_of(branch)}")
    there = git.run("cat-file", "--batch-check", given="".join(f"{oid}\n" for oid in sorted(seen)).encode())
    commits = [line.split()[0].decode() for line in there.splitlines() if line.split()[1:2] == [b"commit"]]
    if not commits:
        return []
    given = "".join(f"{commit}\n" for commit in commits).encode()
    held = ("--not", "--branches", "--tags", "--remotes", "--glob=refs/handrail/", "--not")
    listed = git.run("rev-list", "--parents", *held, "--stdin", given=given)
    lines = [line.split() for line in listed.decode().splitlines()]
    parents = {parent for _, *above in lines for parent in above}
    return [line[0] for line in lines if line[0] not in parents and line[0] in commits and not _is_head(git, line[0])]


def _is_head(git: Git, commit: str) -> bool:
    return git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}", allowed=(0, 1)) == commit


def _commits_in_reflog(file: str) -> set[str]:
    """Every commit that a reflog names."""
    try:
        with os.fdopen(open_regular(file), "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - LOG_BYTES))
            lines = log.read(LOG_BYTES).split(b"\n")
    except OSError:
        return set()
    found = {word.decode("ascii", "replace") for line in lines for word in line.split(b" ", 2)[:2] if len(word) >= 40}
    return {oid for oid in found if oid.strip("0")}


TRIES = 3
KEPT = "handrail/kept-"
MESSAGE = "Work that was not committed when its worktree was removed"


class RemovalPlan(NamedTuple):
    """What is to be done with a worktree."""

    found: Uncommitted
    branch: str | None
    """The branch its work is on, or will be: a new one if HEAD is detached."""
    kept_branch: str | None
    stray: list[str]
    """Other commits that no branch contains."""
    ignored: int
    measured: Measured
    because: str | None
    """Why the folder stays."""


class _WrittenToError(Exception):
    """Something was written to the folder while it was being removed."""


class Removing:
    """The removal of one worktree, or a trial of it that changes nothing."""

    def __init__(self, git: Git, place: WorktreeFolder, path: str, base: str | None, *, is_trial: bool) -> None:
        self._git = git
        self._place = place
        self._path = real_path(path)
        self._shown = path
        self._base = base
        self._is_trial = is_trial

    def remove(self, *, delete_branch: bool, ignored: bool) -> Removal:
        entries = registered(self._git)
        entry = entry_at(entries, self._path)
        self._check_allowed(entries, entry)
        with self._place.scratch() as scratch:
            if entry is None:
                return self._remove_unregistered(scratch, delete_branch=delete_branch)
            if entry.locked not in (None, INITIALIZING, BEING_REMOVED):
                because = f"it is locked: {entry.locked}".rstrip(": ")
                return Removal(path=self._shown, removed=False, kept_because=because)
            if not entry.exists:
                return self._remove_gone(entry, scratch, delete_branch=delete_branch, ignored=ignored)
            for number in range(TRIES):
                try:
                    return self._remove_present(
                        entry, scratch, str(number), delete_branch=delete_branch, ignored=ignored
                    )
                except _WrittenToError:
                    entry = entry_at(registered(self._git), self._path) or entry
        return Removal(path=self._shown, removed=False, kept_because="somebody is writing to it")

    def _check_allowed(self, entries: list[WorktreeRecord], entry: WorktreeRecord | None) -> None:
        if entry is not None and entry.is_main:
            raise WorktreeRefused(
                f"{self._shown} is the main working copy of the repository", hint="only linked worktrees are removed"
            )
        if is_below(self._place.project, self._path):
            raise WorktreeRefused(f"the project itself lies in {self._shown}", hint="remove it from elsewhere")
        inner = [other for other in entries if other.path != self._path and is_below(other.path, self._path)]
        if inner:
            raise WorktreeRefused(f"the working copy {inner[0].path} lies in {self._shown}", hint="remove that first")

    def _remove_present(
        self, entry: WorktreeRecord, scratch: str, key: str, *, delete_branch: bool, ignored: bool
    ) -> Removal:
        """Removes a worktree that has its folder."""
        if entry.locked == INITIALIZING and self._is_trial:
            removed = measure(entry.path, self._git.deadline).bytes_used
            deleted = delete_branch and self._delete_branch_if_merged(entry.branch, entry, scratch)
            return Removal(path=self._shown, removed=True, branch_deleted=deleted, bytes_freed=removed)
        if not self._is_trial:
            finish(self._git, entry)
            if entry.locked == BEING_REMOVED:
                put_back(self._git, entry, scratch)
        repository = worktree_at(self._git, entry)
        if repository is None:
            because = "its link to the repository is broken; `git worktree repair` fixes links"
            return Removal(path=self._shown, removed=False, kept_because=because)
        decided = self._decide(repository, entry, scratch, key, ignored=ignored)
        if decided.because is not None:
            return Removal(path=self._shown, removed=False, ignored_files=decided.ignored, kept_because=decided.because)
        commit = None
        if not self._is_trial:
            self._keep_strays(decided.stray, decided.kept_branch, decided.found.head)
            commit = self._commit_uncommitted(repository, decided)
            self._take_away(entry, repository, decided, scratch, f"{key}-again", ignored=ignored)
        return Removal(
            path=self._shown,
            removed=True,
            branch_deleted=delete_branch and self._delete_branch(decided, entry, scratch),
            kept_commit=commit,
            committed_files=len(decided.found.files),
            kept_branch=decided.kept_branch,
            ignored_files=decided.ignored,
            bytes_freed=decided.measured.bytes_used,
        )

    def _decide(
        self, repository: GitRepository, entry: WorktreeRecord, scratch: str, key: str, *, ignored: bool
    ) -> RemovalPlan:
        here = self._git.at(repository)
        if self._is_trial:
            here = here.beside(f"{scratch}/objects")
        found = uncommitted(here, scratch, key)
        measured = measure(entry.path, here.deadline)
        count = len(status_of(here).ignored) + own_files(entry.path)
        stray = stray_commits(here, found.branch)
        kept_branch = None
        head = found.head if found.branch is None else None
        if head is not None and (found.files or not self._is_held(here, head)):
            kept_branch = f"{KEPT}{head[:12]}"
        because = found.stuck
        if not measured.is_whole:
            because = because or "it is too large to be looked through in time"
        working = [folder for folder in measured.nested if holds_work(folder, here.deadline)]
        if working:
            inner = os.path.relpath(working[0], entry.path)
            because = because or f"{inner} is a repository of its own with work that is nowhere else"
        if count and not ignored:
            because = because or f"{count} files or folders in it are ignored by git and would go with it"
        return RemovalPlan(found, found.branch or kept_branch, kept_branch, stray, count, measured, because)

    def _keep_strays(self, stray: list[str], kept_branch: str | None, head: str | None) -> None:
        """Gives a branch to each commit that only this worktree's own reflog or HEAD knows."""
        for commit in stray:
            self._hold(f"{KEPT}{commit[:12]}", commit)
        if kept_branch is not None and head is not None:
            self._hold(kept_branch, head)

    def _hold(self, branch: str, commit: str) -> None:
        tip = self._git.branch_tip(branch)
        if tip is None:
            self._git.move_ref(ref_of(branch), commit, None, "handrail: kept")
        elif not self._git.contains(tip, commit):
            raise WorktreeRefused(f"there is another branch {branch}", hint="rename it, then try again")

    def _commit_uncommitted(self, repository: GitRepository, decided: RemovalPlan) -> str | None:
        found = decided.found
        if not found.files:
            return None
        here = self._git.at(repository)
        branch = decided.branch
        assert branch is not None, "a detached HEAD gets a branch"
        if found.branch is None:  # a kept branch may already have grown in an interrupted attempt
            tip = here.branch_tip(branch)
            if tip is not None and tip != found.head and here.tree_of(tip) == found.tree:
                return tip
            found = found._replace(head=tip)
        try:
            return keep(here, found, ref_of(branch), MESSAGE)
        except GitTimedOut:
            raise
        except GitFailed:
            if here.branch_tip(branch) != found.head:  # somebody has just committed there
                raise _WrittenToError from None
            raise

    def _take_away(
        self,
        entry: WorktreeRecord,
        repository: GitRepository,
        decided: RemovalPlan,
        scratch: str,
        key: str,
        *,
        ignored: bool,
    ) -> None:
        """Renames the folder, checks it, and deletes it; then git's record of it."""
        away = leaving(entry.path)
        if os.path.lexists(away):
            raise WorktreeRefused(f"{away} is in the way", hint="let a person look at it")
        if entry.git_dir is not None:  # like `git worktree lock`, but with the reason from the first moment
            write_whole(Path(entry.git_dir, "locked"), BEING_REMOVED.encode())
        os.rename(entry.path, away)  # noqa: PTH104
        moved = self._git.at(repository._replace(top=away))
        again = uncommitted(moved, scratch, key)
        if again.tree != decided.found.tree or (not ignored and (status_of(moved).ignored or own_files(away))):
            os.rename(away, entry.path)  # noqa: PTH104
            self._git.run("worktree", "unlock", entry.path, allowed=(0, 128))
            raise _WrittenToError
        self._delete(entry, away)

    def _delete(self, entry: WorktreeRecord, away: str) -> None:
        for name in os.listdir(away):  # noqa: PTH208 - names need not be UTF-8
            if name != ".git":  # this link identifies the rest, should we die on the way
                clear_away(f"{away}/{name}")
        clear_away(away)
        if os.path.lexists(away):
            raise WorktreeRefused(f"{away} could not be deleted to the end", hint="see who holds it, then try again")
        if os.path.lexists(entry.path):
            raise WorktreeRefused(
                f"something new was put at {entry.path} while the worktree was removed",
                hint="it was left alone; move it elsewhere, then try again",
            )
        self._git.run("worktree", "remove", "--force", "--force", entry.path)

    def _remove_gone(self, entry: WorktreeRecord, scratch: str, *, delete_branch: bool, ignored: bool) -> Removal:
        """Removes a worktree whose folder is gone: deleted by hand, or by an interrupted removal."""
        away = leaving(entry.path)
        repository = discover(away, self._git.deadline) if os.path.isdir(away) else None  # noqa: PTH112
        if repository is not None and repository.git_dir != entry.git_dir:
            repository = None
        if repository is None and os.path.isdir(away) and os.listdir(away):  # noqa: PTH112, PTH208
            because = f"what is left of it at {away} cannot be recognised"
            return Removal(path=self._shown, removed=False, kept_because=because)
        if repository is not None:
            again = self._written_since(repository, scratch)
            if again or (not ignored and status_of(self._git.at(repository)).ignored):
                if not self._is_trial:
                    os.rename(away, entry.path)  # noqa: PTH104
                    put_back(self._git, entry, scratch)
                because = f"something was written to it: {again[0]}" if again else "files in it are ignored by git"
                return Removal(path=self._shown, removed=False, kept_because=because)
        measured = measure(away, self._git.deadline)
        kept_branch, commit = None, None
        if entry.git_dir is not None:
            here = self._git.at(self._git.repository._replace(top=entry.path, git_dir=entry.git_dir))
            stray = stray_commits(here, entry.branch)
            if entry.branch is None and entry.head is not None:
                is_alone = not self._is_held(here, entry.head)
                kept_branch = f"{KEPT}{entry.head[:12]}" if is_alone or has_staged(here, entry.head, scratch) else None
            if not self._is_trial:
                self._keep_strays(stray, kept_branch, entry.head)
                branch = entry.branch or kept_branch
                commit = keep_staged(here, entry.head, ref_of(branch), scratch) if branch is not None else None
        if not self._is_trial:
            unlocked(self._git, entry)
            if os.path.lexists(away):
                self._delete(entry, away)
            else:
                self._git.run("worktree", "remove", "--force", "--force", entry.path)
        return Removal(
            path=self._shown,
            removed=True,
            branch_deleted=delete_branch and self._delete_branch_if_merged(entry.branch, entry, scratch),
            kept_commit=commit,
            kept_branch=kept_branch,
            bytes_freed=measured.bytes_used,
        )

    @staticmethod
    def _is_held(git: Git, commit: str) -> bool:
        """Whether any branch contains a commit."""
        return bool(git.run("for-each-ref", "--count=1", "--contains", commit, "refs/heads/"))

    def _written_since(self, repository: GitRepository, scratch: str) -> list[str]:
        """Files in a half-deleted folder that differ from HEAD; the missing ones were deleted by us."""
        here = self._git.at(repository)
        if self._is_trial:
            here = here.beside(f"{scratch}/objects")
        found = uncommitted(here, scratch, "half")
        if found.head is None:
            return found.files
        there = here.run(
            "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=d", found.head, found.tree
        )
        return [os.fsdecode(path) for path in there.split(b"\0") if path]

    def _remove_unregistered(self, scratch: str, *, delete_branch: bool) -> Removal:
        """For a path where git has no worktree on record."""
        if os.path.lexists(self._path):
            because = "it is no worktree of this repository, or its link is broken; `git worktree repair` fixes links"
            return Removal(path=self._shown, removed=False, kept_because=because)
        if os.path.lexists(leaving(self._path)):
            because = f"git has no record of it; what is left of it is at {leaving(self._path)}"
            return Removal(path=self._shown, removed=False, kept_because=because)
        origin = self._place.origin_at(self._path)
        deleted = origin is not None and delete_branch and self._delete_branch_if_merged(origin.branch, None, scratch)
        return Removal(path=self._shown, removed=True, branch_deleted=deleted)

    def _delete_branch(self, decided: RemovalPlan, entry: WorktreeRecord, scratch: str) -> bool:
        if decided.found.branch is None:
            return False
        if self._is_trial and decided.found.files:
            beside = self._git.beside(f"{scratch}/objects")
            tip = beside.commit(decided.found.tree, [decided.found.head] if decided.found.head else [], MESSAGE)
            return self._delete_branch_if_merged(decided.found.branch, entry, scratch, tip=tip)
        return self._delete_branch_if_merged(decided.found.branch, entry, scratch)

    def _delete_branch_if_merged(
        self, branch: str | None, entry: WorktreeRecord | None, scratch: str, *, tip: str | None = None
    ) -> bool:
        """Deletes a branch if its base contains all of it and nobody else uses it; a trial only tells whether it
        would."""
        base = self._git.branch_tip(self._base) if self._base is not None else None
        if branch is None or base is None or branch == self._base:
            return False
        tip = tip or self._git.branch_tip(branch)
        if tip is None:
            return False
        others = [other for other in registered(self._git) if entry is None or other.path != entry.path]
        if entry_on(others, branch) is not None:
            return False
        beside = self._git.beside(f"{scratch}/objects")
        is_merged = beside.contains(base, tip)
        if not is_merged and not self._is_squashed(beside, base, tip):
            return False
        if not self._is_trial:
            if not is_merged:  # the content is in the base, but the commits are not: keep them, out of sight
                kept = f"refs/handrail/kept/{branch}-{tip[:12]}"
                if not self._git.tells("show-ref", "--verify", "--quiet", kept):
                    self._git.move_ref(kept, tip, None, "handrail: kept")
            self._git.delete_ref(ref_of(branch), tip)
            self._place.forget(branch)
        return True

    @staticmethod
    def _is_squashed(git: Git, base: str, tip: str) -> bool:
        """True if merging would change nothing: the base has the branch's content through other commits."""
        if not can_merge():
            return False
        try:
            merged = next(merge_trees(git, [(base, tip)]))
        except GitTimedOut:
            raise
        except GitFailed:
            return False
        return merged.conflicts is None and merged.tree == git.tree_of(base)
