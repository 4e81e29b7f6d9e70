"""How high each vertex stands, once the order of its column is settled: level with its neighbours, as far as the
others of the column leave room.

Column by column, this is least squares under the condition that order and distances hold. Taking away from each wish
the room that is needed above turns the condition into "never falling", and the answer is isotonic regression: where
wishes fall, those vertices form a block and share the mean. Lines between two bends weigh most, so that long lines run
straight.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from handrail.domain.layout.layering import Layered
from handrail.domain.layout.straightening import straighten

BEND_HEIGHT = 6.0
"""The room that a line takes where it passes a column."""
BEND_GAP = 6.0
_SWEEPS = 40
_FEWEST_SWEEPS = 8
_SWEEP_WORK = 400_000
"""Vertices that all sweeps may visit together."""
_WEIGHTS = (1.0, 2.0, 8.0)
"""Of a line with no, one and two bends at its ends."""
_UNPULLED = 0.01

Pulls = list[list[tuple[int, float]]]


def heights_at(graph: Layered, columns: Sequence[Sequence[int]], tall: Sequence[float], gap: float) -> list[float]:
    """The middle of each vertex, from 0 down. `tall` is how tall each box is, `gap` lies between two of them."""
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
    return [float(round(height - top)) for height in middle]  # whole: lines that are all but level are level


def _height(graph: Layered, vertex: int, tall: Sequence[float]) -> float:
    return BEND_HEIGHT if graph.is_bend(vertex) else tall[vertex]


def _room(graph: Layered, column: Sequence[int], tall: Sequence[float], gap: float) -> list[float]:
    """How far below the first each vertex of a column stands at least."""
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
    """Places one column among its neighbours."""
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
