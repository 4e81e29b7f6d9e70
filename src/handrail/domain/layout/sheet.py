"""Arranges drawings on one sheet with about the proportions of a screen.

Large ones come first, in rows from left to right. Boxes without edges form a grid: five hundred independent tasks make
a page to look at, not a column to scroll.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
