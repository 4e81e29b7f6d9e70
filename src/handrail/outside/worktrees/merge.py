"""Merges a branch into its base: merges without a working tree, checks the result in a worktree of its own, and only
then moves the base.

The base moves only from where it was when the merge was made; if somebody else moved it, everything is done again.
Nothing is locked while the checks run. A conflicting merge leaves nothing behind, not even an object.

Merges commits without a working tree, many pairs in one process, and reads git's result for each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from handrail.domain.journal.paths import path_text
from handrail.domain.workspaces.worktrees import CheckRun, MergeDone
from handrail.kernel.errors import ChecksFailed, MergeConflict, WorktreeRefused, WouldLoseWork
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.worktrees.base_update import BaseMovedError, advance
from handrail.outside.worktrees.git import MERGE_TREE, Git, git_version
from handrail.outside.worktrees.inspect import status_of, worktree_at
from handrail.outside.worktrees.place import CHECKS, WorktreeFolder, clear_away
from handrail.outside.worktrees.uncommitted import under_way
from handrail.outside.worktrees.worktree_list import entry_on, registered

COMMAND = ("merge-tree", "--write-tree", "--stdin", "--name-only", "--no-messages", "-z")
_SIDE = re.compile(rb"~[0-9a-f]{40,64}(_[0-9]+)?$")
"""What git appends to the name of a file that is displaced by a folder of the same name: the side it comes from."""


class Merged(NamedTuple):
    """The merge of one pair."""

    tree: str
    conflicts: tuple[str, ...] | None
    """Paths that conflict; None if the merge is clean."""


def can_merge() -> bool:
    """Whether this machine's git is new enough."""
    return git_version() >= MERGE_TREE


def merge_trees(git: Git, pairs: Sequence[tuple[str, str]], *, unrelated: bool = False) -> Iterator[Merged]:
    """One merge for each pair of commits, in order, as they complete. Objects go where this git writes them."""
    if not pairs:
        return
    given = "".join(f"{one} {other}\n" for one, other in pairs).encode()
    call = git.start(*COMMAND, *(("--allow-unrelated-histories",) if unrelated else ()), given=given)
    pending = b""
    words: list[bytes] = []
    try:
        for chunk in call.chunks():
            *whole, pending = (pending + chunk).split(b"\0")
            for word in whole:
                if word or len(words) < 2:
                    words.append(word)
                else:
                    yield _merged(words)
                    words = []
    finally:
        call.stop()


def _merged(words: list[bytes]) -> Merged:
    paths = sorted({path_text(_SIDE.sub(b"", path)) for path in words[2:]})
    return Merged(os.fsdecode(words[1]), None if words[0] == b"1" else tuple(paths))


TRIES = 5
SHOWN = 10
LOOKED_BACK = 2000
"""How many merges of the base are searched for the one that brought the branch."""


class MergeCandidate(NamedTuple):
    """A merge commit that no ref points to yet."""

    base: str
    branch: str
    commit: str


