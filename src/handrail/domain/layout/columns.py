"""A graph cut into columns: an edge across several columns has a bend in each one in between, like a thin box.

From here on every line joins neighbouring columns. Bends are ordered and placed just like boxes, so lines get space of
their own and never run through a box.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from handrail.domain.layout.edges import Edge

MOST_BENDS = 20_000
"""With more bends than this, long edges from (or to) the same vertex share theirs, and run as one line until they
part."""


class Layered:
    """Columns of vertices. Those from `boxes` on are bends."""

    def __init__(self, ranks: Sequence[int], edges: Sequence[Edge]) -> None:
        self.boxes = len(ranks)
        self.rank = list(ranks)
        self.before: list[list[int]] = [[] for _ in ranks]
        """Neighbours in the column to the left, for each vertex."""
        self.after: list[list[int]] = [[] for _ in ranks]
        """Neighbours in the column to the right."""
        self.ways: list[list[int]] = []
        """The vertices that each edge passes, including both ends."""
        name_bend = _bend_names(ranks, edges)
        named: dict[Edge, int] = {}
        joined: set[Edge] = set()
        for number, (source, target) in enumerate(edges):
            way = [source]
            for rank in range(ranks[source] + 1, ranks[target]):
                way.append(self._bend(named, (name_bend(number), rank)))
            way.append(target)
            self.ways.append(way)
            for left, right in pairwise(way):
                if (left, right) not in joined:
                    joined.add((left, right))
                    self.after[left].append(right)
                    self.before[right].append(left)

    def _bend(self, named: dict[Edge, int], name: Edge) -> int:
        if name not in named:
            named[name] = len(self.rank)
            self.rank.append(name[1])
            self.before.append([])
            self.after.append([])
        return named[name]

    @property
    def size(self) -> int:
        """How many vertices there are, including bends."""
        return len(self.rank)

    @property
    def columns(self) -> int:
        return max(self.rank) + 1

    def is_bend(self, vertex: int) -> bool:
        return vertex >= self.boxes


def _bend_names(ranks: Sequence[int], edges: Sequence[Edge]) -> Callable[[int], int]:
    """What identifies an edge's bends: the edge itself or, if there are too many bends, the end they share."""
    lengths = [ranks[target] - ranks[source] - 1 for source, target in edges]
    if sum(lengths) <= MOST_BENDS:
        return lambda number: number
    trunks = []
    for end in (0, 1):
        longest: dict[int, int] = {}
        for edge, length in zip(edges, lengths, strict=True):
            longest[edge[end]] = max(longest.get(edge[end], 0), length)
        trunks.append(sum(longest.values()))
    shared = 0 if trunks[0] <= trunks[1] else 1
    return lambda number: edges[number][shared]
