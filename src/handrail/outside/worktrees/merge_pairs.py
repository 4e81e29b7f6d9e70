"""Which pairs of commits have to be merged to know whether they conflict. The others cannot conflict, because they
touch nothing of each other's. This only skips pairs, and never changes the answer.

Two sides conflict only if both changed something since they diverged: the same path, a file where the other has a
folder, or files put into a folder that the other side moved away. What a side changed is read from the commits that the
other does not have. Sides that diverged at more than one commit are always merged.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from handrail.outside.worktrees.git import Git

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
