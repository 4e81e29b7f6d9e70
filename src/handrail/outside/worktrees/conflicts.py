"""Which worktrees would conflict with each other or with their base as they are now, including uncommitted work.

Every worktree becomes a commit in a store that is deleted afterwards; the user's repository is only read. Merge drivers
of the repository are not run: where one would decide, a conflict is forecast.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from handrail.domain.workspaces.worktrees import Clash, ForeseenConflicts
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.worktrees.git import MERGE_TREE, Git
from handrail.outside.worktrees.inspect import worktree_at
from handrail.outside.worktrees.merge_pairs import pairs_to_merge
from handrail.outside.worktrees.merge_tree import can_merge, merge_trees
from handrail.outside.worktrees.names import real_path
from handrail.outside.worktrees.uncommitted import working
from handrail.outside.worktrees.worktree_list import WorktreeRecord, entry_at, registered

BASE = ""
AT_ONCE = 4
"""How many worktrees are read side by side."""


def foresee(git: Git, scratch: str, merges: str, worktrees: Mapping[str, str], base: str) -> ForeseenConflicts:
    """The forecast; what it could not examine, or not completely, is among its problems. `scratch` is for the
    worktrees' content, `merges` for the results of merging them."""
    if not can_merge():
        needed = ".".join(map(str, MERGE_TREE))
        return ForeseenConflicts(
            problems={BASE: f"conflicts are foreseen with git {needed} or newer; this one is older"}
        )
    against = git.resolved(base)
    if against is None:
        return ForeseenConflicts(problems={BASE: f"there is no {base} to merge with"})
    beside = git.beside(f"{scratch}/objects")
    entries = registered(git)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="handrail-foresee") as pool:
        started = {
            name: pool.submit(_tip, beside, entry_at(entries, real_path(path)), scratch, str(number))
            for number, (name, path) in enumerate(worktrees.items())
        }
    read = {name: future.result() for name, future in started.items()}
    tips = {BASE: against, **{name: tip.commit for name, tip in read.items() if tip.commit is not None}}
    problems = {name: tip.problem for name, tip in read.items() if tip.problem is not None}
    merging = git.beside(merges, f"{scratch}/objects")
    return ForeseenConflicts(clashes=tuple(_clashes(merging, tips, problems)), problems=problems)


class Tip(NamedTuple):
    """A commit of a worktree's current state, if there can be one, and what is wrong with it."""

    commit: str | None
    problem: str | None = None


def _tip(git: Git, entry: WorktreeRecord | None, scratch: str, key: str) -> Tip:
    try:
        repository = worktree_at(git, entry) if entry is not None else None
        if repository is None:
            return Tip(None, "there is no worktree of this repository at its path")
        here = git.at(repository)
        found = working(here, scratch, key)
        if found.head is None:
            return Tip(None, "it has no commit yet")
        if found.tree is None:
            return Tip(found.head, found.stuck)
        return Tip(here.commit(found.tree, [found.head], "as it is\n"), found.stuck)
    except (GitFailed, OSError) as problem:
        return Tip(None, f"it could not be read: {problem}")


def _clashes(git: Git, tips: dict[str, str], problems: dict[str, str]) -> list[Clash]:
    names, commits = list(tips), list(tips.values())
    found = []
    try:
        pairs = [pair for pair in pairs_to_merge(git, commits) if commits[pair[0]] != commits[pair[1]]]
        merges = merge_trees(git, [(commits[one], commits[other]) for one, other in pairs], unrelated=True)
        for (one, other), merged in zip(pairs, merges, strict=True):
            if merged.conflicts is not None:
                found.append(Clash(names[one], names[other], merged.conflicts))
    except GitTimedOut:
        problems[BASE] = "it took too long; not every pair was tried"
    except (GitFailed, ValueError) as problem:
        problems[BASE] = f"not every pair could be tried: {problem}"
    return found
