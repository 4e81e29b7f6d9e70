"""Which column each vertex goes in: to the right of all that lead to it, with short lines, and no column crowded
needlessly.

Everything starts as far left as possible, so that what comes early is on the left. Then groups of vertices move: a
vertex together with all that would be in its way. A group moves if that makes more lines shorter than longer or, if it
makes no difference, to leave a crowded column.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from handrail.domain.layout.edges import Edge, in_order

_ROUNDS = 6
"""Rounds of moves in each direction. Most graphs settle after three."""
_WORK = 400_000
"""How many vertices may be examined for moves. After that everything stays where it is, which is correct but less
neat."""
_ROOM = 12
"""How many boxes a column may always hold."""
_CROWDED = 1.3
"""A column is crowded if it has this many times the mean number of boxes."""


def earliest(count: int, edges: Sequence[Edge]) -> list[int]:
    """The length of the longest path to each vertex. The edges must have no cycle."""
    leads_to: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        leads_to[source].append(target)
    ranks = [0] * count
    for vertex in in_order(count, edges):
        for target in leads_to[vertex]:
            ranks[target] = max(ranks[target], ranks[vertex] + 1)
    return ranks


def balanced(count: int, edges: Sequence[Edge]) -> list[int]:
    """The column of each vertex, from 0. The edges must have no cycle."""
    ranking = _Ranking(count, edges)
    order = in_order(count, edges)
    for _ in range(_ROUNDS):
        moved = [ranking.shorten(vertex, rightwards=True) for vertex in reversed(order)]
        moved += [ranking.shorten(vertex, rightwards=False) for vertex in order]
        if not any(moved):
            break
    for _ in range(_ROUNDS):
        moved = [ranking.relieve(vertex) for vertex in reversed(order)]
        if not any(moved):
            break
    first = min(ranking.ranks, default=0)
    return [rank - first for rank in ranking.ranks]


class _Ranking:
    """The columns, and the groups that can move between them."""

    def __init__(self, count: int, edges: Sequence[Edge]) -> None:
        self.ranks = earliest(count, edges)
        self._before: list[list[int]] = [[] for _ in range(count)]
        self._after: list[list[int]] = [[] for _ in range(count)]
        for source, target in edges:
            self._after[source].append(target)
            self._before[target].append(source)
        columns = max(self.ranks, default=0) + 1
        self._last = columns - 1
        self._held = [0] * columns
        for rank in self.ranks:
            self._held[rank] += 1
        self._room = max(_ROOM, math.ceil(_CROWDED * count / columns))
        self._work = _WORK

    def shorten(self, vertex: int, *, rightwards: bool) -> bool:
        """Moves a vertex with its group as far as possible, if that makes lines shorter overall."""
        group, pull = self._group(vertex, rightwards=rightwards)
        if pull <= 0:
            return False
        self._move(group, self._free_columns(group, rightwards=rightwards) * (1 if rightwards else -1))
        return True

    def relieve(self, vertex: int) -> bool:
        """Moves a vertex with its group right, out of a crowded column, if that does not lengthen lines overall."""
        if self._held[self.ranks[vertex]] <= self._room:
            return False
        group, pull = self._group(vertex, rightwards=True)
        if pull < 0:
            return False
        best, least = 0, 0
        for step in range(1, self._free_columns(group, rightwards=True) + 1):
            crowd = self._more_crowded(group, step)
            if crowd < least:
                best, least = step, crowd
        self._move(group, best)
        return best > 0

    def _group(self, vertex: int, *, rightwards: bool) -> tuple[list[int], int]:
        """What has to move along, by one column, and how many more of its lines get shorter than longer."""
        if self._work <= 0:
            return [], -1
        onward, back = (self._after, self._before) if rightwards else (self._before, self._after)
        step = 1 if rightwards else -1
        ranks = self.ranks
        group, seen, pull = [vertex], {vertex}, 0
        for member in group:
            pull += len(onward[member]) - len(back[member])
            beside = ranks[member] + step
            for other in onward[member]:
                if ranks[other] == beside and other not in seen:
                    seen.add(other)
                    group.append(other)
        self._work -= len(group)
        return group, pull

    def _free_columns(self, group: Sequence[int], *, rightwards: bool) -> int:
        """How far a group can move before it meets another vertex or the edge."""
        inside = set(group)
        ranks = self.ranks
        onward = self._after if rightwards else self._before
        free = min(self._last - ranks[member] if rightwards else ranks[member] for member in group)
        for member in group:
            for other in onward[member]:
                if other not in inside:
                    free = min(free, abs(ranks[other] - ranks[member]) - 1)
        return free

    def _move(self, group: Sequence[int], step: int) -> None:
        for member in group:
            self._held[self.ranks[member]] -= 1
            self.ranks[member] += step
            self._held[self.ranks[member]] += 1

    def _more_crowded(self, group: Sequence[int], step: int) -> int:
        """How much a move adds to crowding: each column counts with the square of its boxes beyond its room."""
        change: dict[int, int] = {}
        for member in group:
            rank = self.ranks[member]
            change[rank] = change.get(rank, 0) - 1
            change[rank + step] = change.get(rank + step, 0) + 1
        worse = 0
        for rank, more in change.items():
            worse += max(0, self._held[rank] + more - self._room) ** 2 - max(0, self._held[rank] - self._room) ** 2
        return worse
