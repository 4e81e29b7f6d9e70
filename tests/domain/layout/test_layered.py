"""Whole drawings: small ones to the pixel, large ones by what must be true of every drawing."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.layout.layered import Box, Layout, LineRoute, lay_out
from tests.domain.layout.geometry import BOX, boxes, crossings, out_of_sheet, overlaps, plan, through_boxes

NAMES = [f"n{number:02d}" for number in range(14)]


def test_nothing_is_an_empty_sheet() -> None:
    assert lay_out([], []) == Layout(0, 0, {}, [], 0)


def test_one_box_is_the_sheet() -> None:
    assert lay_out(boxes("a"), [("a", "a"), ("a", "gone")]) == Layout(190, 44, {"a": (0, 0)}, [], 0)


def test_a_chain_is_one_level_line() -> None:
    drawn = lay_out(boxes("a", "b", "c"), [("a", "b"), ("b", "c"), ("a", "c")])
    assert drawn.places == {"a": (0, 0), "b": (239.5, 0), "c": (479, 0)}
    assert drawn.routes == [
        LineRoute("a", "b", [(190, 22), (239.5, 22)]),
        LineRoute("b", "c", [(429.5, 22), (479, 22)]),
    ]
    assert (drawn.width, drawn.height, drawn.crossings) == (669, 44, 0)


def test_a_fork_stands_around_what_it_comes_from() -> None:
    drawn = lay_out(boxes("a", "b", "c", "d"), [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    assert drawn.places == {"a": (0, 29), "b": (241, 0), "c": (241, 58), "d": (482, 29)}
    assert drawn.routes[1] == LineRoute("a", "c", [(190, 51), (241, 80)])
    assert (drawn.width, drawn.height, drawn.crossings) == (672, 102, 0)


def test_a_long_line_passes_a_column_level_and_beside_its_boxes() -> None:
    drawn = lay_out(
        boxes("a", "b", "c", "d", "e"), [("a", "b"), ("b", "c"), ("c", "e"), ("a", "d"), ("d", "e"), ("a", "e")]
    )
    ((_, _, points),) = [route for route in drawn.routes if route[:2] == ("d", "e")]
    assert drawn.places["d"][0] in (drawn.places["b"][0], drawn.places["c"][0])
    assert len({y for _, y in points[:-1]}) == 1
    assert through_boxes(drawn, boxes("a", "b", "c", "d", "e")) == []


def test_an_unequal_box_stands_in_the_middle_of_its_column() -> None:
    drawn = lay_out([Box("a", 100, 44), Box("b", 210, 56), Box("c", 190, 44)], [("a", "b"), ("a", "c")])
    assert drawn.places["c"][0] - drawn.places["b"][0] == 10
    assert {route.target: route.points[-1] for route in drawn.routes}["c"][0] == drawn.places["c"][0]


def test_what_a_longer_way_says_is_not_drawn() -> None:
    drawn = lay_out(boxes(*"abcd"), [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("a", "d"), ("b", "d")])
    assert [route[:2] for route in drawn.routes] == [("a", "b"), ("b", "c"), ("c", "d")]


def test_boxes_without_lines_are_a_grid() -> None:
    nodes = boxes(*(f"{number:03d}" for number in range(500)))
    drawn = lay_out(nodes, [])
    assert overlaps(drawn, nodes) == []
    assert 1.2 < drawn.width / drawn.height < 2
    rows = sorted((y, x) for x, y in drawn.places.values())
    assert [drawn.places[node.id] for node in nodes] == [(x, y) for y, x in rows]


def test_parts_that_nothing_joins_share_the_sheet() -> None:
    names = [f"{number:03d}" for number in range(200)]
    pairs = list(zip(names[::2], names[1::2], strict=True))
    nodes = boxes(*names, "alone")
    drawn = lay_out(nodes, pairs)
    assert overlaps(drawn, nodes) == []
    assert out_of_sheet(drawn, nodes) == []
    assert drawn.height < 2 * drawn.width
    assert drawn.places["alone"][1] == max(y for _, y in drawn.places.values())


def test_a_cycle_is_drawn_with_one_line_back() -> None:
    drawn = lay_out(boxes("a", "b", "c"), [("a", "b"), ("b", "c"), ("c", "a")])
    assert [route[:2] for route in drawn.routes] == [("a", "b"), ("b", "c"), ("c", "a")]
    back = drawn.routes[2].points
    assert back[0][0] > back[-1][0]
    both = lay_out(boxes("a", "b"), [("a", "b"), ("b", "a")])
    assert len(both.routes) == 2


def test_a_drawing_of_a_plan_is_what_it_was_for_any_order_of_its_parts() -> None:
    names, edges = plan(120)
    first = lay_out(boxes(*names), edges)
    chance = random.Random(3)
    chance.shuffle(names)
    chance.shuffle(edges)
    assert lay_out(boxes(*names), edges) == first


@pytest.mark.parametrize(("seed", "most"), [(7, 38), (8, 26), (9, 65)])
def test_a_plan_of_196_tasks_has_few_crossings(seed: int, most: int) -> None:
    names, edges = plan(196, seed)
    assert len(names) == 196
    drawn = lay_out(boxes(*names), edges)
    assert drawn.crossings <= most
    assert crossings(drawn) == drawn.crossings
    assert overlaps(drawn, boxes(*names)) == []
    assert through_boxes(drawn, boxes(*names)) == []
    assert out_of_sheet(drawn, boxes(*names)) == []


def test_a_plan_that_is_too_large_for_finesse_is_drawn_too() -> None:
    names, edges = plan(800)
    drawn = lay_out(boxes(*names), edges)
    assert len(drawn.places) == 800
    assert overlaps(drawn, boxes(*names)) == []
    assert all(
        x0 <= x1 for route in drawn.routes for (x0, _), (x1, _) in zip(route.points, route.points[1:], strict=False)
    )


def test_long_lines_share_their_bends_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    names, edges = plan(196)
    apart = lay_out(boxes(*names), edges)
    monkeypatch.setattr("handrail.domain.layout.columns.MOST_BENDS", 20)
    shared = lay_out(boxes(*names), edges)
    assert [route[:2] for route in shared.routes] == [route[:2] for route in apart.routes]
    assert through_boxes(shared, boxes(*names)) == []
    assert shared.height < apart.height


graphs = st.tuples(
    st.lists(st.sampled_from(NAMES), unique=True, max_size=14),
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=30),
    st.randoms(use_true_random=False),
)


@settings(max_examples=60, deadline=None)
@given(graphs)
def test_every_drawing_is_sound(graph: tuple[list[str], list[tuple[str, str]], random.Random]) -> None:
    """Whatever the graph, cycles and all: it is drawn once and for all, nothing overlaps, every line has its ends."""
    names, edges, chance = graph
    nodes = [Box(name, BOX[0] + 10 * (number % 3), BOX[1] + 6 * (number % 2)) for number, name in enumerate(names)]
    drawn = lay_out(nodes, edges)
    shuffled = chance.sample(nodes, len(nodes)), chance.sample(edges, len(edges))
    assert lay_out(*shuffled) == drawn
    assert overlaps(drawn, nodes) == []
    assert through_boxes(drawn, nodes) == []
    assert out_of_sheet(drawn, nodes) == []
    size = {node.id: (node.width, node.height) for node in nodes}
    for source, target, points in drawn.routes:
        left, right = sorted((source, target), key=lambda name: drawn.places[name])
        ends = points if source == left else points[::-1]
        assert ends[0][0] == pytest.approx(drawn.places[left][0] + size[left][0], abs=0.11)
        assert ends[-1][0] == pytest.approx(drawn.places[right][0], abs=0.11)
        assert ends[0][1] == pytest.approx(drawn.places[left][1] + size[left][1] / 2, abs=0.11)
