"""A graph cut into columns: an edge across several columns has a bend in each one in between, like a thin box.

From here on every line joins neighbouring columns. Bends are ordered and placed just like boxes, so lines get space of
their own and never run through a box.

The horizontal positions of columns, and the points that lines run through.

A line is level while it passes a column and changes height only between columns, where there are no boxes. So it can be
drawn as a smooth curve without touching a box it does not belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

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


Point = tuple[float, float]

_NARROW = 48.0
_WIDE = 112.0
_PER_LINE = 1.5
"""How much each line adds to the distance between two columns, up to a maximum: many steep lines close together are
hard to follow."""


class DrawnColumn(NamedTuple):
    """Where a column begins and ends."""

    left: float
    right: float


def columns_of(graph: Layered, order: Sequence[Sequence[int]], wide: Sequence[float]) -> list[DrawnColumn]:
    """The columns side by side, each as wide as its widest box."""
    found: list[DrawnColumn] = []
    left = 0.0
    for column in order:
        width = max((wide[vertex] for vertex in column if not graph.is_bend(vertex)), default=0.0)
        found.append(DrawnColumn(left, left + width))
        lines = sum(len(graph.after[vertex]) for vertex in column)
        left += width + min(_WIDE, _NARROW + _PER_LINE * lines)
    return found


def route(
    graph: Layered,
    way: Sequence[int],
    columns: Sequence[DrawnColumn],
    middle: Sequence[float],
    boxes: Sequence[DrawnColumn],
) -> list[Point]:
    """The points of one edge, from the right side of its source to the left side of its target. `boxes` are the
    horizontal extents of the boxes at its ends."""
    points: list[Point] = []
    for vertex in way:
        column = columns[graph.rank[vertex]]
        left, right = (column.left, column.right) if graph.is_bend(vertex) else boxes[vertex]
        if vertex == way[0]:
            ends = [right, column.right]
        elif vertex == way[-1]:
            ends = [column.left, left]
        else:
            ends = [left, right]
        points += [(x, middle[vertex]) for x in ends]
    return without_repeats(points)


def without_repeats(points: Sequence[Point]) -> list[Point]:
    """The points without redundant ones: repeated, or in the middle of a level line."""
    found: list[Point] = []
    for point in points:
        if found and point == found[-1]:
            continue
        if len(found) > 1 and found[-2][1] == found[-1][1] == point[1]:
            found.pop()
        found.append(point)
    return found
