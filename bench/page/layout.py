"""`python -m bench.page.layout`: draws plans with our layout and with Graphviz's `dot`, prints what both cost and show.

Both draw the same boxes and the same edges, without those that a longer way implies: our own layout leaves them out,
and `dot` is given what is left. Seconds are CPU time, ours in this process, `dot`'s as a child with its start.
Crossings and edges through boxes are counted in the drawings themselves, in both with the same code. The last line of
each size is ours by theirs. Where there is no `dot`, ours is shown alone.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
from collections.abc import Callable, Sequence

from bench.page.drawings import Drawing, Figures, figures, graphviz, ours, plan

SIZES = (50, 200, 1_000, 5_000)
QUICK_SIZES = (50, 200)
SEEDS = (7, 8, 9)
"""Plans of each size; figures are medians."""
COUNTED_UP_TO = 1_000
"""Crossings of larger drawings are not counted: there are tens of thousands, and nobody reads such a drawing so."""
DOT_SECONDS = 240.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.page.layout", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small plans: shows that it runs, not how it grows")
    parser.add_argument("--size", type=int, action="append", help="a size of your own, in place of the four")
    given = parser.parse_args()
    sizes = tuple(given.size or (QUICK_SIZES if given.quick else SIZES))
    has_dot = shutil.which("dot") is not None
    if not has_dot:
        print("there is no dot on this machine (it is in the package graphviz): ours alone")
    print("| tasks | edges | drawn by | CPU s | crossings | edges through boxes | length of lines, px | height, px |")
    print("|--:|--:|---|--:|--:|--:|--:|--:|")
    for size in sizes:
        compare(size, has_dot=has_dot)


def compare(size: int, *, has_dot: bool) -> None:
    mine: list[Figures] = []
    theirs: list[Figures] = []
    tasks = edges = 0
    for seed in SEEDS if size <= COUNTED_UP_TO else SEEDS[:1]:
        names, all_edges = plan(size, seed)
        drawn = ours(names, all_edges)
        mine.append(counted(drawn))
        tasks, edges = len(names), len(drawn.lines)
        other = graphviz(names, [edge for edge, _ in drawn.lines], DOT_SECONDS) if has_dot else None
        if other is not None:
            theirs.append(counted(other))
    start = f"| {tasks:,} | {edges:,} |"
    print_row(start, "ours", mine, statistics.median)
    if theirs:
        print_row(start, "dot", theirs, statistics.median)
        print(f"{start} ours by dot | " + " | ".join(ratios(mine, theirs)) + " |", flush=True)
    elif has_dot:
        print(f"{start} dot | did not end in {DOT_SECONDS:.0f} s on the clock | | | | |", flush=True)


def counted(drawing: Drawing) -> Figures:
    return figures(drawing, crossings=len(drawing.places) <= 2 * COUNTED_UP_TO)


def print_row(start: str, name: str, found: Sequence[Figures], middle: Callable[[Sequence[float]], float]) -> None:
    columns = list(zip(*found, strict=True))
    cells = [f"{middle(columns[0]):.3f}", *(shown(middle(column)) for column in columns[1:])]
    print(f"{start} {name} | " + " | ".join(cells) + " |", flush=True)


def shown(value: float) -> str:
    return "not counted" if value < 0 else f"{value:,.0f}"


def ratios(mine: Sequence[Figures], theirs: Sequence[Figures]) -> list[str]:
    """Medians by medians; nothing by nothing is nothing."""
    cells = []
    for own, other in zip(zip(*mine, strict=True), zip(*theirs, strict=True), strict=True):
        below = statistics.median(other)
        cells.append(f"{statistics.median(own) / below:.2f}" if below > 0 else "")
    return cells


if __name__ == "__main__":
    main()
