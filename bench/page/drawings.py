"""Drawings to compare: plans of any size, a drawing of ours and of Graphviz, and what can be counted in both alike.

Lines are cut into short straight pieces as they are drawn: ours as the page does it (level in a column, a soft curve
between two), Graphviz's from its splines. A crossing is a pair of edges whose pieces cross anywhere but at a box they
share; an edge through a box has a piece inside a box that is at neither of its ends.
"""

from __future__ import annotations

import random
import resource
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from handrail.domain.layout.layered import Box, LineRoute, lay_out

BOX = (190.0, 44.0)
STEPS = 8
"""Straight pieces for one curve."""
CELL = 120.0
INCH = 72.0

Point = tuple[float, float]
Edge = tuple[str, str]
Piece = tuple[Point, Point]


class Drawing(NamedTuple):
    """Boxes by their top left corner, lines as points close together, and the seconds of CPU it took."""

    places: dict[str, Point]
    lines: list[tuple[Edge, list[Point]]]
    seconds: float


class Figures(NamedTuple):
    """What was counted in a drawing."""

    seconds: float
    crossings: int
    through: int
    length: float
    height: float


def plan(size: int, seed: int = 7) -> tuple[list[str], list[Edge]]:
    """A plan as agents write them: modules with a design, parts with tests, a review; some wait for parts of others."""
    chance = random.Random(seed)
    names: list[str] = []
    edges: list[Edge] = []

    def add(name: str, *needs: str) -> str:
        names.append(f"{len(names):05d} {name}")
        edges.extend((need, names[-1]) for need in dict.fromkeys(needs))
        return names[-1]

    start = add("plan", add("specification"))
    merges: list[str] = []
    parts: list[str] = []
    while len(names) < size - 3:
        module = f"module {len(merges)}"
        others = [chance.choice(merges)] if merges and chance.random() < 0.35 else []
        design = add(f"{module} design", start, *others)
        own: list[str] = []
        tests: list[str] = []
        foreign = chance.choice(parts) if parts and chance.random() < 0.6 else None
        for number in range(chance.randint(4, 6)):
            needs = [chance.choice(own)] if own and chance.random() < 0.25 else [design]
            if number == 2 and foreign is not None:
                needs.append(foreign)
            own.append(add(f"{module} part {number}", *needs))
            tests.append(add(f"{module} tests {number}", own[-1]))
        parts += own
        merges.append(add(f"{module} merge", add(f"{module} review", *tests)))
    add("publish", add("approval", add("integration", *merges)))
    return names, edges


# -- drawing ----------------------------------------------------------------------------------------------------------


def ours(names: Sequence[str], edges: Sequence[Edge]) -> Drawing:
    began = time.process_time()
    found = lay_out([Box(name, *BOX) for name in names], edges)
    seconds = time.process_time() - began
    return Drawing(found.places, [((route.source, route.target), _curved(route)) for route in found.routes], seconds)


def _curved(route: LineRoute) -> list[Point]:
    """A route as the page draws it."""
    points = [route.points[0]]
    for start, end in pairwise(route.points):
        if start[1] == end[1]:
            points.append(end)
        else:
            half = (start[0] + end[0]) / 2
            points += _curve(start, (half, start[1]), (half, end[1]), end)
    return points


def _curve(a: Point, b: Point, c: Point, d: Point) -> Iterator[Point]:
    for step in range(1, STEPS + 1):
        t = step / STEPS
        u = 1 - t
        weights = (u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t)
        yield (
            sum(weight * point[0] for weight, point in zip(weights, (a, b, c, d), strict=True)),
            sum(weight * point[1] for weight, point in zip(weights, (a, b, c, d), strict=True)),
        )


