"""Which worktrees would conflict with each other or with their base as they are now, including uncommitted work.

Every worktree becomes a commit in a store that is deleted afterwards; the user's repository is only read. Merge drivers
of the repository are not run: where one would decide, a conflict is forecast.

Which pairs of commits have to be merged to know whether they conflict. The others cannot conflict, because they touch
nothing of each other's. This only skips pairs, and never changes the answer.

Two sides conflict only if both changed something since they diverged: the same path, a file where the other has a
folder, or files put into a folder that the other side moved away. What a side changed is read from the commits that the
other does not have. Sides that diverged at more than one commit are always merged.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from handrail.domain.workspaces.worktrees import Clash, ForeseenConflicts
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.worktrees.git import MERGE_TREE, Git
from handrail.outside.worktrees.inspect import worktree_at
from handrail.outside.worktrees.merge import can_merge, merge_trees
from handrail.outside.worktrees.place import real_path
from handrail.outside.worktrees.uncommitted import working
from handrail.outside.worktrees.worktree_list import WorktreeRecord, entry_at, registered

COMMITS = 1000
"""If there are more commits between the tips, reading them costs more than merging."""


class Touched(NamedTuple):
    """Paths that some commits change."""

    paths: frozenset[bytes]
    added: frozenset[bytes]
    removed: frozenset[bytes]


def pairs_to_merge(git: Git, tips: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs, as positions in `tips`."""
    every = list(itertools.combinations(range(len(tips)), 2))
    if len(every) < 3:
        return every
    root = git.line("merge-base", "--octopus", *tips, allowed=(0, 1, 128))
    if not root:
        return every
    listed = git.run(
        "rev-list", "--topo-order", "--reverse", "--parents", f"--max-count={COMMITS + 1}", *tips, f"^{root}"
    )
    lines = [line.split() for line in listed.decode().splitlines()]
    if len(lines) > COMMITS:
        return every
    history = _History(root, lines)
    changes = _changes(git, [line[0] for line in lines])
    return [pair for pair in every if _may_conflict(history, changes, tips[pair[0]], tips[pair[1]])]


class _History:
    """The commits since the tips' common ancestor. A set of commits is an integer used as a bit set."""

    def __init__(self, root: str, lines: Iterable[list[str]]) -> None:
        self.names = [root]
        self._reach = {root: 1}
        self._below = [0]
        for commit, *parents in lines:
            below = 0
            for parent in parents:
                below |= self._reach.get(parent, 0)
            self._reach[commit] = below | 1 << len(self.names)
            self._below.append(below)
            self.names.append(commit)

    def only(self, one: str, other: str) -> list[str]:
        """Commits that one has and the other does not."""
        return [self.names[bit] for bit in _bits(self._reach[one] & ~self._reach[other])]

    def parted_once(self, one: str, other: str) -> bool:
        common = self._reach[one] & self._reach[other]
        below = 0
        for bit in _bits(common):
            below |= self._below[bit]
        return (common & ~below).bit_count() == 1


def _bits(number: int) -> Iterable[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _changes(git: Git, commits: list[str]) -> dict[str, dict[bytes, set[bytes]]]:
    """For every commit, its paths by what happened to them, relative to each of its parents."""
    found: dict[str, dict[bytes, set[bytes]]] = {commit: {} for commit in commits}
    if not commits:
        return found
    given = "".join(f"{commit}\n" for commit in commits).encode()
    words = git.run("diff-tree", "--stdin", "-m", "-r", "--root", "--no-renames", "--name-status", "-z", given=given)
    current: dict[bytes, set[bytes]] = {}
    parts = iter(words.split(b"\0"))
    for word in parts:
        if len(word) >= 40:
            current = found[word.decode()]
        elif word:
            current.setdefault(word[:1], set()).add(next(parts))
    return found


def _touched(changes: dict[str, dict[bytes, set[bytes]]], commits: Iterable[str]) -> Touched:
    kinds: dict[bytes, set[bytes]] = {}
    for commit in commits:
        for kind, paths in changes.get(commit, {}).items():
            kinds.setdefault(kind, set()).update(paths)
    every = frozenset(itertools.chain.from_iterable(kinds.values()))
    return Touched(every, frozenset(kinds.get(b"A", ())), frozenset(kinds.get(b"D", ())))


def _may_conflict(history: _History, changes: dict[str, dict[bytes, set[bytes]]], one: str, other: str) -> bool:
    if one == other:
        return False
    if not history.parted_once(one, other):
        return True
    mine = _touched(changes, history.only(one, other))
    theirs = _touched(changes, history.only(other, one))
    return bool(mine.paths & theirs.paths) or any(
        _folders(left.paths) & right.paths or _moved_under(left, right)
        for left, right in ((mine, theirs), (theirs, mine))
    )


def _moved_under(left: Touched, right: Touched) -> bool:
    """Whether one side may have moved away a folder that the other puts something into."""
    if not (left.removed and left.added and right.added):
        return False
    if any(b"/" not in path for path in left.removed):  # the root's files may have moved into a folder
        return True
    return bool(_folders(left.removed) & _folders(right.added))


def _folders(paths: Iterable[bytes]) -> set[bytes]:
    found = set()
    for path in paths:
        end = path.rfind(b"/")
        while end > 0 and path[:end] not in found:
            found.add(path[:end])
            end = path.rfind(b"/", 0, end)
    return found


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
