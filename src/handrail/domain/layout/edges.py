"""Edges as a drawing needs them: all in one direction, and none that a longer path already implies.

Vertices are numbers from 0, and ties are broken in favour of the smaller number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

Edge = tuple[int, int]


def in_order(count: int, edges: Iterable[Edge]) -> list[int]:
    """The vertices in topological order; if there is a choice, the smallest first.

    A plan has no cycle. Should there be one, it is entered at its smallest vertex, so that there always is an order.
    """
    leads_to: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for source, target in edges:
        leads_to[source].append(target)
        waits[target] += 1
    free = [vertex for vertex in range(count) if not waits[vertex]]
    heapify(free)
    found: list[int] = []
    placed = [False] * count
    next_unplaced = 0
    while len(found) < count:
        if free:
            vertex = heappop(free)
            if placed[vertex]:
                continue
        else:
            while placed[next_unplaced]:
                next_unplaced += 1
            vertex = next_unplaced
        placed[vertex] = True
        found.append(vertex)
        for target in leads_to[vertex]:
            waits[target] -= 1
            if not waits[target] and not placed[target]:
                heappush(free, target)
    return found


def places_in(order: Sequence[int]) -> list[int]:
    """The index of each vertex in an order."""
    places = [0] * len(order)
    for place, vertex in enumerate(order):
        places[vertex] = place
    return places


def is_acyclic(count: int, edges: Sequence[Edge]) -> bool:
    place = places_in(in_order(count, edges))
    return all(place[source] < place[target] for source, target in edges)


def reduced(count: int, edges: Iterable[Edge]) -> list[Edge]:
    """The edges, sorted, without those that a longer path implies. Edges against the order close cycles, and stay."""
    given = sorted({edge for edge in edges if edge[0] != edge[1]})
    order = in_order(count, given)
    place = places_in(order)
    leads_to: list[list[int]] = [[] for _ in range(count)]
    kept = []
    for source, target in given:
        if place[source] < place[target]:
            leads_to[source].append(target)
        else:
            kept.append((source, target))
    reach = [0] * count  # the vertices reachable from each vertex, as bits of a number
    for vertex in reversed(order):
        behind = 0
        for target in sorted(leads_to[vertex], key=place.__getitem__):
            if not behind >> target & 1:
                kept.append((vertex, target))
                behind |= reach[target] | 1 << target
        reach[vertex] = behind
    return sorted(kept)


def forward(count: int, edges: Sequence[Edge]) -> list[Edge]:
    """The edges, with those against the order reversed."""
    place = places_in(in_order(count, edges))
    return [edge if place[edge[0]] < place[edge[1]] else (edge[1], edge[0]) for edge in edges]


def parts(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    """The connected components, each sorted, in order of their smallest vertex."""
    beside: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        beside[source].append(target)
        beside[target].append(source)
    seen = [False] * count
    found = []
    for start in range(count):
        if seen[start]:
            continue
        seen[start] = True
        part = [start]
        for vertex in part:
            for other in beside[vertex]:
                if not seen[other]:
                    seen[other] = True
                    part.append(other)
        found.append(sorted(part))
    return found
