"""The horizontal positions of columns, and the points that lines run through.

A line is level while it passes a column and changes height only between columns, where there are no boxes. So it can be
drawn as a smooth curve without touching a box it does not belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from handrail.domain.layout.columns import Layered

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
