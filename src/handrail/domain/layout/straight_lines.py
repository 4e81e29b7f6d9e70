"""Makes long lines level: where the columns leave room, the bends of a line get the same height.

Placing draws a long line as a staircase of small steps, because that is shortest; but a level line with few steps is
easier to follow. Bends keep their order within the column, so nothing else moves and no crossing is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from handrail.domain.layout.columns import Layered

_PASSES = 2
"""More than one, because space that one line frees can be used by another in the next pass."""


def straighten(
    graph: Layered, columns: Sequence[Sequence[int]], room: Sequence[Sequence[float]], middle: list[float]
) -> None:
    """Changes the heights of bends in `middle`. `room` is the least distance of each vertex below the first of its
    column."""
    place = {vertex: number for column in columns for number, vertex in enumerate(column)}

    def limits(vertex: int) -> tuple[float, float]:
        """How far up and down a bend can move between its neighbours."""
        rank, number = graph.rank[vertex], place[vertex]
        column, least = columns[rank], room[rank]
        low, high = -math.inf, math.inf
        if number:
            low = middle[column[number - 1]] + least[number] - least[number - 1]
        if number + 1 < len(column):
            high = middle[column[number + 1]] - least[number + 1] + least[number]
        return min(low, middle[vertex]), max(high, middle[vertex])

    long_ways = [way for way in graph.ways if len(way) > 2]
    for _ in range(_PASSES):
        for way in long_ways:
            run: list[int] = []
            low, high = -math.inf, math.inf
            for vertex in way[1:-1]:
                lowest, highest = limits(vertex)
                if run and max(low, lowest) > min(high, highest):
                    _level(run, low, high, way, middle)
                    run, low, high = [], -math.inf, math.inf
                run.append(vertex)
                low, high = max(low, lowest), min(high, highest)
            _level(run, low, high, way, middle)


def _level(run: Sequence[int], low: float, high: float, way: Sequence[int], middle: list[float]) -> None:
    """Brings bends to one height: level with the box at an end of the line if possible, else near where they are."""
    wishes = [middle[way[0]]] if run[0] == way[1] else []
    wishes += [middle[way[-1]]] if run[-1] == way[-2] else []
    mean = sum(middle[vertex] for vertex in run) / len(run)
    height = next((wish for wish in wishes if low <= wish <= high), min(max(mean, low), high))
    for vertex in run:
        middle[vertex] = height
