"""The height of each vertex, once the order of its column is settled: level with its neighbours, as far as the rest of
the column leaves room.

Column by column, this is least squares under the constraint that order and distances are kept. Subtracting from each
desired height the space needed above it turns the constraint into "never decreasing", and the solution is isotonic
regression: where desired heights decrease, those vertices form a block and share the mean. Lines between two bends
weigh most, so that long lines run straight.

Makes long lines level: where the columns leave room, the bends of a line get the same height.

Placing draws a long line as a staircase of small steps, because that is shortest; but a level line with few steps is
easier to follow. Bends keep their order within the column, so nothing else moves and no crossing is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

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


BEND_HEIGHT = 6.0
"""The space that a line takes up where it passes a column."""
BEND_GAP = 6.0
_SWEEPS = 40
_FEWEST_SWEEPS = 8
_SWEEP_WORK = 400_000
"""How many vertices all sweeps may visit in total."""
_WEIGHTS = (1.0, 2.0, 8.0)
"""The weights of lines with no, one and two bends at their ends."""
_UNPULLED = 0.01

Pulls = list[list[tuple[int, float]]]


def heights_at(graph: Layered, columns: Sequence[Sequence[int]], tall: Sequence[float], gap: float) -> list[float]:
    """The middle of each vertex, from 0 downwards. `tall` is the height of each box, `gap` the space between two."""
    room = [_room(graph, column, tall, gap) for column in columns]
    longest = max(offsets[-1] for offsets in room)
    middle = [0.0] * graph.size
    for column, offsets in zip(columns, room, strict=True):
        for vertex, offset in zip(column, offsets, strict=True):
            middle[vertex] = offset + (longest - offsets[-1]) / 2
    left, right = _pulls(graph, graph.before), _pulls(graph, graph.after)
    both = [mine + yours for mine, yours in zip(left, right, strict=True)]
    sweeps = max(_FEWEST_SWEEPS, min(_SWEEPS, _SWEEP_WORK // graph.size))
    numbers = range(len(columns))
    for sweep in range(sweeps):
        rightwards = sweep % 2 == 0
        pulls = both if sweep >= sweeps // 2 else left if rightwards else right
        for number in numbers if rightwards else reversed(numbers):
            _settle(columns[number], room[number], pulls, middle)
    straighten(graph, columns, room, middle)
    top = min(middle[vertex] - _height(graph, vertex, tall) / 2 for vertex in range(graph.size))
    return [float(round(height - top)) for height in middle]  # rounded, so that almost level lines become level


def _height(graph: Layered, vertex: int, tall: Sequence[float]) -> float:
    return BEND_HEIGHT if graph.is_bend(vertex) else tall[vertex]


def _room(graph: Layered, column: Sequence[int], tall: Sequence[float], gap: float) -> list[float]:
    """The least distance of each vertex in a column below the first."""
    offsets = [0.0]
    for upper, lower in pairwise(column):
        between = BEND_GAP if graph.is_bend(upper) or graph.is_bend(lower) else gap
        half_heights = (_height(graph, upper, tall) + _height(graph, lower, tall)) / 2
        offsets.append(offsets[-1] + half_heights + between)
    return offsets


def _pulls(graph: Layered, neighbours: Sequence[Sequence[int]]) -> Pulls:
    return [
        [(other, _WEIGHTS[graph.is_bend(vertex) + graph.is_bend(other)]) for other in neighbours[vertex]]
        for vertex in range(graph.size)
    ]


def _settle(column: Sequence[int], room: Sequence[float], pulls: Pulls, middle: list[float]) -> None:
    """Places the vertices of one column by their neighbours."""
    weights: list[float] = []
    sums: list[float] = []
    counts: list[int] = []
    for vertex, offset in zip(column, room, strict=True):
        weight = total = 0.0
        for other, pull in pulls[vertex]:
            weight += pull
            total += pull * middle[other]
        if not weight:
            weight, total = _UNPULLED, _UNPULLED * middle[vertex]
        total -= weight * offset
        count = 1
        while weights and sums[-1] * weight > total * weights[-1]:
            weight += weights.pop()
            total += sums.pop()
            count += counts.pop()
        weights.append(weight)
        sums.append(total)
        counts.append(count)
    number = 0
    for weight, total, count in zip(weights, sums, counts, strict=True):
        for index in range(number, number + count):
            middle[column[index]] = total / weight + room[index]
        number += count
