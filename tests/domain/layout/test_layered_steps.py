"""The steps of a drawing by themselves: reduction, columns, packing."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.layout.edges import Edge, forward, in_order, is_acyclic, parts, reduced
from handrail.domain.layout.layered import grid, packed
from handrail.domain.layout.ranks import balanced, earliest

COUNT = 9
dags = st.lists(
    st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)).map(sorted).map(tuple), max_size=24
).map(lambda edges: sorted({(a, b) for a, b in edges if a != b}))


def reach(edges: list[Edge]) -> set[Edge]:
    """All pairs that some way joins, the slow way."""
    found = set(edges)
    for middle, start, end in product(range(COUNT), repeat=3):
        if (start, middle) in found and (middle, end) in found:
            found.add((start, end))
    return found


@settings(max_examples=80, deadline=None)
@given(dags)
def test_a_reduction_says_the_same_with_no_edge_too_many(edges: list[Edge]) -> None:
    kept = reduced(COUNT, edges)
    assert reach(kept) == reach(edges)
    for edge in kept:
        assert reach([other for other in kept if other != edge]) != reach(edges)


@settings(max_examples=80, deadline=None)
@given(dags)
def test_columns_keep_the_direction_and_never_make_lines_longer(edges: list[Edge]) -> None:
    ranks, soonest = balanced(COUNT, edges), earliest(COUNT, edges)
    assert all(ranks[source] < ranks[target] for source, target in edges)
    assert min(ranks) == 0
    assert max(ranks) <= max(soonest)
    assert sum(ranks[b] - ranks[a] for a, b in edges) <= sum(soonest[b] - soonest[a] for a, b in edges)


def test_a_source_stands_beside_what_needs_it() -> None:
    chain = [(0, 1), (1, 2), (2, 3)]
    assert balanced(5, [*chain, (4, 3)]) == [0, 1, 2, 3, 2]


def test_a_group_moves_together() -> None:
    """Three parts of one thing, needed late: they come along with what they are made of, which alone could not move."""
    late = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert balanced(9, [*late, (6, 7), (6, 8), (7, 5), (8, 5)])[6:] == [3, 4, 4]


def test_a_crowded_column_gives_to_others_where_no_line_gets_longer() -> None:
    chain = [(number, number + 1) for number in range(9)]
    loose = [edge for vertex in range(10, 50) for edge in ((0, vertex), (vertex, 9))]
    held = [balanced(50, [*chain, *loose]).count(rank) for rank in range(10)]
    assert earliest(50, [*chain, *loose]).count(1) == 41
    assert max(held) <= 12


def test_an_order_has_every_vertex_and_breaks_a_cycle_at_its_smallest() -> None:
    assert in_order(4, [(2, 1), (1, 3), (3, 2)]) == [0, 1, 3, 2]
    assert not is_acyclic(4, [(2, 1), (1, 3), (3, 2)])
    assert is_acyclic(3, [(2, 1), (1, 0)])
    assert forward(3, [(0, 1), (1, 2), (2, 0)]) == [(0, 1), (1, 2), (0, 2)]


def test_parts_are_what_hangs_together() -> None:
    assert parts(6, [(4, 1), (2, 5), (5, 4)]) == [[0], [1, 2, 4, 5], [3]]


def test_drawings_are_packed_in_rows() -> None:
    spots = [(0.0, 0.0), (110.0, 0.0), (0.0, 60.0), (110.0, 60.0)]
    assert packed([(100, 50), (100, 50), (100, 50), (100, 50)], 10) == (spots, (210, 110))
    assert packed([], 10) == ([], (0, 0))


@pytest.mark.parametrize(("least_wide", "across"), [(0, 3), (900, 8), (99_999, 10)])
def test_a_grid_is_as_wide_as_what_stands_above_it(least_wide: float, across: int) -> None:
    spots, _ = grid([(100, 60)] * 10, (10, 10), least_wide)
    assert sum(y == 0 for _, y in spots) == across
