"""Drawings as geometry: which boxes overlap, which lines run through boxes they do not belong to; and plans to draw."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, pairwise

from handrail.domain.layout.layered import Box, Layout, LineRoute

BOX = (190.0, 44.0)
Edges = list[tuple[str, str]]
Span = tuple[float, float, float, float]


def boxes(*names: str) -> list[Box]:
    return [Box(name, *BOX) for name in names]


def overlaps(layout: Layout, nodes: Sequence[Box]) -> list[tuple[str, str]]:
    """Pairs of boxes that touch."""
    spans = {node.id: _span(layout, node) for node in nodes}
    found = []
    for (one, a), (other, b) in combinations(spans.items(), 2):
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]:
            found.append((one, other))
    return found


def out_of_sheet(layout: Layout, nodes: Sequence[Box]) -> list[str]:
    """Boxes and lines that do not lie on the sheet."""
    spans = [(node.id, _span(layout, node)) for node in nodes]
    spans += [(route.source, (x, y, x, y)) for route in layout.routes for x, y in route.points]
    return [name for name, s in spans if min(s) < 0 or s[2] > layout.width + 0.1 or s[3] > layout.height + 0.1]


def through_boxes(layout: Layout, nodes: Sequence[Box]) -> list[tuple[str, str, str]]:
    """Lines that run through a foreign box. What is drawn between two points stays in the rectangle they span, and in
    one that is not level no box may stand at all."""
    found = []
    for route in layout.routes:
        for (x0, y0), (x1, y1) in pairwise(route.points):
            for node in nodes:
                left, top, right, bottom = _span(layout, node)
                beside = max(x0, x1) <= left or min(x0, x1) >= right
                if not beside and max(y0, y1) > top and min(y0, y1) < bottom and node.id not in route[:2]:
                    found.append((route.source, route.target, node.id))
    return found


def crossings(layout: Layout) -> int:
    """Pairs of lines that change sides between two columns of boxes `BOX`, counted from the drawing alone."""
    lefts = sorted({x for x, _ in layout.places.values()})
    found = 0
    for left, following in pairwise(lefts):
        gap = left + BOX[0], following
        passing = [route for route in layout.routes if route.points[0][0] <= gap[0] and route.points[-1][0] >= gap[1]]
        heights = {(_height(route, gap[0]), _height(route, gap[1])) for route in passing}
        found += sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(heights, 2))
    return found


def _height(route: LineRoute, x: float) -> float:
    """How high a line runs at the edge of a column, where it is level."""
    return next(
        y0 if x0 <= x < x1 or y0 == y1 else y1 for (x0, y0), (x1, y1) in pairwise(route.points) if x0 <= x <= x1
    )


def _span(layout: Layout, node: Box) -> Span:
    x, y = layout.places[node.id]
    return x, y, x + node.width, y + node.height


def plan(size: int, seed: int = 7) -> tuple[list[str], Edges]:
    """A plan as agents write them: modules with a design, parts and their tests, a review; some wait for others."""
    chance = random.Random(seed)
    names: list[str] = []
    edges: Edges = []

    def add(name: str, *needs: str) -> str:
        names.append(f"{len(names):04d} {name}")
        edges.extend((need, names[-1]) for need in dict.fromkeys(needs))
        return names[-1]

    start = add("plan", add("specification"))
    merged: list[str] = []
    parts: list[str] = []
    while len(names) < size - 18:
        design = add("design", start, *(chance.sample(merged, 1) if merged and chance.random() < 0.35 else ()))
        own: list[str] = []
        foreign = chance.sample(parts, 1) if parts and chance.random() < 0.6 else []
        for number in range(chance.randint(4, 6)):
            before = [chance.choice(own)] if own and chance.random() < 0.25 else [design]
            own.append(add("part", *before, *(foreign if number == 2 else ())))
        tests = [add("tests", part) for part in own]
        parts += own
        merged.append(add("merge", add("review", *tests)))
    rest = size - len(names) - 2
    merged += [add("note", merged[-1]) for _ in range(rest)]
    add("publish", add("integration", *merged))
    return names, edges
