"""A layered drawing of a directed graph, from left to right: `lay_out` says where each box goes and how lines run.

The same graph always gets the same drawing, in whatever order its boxes and edges are given: ties are broken by id.
Edges that a longer path implies are not drawn. It is made for plans, which have no cycles; a cycle is drawn too, with
one line that runs backwards.

Arranges drawings on one sheet with about the proportions of a screen.

Large ones come first, in rows from left to right. Boxes without edges form a grid: five hundred independent tasks make
a page to look at, not a column to scroll.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from handrail.domain.layout.columns import DrawnColumn, Layered, Point, columns_of, route
from handrail.domain.layout.crossings import ordered
from handrail.domain.layout.edges import Edge, forward, parts, reduced
from handrail.domain.layout.heights import heights_at
from handrail.domain.layout.ranks import balanced

Size = tuple[float, float]
Spot = tuple[float, float]

_ASPECT = 1.6
"""How much wider than tall the sheet should be."""


def packed(sizes: Sequence[Size], gap: float) -> tuple[list[Spot], Size]:
    """The top left corner of each drawing, in the order given, and the size of the sheet."""
    if not sizes:
        return [], (0.0, 0.0)
    area = sum((width + gap) * (height + gap) for width, height in sizes)
    widest = max(width for width, _ in sizes) + gap
    limit = max(math.sqrt(area * _ASPECT) + widest / 2, widest)  # half a drawing more, as rows are never quite full
    spots: list[Spot] = []
    x = y = row = right = 0.0
    for width, height in sizes:
        if x and x + width + gap > limit + 0.01:
            x, y, row = 0.0, y + row + gap, 0.0
        spots.append((x, y))
        right, row = max(right, x + width), max(row, height)
        x += width + gap
    return spots, (right, y + row)


def grid(sizes: Sequence[Size], gap: Size, least_wide: float) -> tuple[list[Spot], Size]:
    """Places boxes in rows of equal cells, at least as many per row as fit into `least_wide`."""
    if not sizes:
        return [], (0.0, 0.0)
    wide, tall = max(width for width, _ in sizes), max(height for _, height in sizes)
    cell_wide, cell_tall = wide + gap[0], tall + gap[1]
    by_aspect = round(math.sqrt(len(sizes) * _ASPECT * cell_tall / cell_wide))
    by_width = int((least_wide + gap[0]) // cell_wide)
    across = max(1, min(len(sizes), max(by_aspect, by_width)))
    spots = [(number % across * cell_wide, number // across * cell_tall) for number in range(len(sizes))]
    rows = -(-len(sizes) // across)
    return spots, (across * cell_wide - gap[0], rows * cell_tall - gap[1])


GAP = 14.0
"""Between two boxes in a column."""
PART_GAP = 40.0
"""Between drawings that are not connected."""
GRID_GAP = (24.0, GAP)


class Box(NamedTuple):
    """A box to place."""

    id: str
    width: float
    height: float


class LineRoute(NamedTuple):
    """The line of one edge."""

    source: str
    target: str
    points: list[Point]


class Layout(NamedTuple):
    """A drawing. The position of a box is its top left corner."""

    width: float
    height: float
    places: dict[str, Spot]
    routes: list[LineRoute]
    crossings: int


class _Drawing(NamedTuple):
    """One connected part of the graph, drawn by itself. Its boxes are numbered as in the whole graph."""

    size: Size
    spots: dict[int, Spot]
    lines: list[tuple[Edge, list[Point]]]
    crossings: int


def lay_out(nodes: Sequence[Box], edges: Sequence[tuple[str, str]]) -> Layout:
    """The drawing of a graph. Ignores edges from or to unknown nodes, and from a node to itself."""
    boxes = sorted({node.id: node for node in nodes}.values())
    number = {box.id: index for index, box in enumerate(boxes)}
    known = [(number[source], number[target]) for source, target in edges if source in number and target in number]
    drawn = reduced(len(boxes), known)
    drawings, alone = _drawings(boxes, drawn)
    spots, (width, height) = packed([drawing.size for drawing in drawings], PART_GAP)
    cells, (grid_width, grid_height) = grid([_size(boxes[index]) for index in alone], GRID_GAP, width)
    below = height + PART_GAP if drawings else 0.0

    places: dict[str, Spot] = {}
    routes: list[LineRoute] = []
    for drawing, (left, top) in zip(drawings, spots, strict=True):
        for index, (x, y) in drawing.spots.items():
            places[boxes[index].id] = (round(x + left, 1), round(y + top, 1))
        for (source, target), points in drawing.lines:
            moved = [(round(x + left, 1), round(y + top, 1)) for x, y in points]
            routes.append(LineRoute(boxes[source].id, boxes[target].id, moved))
    for index, (x, y) in zip(alone, cells, strict=True):
        places[boxes[index].id] = (round(x, 1), round(y + below, 1))
    return Layout(
        width=round(max(width, grid_width), 1),
        height=round(below + grid_height if alone else height, 1),
        places={box.id: places[box.id] for box in boxes},
        routes=sorted(routes),
        crossings=sum(drawing.crossings for drawing in drawings),
    )


def _size(box: Box) -> Size:
    return box.width, box.height


def _drawings(boxes: Sequence[Box], edges: Sequence[Edge]) -> tuple[list[_Drawing], list[int]]:
    """Each connected part of the graph as a drawing, largest first; and the boxes without edges."""
    alone: list[int] = []
    drawings: list[_Drawing] = []
    found = parts(len(boxes), edges)
    part_of = {index: number for number, part in enumerate(found) for index in part}
    edges_of: list[list[Edge]] = [[] for _ in found]
    for edge in edges:
        edges_of[part_of[edge[0]]].append(edge)
    for part, inside in zip(found, edges_of, strict=True):
        if len(part) == 1:
            alone += part
        else:
            drawings.append(_drawing(boxes, part, inside))
    drawings.sort(key=lambda drawing: (-len(drawing.spots), min(drawing.spots)))
    return drawings, alone


def _drawing(boxes: Sequence[Box], part: Sequence[int], edges: Sequence[Edge]) -> _Drawing:
    number = {index: local for local, index in enumerate(part)}
    inside = [(number[source], number[target]) for source, target in edges]
    directed = forward(len(part), inside)
    graph = Layered(balanced(len(part), directed), directed)
    order, crossings = ordered(graph)
    middle = heights_at(graph, order, [boxes[index].height for index in part], GAP)
    columns = columns_of(graph, order, [boxes[index].width for index in part])
    spans = []
    spots: dict[int, Spot] = {}
    for local, index in enumerate(part):
        box, column = boxes[index], columns[graph.rank[local]]
        left = (column.left + column.right - box.width) / 2
        spans.append(DrawnColumn(left, left + box.width))
        spots[index] = (left, middle[local] - box.height / 2)
    lines: list[tuple[Edge, list[Point]]] = []
    for edge, there, given in zip(edges, directed, inside, strict=True):
        way = graph.ways[len(lines)]
        points = route(graph, way, columns, middle, spans)
        lines.append((edge, points if there == given else points[::-1]))
    bottoms = [y + boxes[index].height for index, (_, y) in spots.items()]
    lowest = max(*bottoms, *(y for _, points in lines for _, y in points))
    return _Drawing((columns[-1].right, lowest), spots, lines, crossings)