class Merging:
    """One merge of a branch into its base."""

    def __init__(self, place: WorktreeFolder, branch: str, base: str, message: str, checks: CheckRun | None) -> None:
        self._place = place
        self._branch = branch
        self._base = base
        self._message = message.strip() or f"Merge branch '{branch}' into {base}"
        self._checks = checks

    def merge(self, writing: Callable[[], AbstractContextManager[Git]]) -> MergeDone:
        """Merges the branch. `writing` provides git under the place's lock."""
        for _ in range(TRIES):
            with writing() as git:
                made = self._prepare_merge(git)
                if isinstance(made, MergeDone):
                    return made
                if self._checks is None and self._move_base(git, made):
                    return MergeDone(commit=made.commit)
            if self._checks is None:
                continue
            results = self._run_checks(writing, made)
            with writing() as git:
                if self._move_base(git, made):
                    return MergeDone(commit=made.commit, checks=tuple(results))
        raise WorktreeRefused(
            f"{self._base} or {self._branch} was moved by others each time it was merged",
            hint="try again when less is going on",
        )

    def _prepare_merge(self, git: Git) -> MergeDone | MergeCandidate:
        base, branch = self._tips(git)
        self._check_nothing_uncommitted(git)
        if git.contains(base, branch):
            return MergeDone(commit=self._merge_commit_of(git, base, branch) or base, already=True)
        if not git.line("merge-base", base, branch, allowed=(0, 1)):
            raise WorktreeRefused(
                f"{self._branch} and {self._base} have no commit in common", hint="they are different histories"
            )
        with self._place.scratch() as scratch:
            trial = next(merge_trees(git.beside(f"{scratch}/objects"), [(base, branch)]))
        if trial.conflicts is not None:
            drivers = [key for key in git.repository.silenced if key.startswith("merge.")]
            note = f"; the repository's {drivers[0]} is not run" if drivers else ""
            raise MergeConflict(
                f"{self._branch} and {self._base} conflict in {_first_of(trial.conflicts)}{note}",
                hint=f"merge {self._base} into {self._branch} in its worktree, resolve, commit, and try again",
                paths=list(trial.conflicts),
            )
        merged = next(merge_trees(git, [(base, branch)]))
        return MergeCandidate(base, branch, git.commit(merged.tree, [base, branch], self._message + "\n"))

    def _tips(self, git: Git) -> tuple[str, str]:
        if not can_merge():
            needed = ".".join(map(str, MERGE_TREE))
            raise WorktreeRefused(f"merging needs git {needed} or newer", hint="merge by hand, and record it")
        tips = []
        for name in (self._base, self._branch):
            tip = git.branch_tip(name)
            if tip is None:
                raise WorktreeRefused(f"there is no branch {name[:80]!r}", hint="name a branch that exists")
            if git.line("symbolic-ref", "--quiet", f"refs/heads/{name}", allowed=(0, 1)):
                raise WorktreeRefused(f"the branch {name} stands for another one", hint="name that one")
            tips.append(tip)
        return tips[0], tips[1]

    def _check_nothing_uncommitted(self, git: Git) -> None:
        entry = entry_on(registered(git), self._branch)
        if entry is None or not entry.exists:
            return
        repository = worktree_at(git, entry)
        if repository is None:
            raise WorktreeRefused(
                f"the worktree of {self._branch} at {entry.path} cannot be read",
                hint="`git worktree repair` fixes the link when one of the two was moved",
            )
        busy = under_way(repository)
        if busy is not None:
            raise WouldLoseWork(f"{busy}: {entry.path}", hint="wait until the work there is finished")
        dirty = status_of(git.at(repository)).dirty
        if dirty:
            raise WouldLoseWork(
                f"{len(dirty)} files of {self._branch} are not committed: {_first_of(dirty)}",
                hint=f"commit them in {entry.path}, then merge",
                paths=dirty[:SHOWN],
            )

    def _merge_commit_of(self, git: Git, base: str, branch: str) -> str | None:
        """The merge commit of the base that has the branch as a later parent."""
        listed = git.run(
            "rev-list", "--first-parent", "--merges", "--parents", f"--max-count={LOOKED_BACK}", base, f"^{branch}"
        )
        for line in listed.decode().splitlines():
            commit, _, *others = line.split()
            if branch in others:
                return commit
        return None

    def _run_checks(
        self, writing: Callable[[], AbstractContextManager[Git]], made: MergeCandidate
    ) -> list[dict[str, object]]:
        assert self._checks is not None
        with self._place.checks() as above:
            folder = f"{above}/merged"
            with writing() as git:
                git.run("worktree", "add", "--quiet", "--detach", folder, made.commit)
            try:
                results = self._checks(folder)
            finally:
                with writing() as git:
                    _drop_checks(git, above)
        failed = [str(result.get("name", "a check")) for result in results if not result.get("passed")]
        if failed:
            raise ChecksFailed(
                f"on the merged result of {self._branch} these checks fail: {', '.join(failed)}",
                hint=f"merge {self._base} into {self._branch} in its worktree, fix it there, and try again",
                checks=results,
            )
        return results

    def _move_base(self, git: Git, made: MergeCandidate) -> bool:
        """Moves the base to the merge; False if the base or the branch is not where it was."""
        if self._tips(git) != (made.base, made.branch):
            return False
        try:
            advance(git, self._base, made.base, made.commit, f"handrail: merge {self._branch}")
        except BaseMovedError:
            return False
        return True


def clear_checks(git: Git, place: WorktreeFolder) -> None:
    """Removes what processes left that died during a query or while their checks ran."""
    for folder in place.abandoned():
        if os.path.basename(folder).startswith(CHECKS):  # noqa: PTH119
            _drop_checks(git, folder)
        clear_away(folder)


def _drop_checks(git: Git, above: str) -> None:
    """Removes the worktree of a merged commit: nobody works there, and nobody needs what the checks wrote."""
    folder = f"{above}/merged"
    clear_away(folder)
    try:
        git.run("worktree", "remove", "--force", "--force", folder, allowed=(0, 128))
    except GitTimedOut:
        raise
    except GitFailed:
        return


def _first_of(paths: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return ", ".join(paths[:SHOWN]) + more