def graphviz(names: Sequence[str], edges: Iterable[Edge], timeout: float) -> Drawing | None:
    """The drawing of `dot`; None where it does not end in time."""
    width, height = (side / INCH for side in BOX)
    number = {name: str(index) for index, name in enumerate(names)}
    lines = [
        "digraph { rankdir=LR; nodesep=0.19; ranksep=0.9;",
        f"node [shape=box fixedsize=true width={width:.4f} height={height:.4f} label=x]; edge [arrowhead=none];",
        *(f"{index};" for index in number.values()),
        *(f"{number[source]}->{number[target]};" for source, target in edges),
        "}",
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            ["dot", "-Tplain"], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _read_plain(done.stdout, names, seconds)


def _read_plain(text: str, names: Sequence[str], seconds: float) -> Drawing:
    places: dict[str, Point] = {}
    lines: list[tuple[Edge, list[Point]]] = []
    for row in text.splitlines():
        kind, *words = row.split()
        if kind == "node":
            x, y = float(words[1]) * INCH, float(words[2]) * INCH
            places[names[int(words[0])]] = (x - BOX[0] / 2, y - BOX[1] / 2)
        elif kind == "edge":
            count = int(words[2])
            values = [float(word) * INCH for word in words[3 : 3 + 2 * count]]
            control = list(zip(values[::2], values[1::2], strict=True))
            points = [control[0]]
            for first in range(0, count - 1, 3):
                points += _curve(*control[first : first + 4])
            lines.append(((names[int(words[0])], names[int(words[1])]), points))
    return Drawing(places, lines, seconds)


# -- counting ---------------------------------------------------------------------------------------------------------


def figures(drawing: Drawing, *, crossings: bool = True) -> Figures:
    """What can be counted; without crossings where nobody asks for them: -1."""
    pieces: list[tuple[int, Piece]] = []
    for number, (_, points) in enumerate(drawing.lines):
        pieces += [(number, piece) for piece in pairwise(points)]
    ys = [y for _, y in drawing.places.values()]
    return Figures(
        seconds=drawing.seconds,
        crossings=_crossings(drawing, pieces) if crossings else -1,
        through=_through_boxes(drawing, pieces),
        length=sum(_length(piece) for _, piece in pieces),
        height=max(ys) - min(ys) + BOX[1],
    )


def _length(piece: Piece) -> float:
    (x0, y0), (x1, y1) = piece
    return float(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5)


def _cells(low: Point, high: Point) -> Iterator[tuple[int, int]]:
    for column in range(int(low[0] // CELL), int(high[0] // CELL) + 1):
        for row in range(int(low[1] // CELL), int(high[1] // CELL) + 1):
            yield column, row


def _reach(piece: Piece) -> tuple[Point, Point]:
    (x0, y0), (x1, y1) = piece
    return (min(x0, x1), min(y0, y1)), (max(x0, x1), max(y0, y1))


def _crossings(drawing: Drawing, pieces: Sequence[tuple[int, Piece]]) -> int:
    near: dict[tuple[int, int], list[tuple[int, Piece]]] = defaultdict(list)
    for entry in pieces:
        for cell in _cells(*_reach(entry[1])):
            near[cell].append(entry)
    ends = [set(edge) for edge, _ in drawing.lines]
    found: set[tuple[int, int]] = set()
    for there in near.values():
        for place, (first, piece) in enumerate(there):
            for second, other in there[place + 1 :]:
                pair = (first, second) if first < second else (second, first)
                if first != second and pair not in found and _cross(piece, other) and not ends[first] & ends[second]:
                    found.add(pair)
    return len(found)


def _side(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _cross(one: Piece, other: Piece) -> bool:
    (a, b), (c, d) = one, other
    return (_side(a, b, c) > 0) != (_side(a, b, d) > 0) and (_side(c, d, a) > 0) != (_side(c, d, b) > 0)


def _through_boxes(drawing: Drawing, pieces: Sequence[tuple[int, Piece]]) -> int:
    """Edges that run through a foreign box by more than a pixel."""
    near: dict[tuple[int, int], list[tuple[str, Point]]] = defaultdict(list)
    for name, (x, y) in drawing.places.items():
        for cell in _cells((x, y), (x + BOX[0], y + BOX[1])):
            near[cell].append((name, (x, y)))
    found: set[int] = set()
    for number, piece in pieces:
        if number in found:
            continue
        ends = drawing.lines[number][0]
        for cell in _cells(*_reach(piece)):
            if any(name not in ends and _is_inside(piece, corner) for name, corner in near.get(cell, ())):
                found.add(number)
                break
    return len(found)


def _is_inside(piece: Piece, corner: Point) -> bool:
    """Whether a piece reaches into a box: it is clipped against its four sides."""
    (x0, y0), (x1, y1) = piece
    low, high = 0.0, 1.0
    for start, step, least, most in (
        (x0, x1 - x0, corner[0] + 1, corner[0] + BOX[0] - 1),
        (y0, y1 - y0, corner[1] + 1, corner[1] + BOX[1] - 1),
    ):
        if not step:
            if not least <= start <= most:
                return False
            continue
        near, far = sorted(((least - start) / step, (most - start) / step))
        low, high = max(low, near), min(high, far)
    return low < high
