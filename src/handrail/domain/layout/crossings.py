"""The order of each column, so that few lines cross: sweeps from side to side, swaps of neighbours, the best kept.

A sweep puts each vertex at the mean, or the median, of its neighbours' places in the previous column. After that,
adjacent vertices in a column are swapped if that removes crossings; now and then also if it makes no difference, which
leads out of dead ends. For a small graph this is repeated from shuffled orders; then the best order is shaken, by
reversing a stretch of each column, and swept again. Randomness is seeded: the same graph always gets the same drawing.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from handrail.domain.layout.columns import Layered

Columns = list[list[int]]

_SWEEPS = 24
_PATIENCE = 6
"""How many sweeps without an improvement before giving up."""
_SHAKEN_PATIENCE = 3
_RESTARTS = 2
_SHAKES = 24
_SHAKE_WORK = 12_000
"""How many vertices all shakes may order in total, so that graphs with many bends get few shakes."""
_ONE_START_ABOVE = 400
"""A graph with more boxes than this is not tried from shuffled orders."""
_SWEEP_WORK = 150_000
"""How many vertices the sweeps of one start may visit in total; the first four sweeps are always made."""
_SEED = 1


def ordered(graph: Layered) -> tuple[Columns, int]:
    """The columns with their vertices in order, and how many crossings are left."""
    ordering = _Ordering(graph)
    start = _discovered(graph, from_left=True)
    ordering.try_from(start, _PATIENCE)
    ordering.try_from(_discovered(graph, from_left=False), _PATIENCE)
    if graph.boxes > _ONE_START_ABOVE:
        return ordering.best, ordering.crossings
    chance = random.Random(_SEED)  # noqa: S311  the same each time: nothing here is a secret
    for _ in range(_RESTARTS):
        if ordering.crossings:
            for column in start:
                chance.shuffle(column)
            ordering.try_from(start, _PATIENCE)
    for _ in range(min(_SHAKES, _SHAKE_WORK // graph.size)):
        if ordering.crossings:
            ordering.try_from(_shaken(ordering.best, chance), _SHAKEN_PATIENCE)
    return ordering.best, ordering.crossings


def _shaken(columns: Columns, chance: random.Random) -> Columns:
    """The columns, with up to a quarter of each reversed."""
    shaken = []
    for column in columns:
        start = chance.randrange(len(column))
        end = start + max(2, len(column) // 4)
        shaken.append(column[:start] + column[start:end][::-1] + column[end:])
    return shaken


def _discovered(graph: Layered, *, from_left: bool) -> Columns:
    """The columns in the order in which walks from one side discover their vertices: connected ones stay together."""
    onward = graph.after if from_left else graph.before
    columns: Columns = [[] for _ in range(graph.columns)]
    seen = [False] * graph.size
    for start in sorted(range(graph.size), key=graph.rank.__getitem__, reverse=not from_left):
        ahead = [start]
        while ahead:
            vertex = ahead.pop()
            if not seen[vertex]:
                seen[vertex] = True
                columns[graph.rank[vertex]].append(vertex)
                ahead.extend(reversed(onward[vertex]))
    return columns


class _Ordering:
    """The best order found so far, and the one being worked on."""

    def __init__(self, graph: Layered) -> None:
        self._before, self._after = graph.before, graph.after
        self._columns: Columns = []
        self._place = [0] * graph.size
        self._sweeps = max(4, min(_SWEEPS, _SWEEP_WORK // graph.size))
        self.best: Columns = []
        self.crossings = -1

    def try_from(self, start: Columns, patience: int) -> None:
        self._columns = [list(column) for column in start]
        for column in self._columns:
            self._number(column)
        lowest = self._keep_if_better(None)
        stale = 0
        for sweep in range(self._sweeps):
            self._sweep(rightwards=sweep % 2 == 0, by_middle=sweep % 4 >= 2)
            if sweep % 3 == 2:
                self._swap_neighbours(rounds=1, when_equal=True)
            self._swap_neighbours(rounds=3, when_equal=False)
            crossings = self._keep_if_better(lowest)
            stale = 0 if crossings < lowest else stale + 1
            lowest = min(lowest, crossings)
            if stale > patience or not lowest:
                break

    def _keep_if_better(self, lowest: int | None) -> int:
        crossings = self._count()
        if (lowest is None or crossings < lowest) and (self.crossings < 0 or crossings < self.crossings):
            self.best = [list(column) for column in self._columns]
            self.crossings = crossings
        return crossings

    def _number(self, column: Sequence[int]) -> None:
        place = self._place
        for number, vertex in enumerate(column):
            place[vertex] = number

    def _count(self) -> int:
        """Crossings between neighbouring columns: pairs of lines whose ends are in opposite orders."""
        place, found = self._place, 0
        for column in self._columns[:-1]:
            seen: list[int] = []
            for vertex in column:
                ends = sorted([place[other] for other in self._after[vertex]])
                for end in ends:
                    found += len(seen) - bisect_right(seen, end)
                for end in ends:
                    seen.insert(bisect_right(seen, end), end)
        return found

    def _sweep(self, *, rightwards: bool, by_middle: bool) -> None:
        neighbours = self._before if rightwards else self._after
        columns = self._columns if rightwards else self._columns[::-1]
        for column in columns[1:]:
            wanted: dict[int, float] = {}
            for vertex in column:
                if neighbours[vertex]:
                    wanted[vertex] = self._centre_of(neighbours[vertex], by_middle=by_middle)
            moved = sorted(wanted, key=wanted.__getitem__)
            if len(moved) < len(column):  # a vertex without neighbours stays where it is
                for place, vertex in enumerate(column):
                    if vertex not in wanted:
                        moved.insert(place, vertex)
            column[:] = moved
            self._number(column)

    def _centre_of(self, neighbours: Sequence[int], *, by_middle: bool) -> float:
        place = self._place
        if len(neighbours) == 1:
            return place[neighbours[0]]
        places = [place[other] for other in neighbours]
        if not by_middle:
            return sum(places) / len(places)
        places.sort()
        half = len(places) // 2
        return places[half] if len(places) % 2 else (places[half - 1] + places[half]) / 2

    def _swap_neighbours(self, *, rounds: int, when_equal: bool) -> None:
        stirred = [True] * len(self._columns)  # columns worth trying again, because they or their neighbours changed
        for _ in range(rounds):
            look_at, stirred = stirred, [False] * len(self._columns)
            for number, column in enumerate(self._columns):
                if look_at[number] and self._swap_in(column, when_equal=when_equal):
                    around = slice(max(0, number - 1), number + 2)
                    stirred[around] = [True] * len(stirred[around])
                    look_at[around] = stirred[around]
            if not any(stirred):
                return

    def _swap_in(self, column: list[int], *, when_equal: bool) -> bool:
        """Swaps adjacent vertices of one column; returns whether that removed a crossing."""
        place, before, after = self._place, self._before, self._after
        left = [[place[other] for other in before[vertex]] for vertex in column]
        right = [[place[other] for other in after[vertex]] for vertex in column]
        for ends in (*left, *right):
            if len(ends) > 1:
                ends.sort()
        improved = changed = False
        for upper in range(len(column) - 1):
            lower = upper + 1
            gain = _gain(left[upper], left[lower]) if left[upper] and left[lower] else 0
            if right[upper] and right[lower]:
                gain += _gain(right[upper], right[lower])
            if gain > 0 or (when_equal and gain == 0):
                column[upper], column[lower] = column[lower], column[upper]
                left[upper], left[lower] = left[lower], left[upper]
                right[upper], right[lower] = right[lower], right[upper]
                improved, changed = improved or gain > 0, True
        if changed:
            self._number(column)
        return improved


def _gain(upper: Sequence[int], lower: Sequence[int]) -> int:
    """How many crossings swapping two vertices removes; `upper` and `lower` are the sorted places where their lines
    end."""
    if len(upper) == 1 == len(lower):
        return (upper[0] > lower[0]) - (upper[0] < lower[0])
    gain = 0
    for end in lower:
        gain += len(upper) - bisect_right(upper, end) - bisect_left(upper, end)
    return gain
