"""Changes to graphs, their differences and their invariants: against plain examples, and against each other."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.graphs.diff import difference, summary_of
from handrail.domain.graphs.graph import (
    Edge,
    Graph,
    Node,
    Scalar,
    broken_rules,
    check_invariants,
    document_of,
    graph_from,
)
from handrail.domain.graphs.json_patch import patched
from handrail.domain.graphs.mutations import Applied, Mutated, Mutation, mutate
from handrail.kernel.errors import GraphInvalid, PatchFailed


def changed(graph: Graph, *operations: dict[str, Any]) -> Mutated:
    return mutate(graph, msgspec.convert(list(operations), list[Mutation]))


def chain(*names: str) -> Graph:
    nodes = {name: Node(label=name.upper()) for name in names}
    edges = {f"{one}->{two}": Edge(source=one, target=two) for one, two in pairwise(names)}
    return Graph(name="a chain", nodes=nodes, edges=edges)


def edges_of(graph: Graph) -> set[str]:
    return set(graph.edges)


def test_nodes_and_edges_come_and_go() -> None:
    made = changed(
        Graph(),
        {"op": "add_node", "id": "a", "label": "A"},
        {"op": "add_node", "id": "b"},
        {"op": "add_edge", "from": "a", "to": "b", "weight": 2},
        {"op": "add_edge", "from": "a", "to": "b", "label": "feeds"},
    )
    assert edges_of(made.graph) == {"a->b", "a->b#feeds"}
    assert made.applied[2] == Applied("add_edge", "added edge a->b", True)
    gone = changed(made.graph, {"op": "remove_node", "id": "a"})
    assert (list(gone.graph.nodes), gone.graph.edges) == (["b"], {})
    assert gone.applied[0].description == "removed node a and 2 edges"
    assert set(made.graph.nodes) == {"a", "b"}, "what was given stays as it was"


def test_a_renamed_node_takes_its_edges_along() -> None:
    renamed = changed(chain("a", "b", "c"), {"op": "rename_node", "id": "b", "new_id": "x", "label": "X"}).graph
    assert list(renamed.nodes) == ["a", "x", "c"]
    assert renamed.nodes["x"].label == "X"
    assert edges_of(renamed) == {"a->x", "x->c"}


def test_an_edge_with_an_id_of_its_own_keeps_it() -> None:
    graph = changed(chain("a", "b"), {"op": "add_edge", "id": "mine", "from": "b", "to": "a"}).graph
    renamed = changed(graph, {"op": "rename_node", "id": "b", "new_id": "x"}).graph
    assert edges_of(renamed) == {"a->x", "mine"}
    assert renamed.edges["mine"].source == "x"


def test_attributes_are_set_and_taken_away_and_only_a_difference_counts() -> None:
    graph = changed(chain("a", "b"), {"op": "set_node_attribute", "id": "a", "key": "days", "value": 1}).graph
    again = changed(graph, {"op": "set_node_attribute", "id": "a", "key": "days", "value": 1})
    assert (again.applied[0].changed, again.graph == graph) == (False, True)
    assert changed(graph, {"op": "set_node_attribute", "id": "a", "key": "days", "value": True}).applied[0].changed
    assert changed(graph, {"op": "set_node_attribute", "id": "a", "key": "days", "value": None}).graph == chain(
        "a", "b"
    )
    heavy = changed(graph, {"op": "set_edge_attribute", "from": "a", "to": "b", "key": "weight", "value": 3}).graph
    assert heavy.edges["a->b"].weight == 3.0
    said = changed(graph, {"op": "patch_metadata", "set": {"dag": True}}).graph
    assert changed(said, {"op": "patch_metadata", "unset": ["dag"]}).graph == graph


def test_rewrites() -> None:
    graph = chain("a", "b", "c")
    split = changed(
        graph, {"op": "rewrite", "rule": "split_parallel", "node": "b", "parts": [{"id": "x"}, {"id": "y"}]}
    )
    assert edges_of(split.graph) == {"a->x", "a->y", "x->c", "y->c"}
    inner = {"parts": [{"id": "x"}, {"id": "y"}], "edges": [{"from": "x", "to": "y"}]}
    inlined = changed(graph, {"op": "rewrite", "rule": "inline_subgraph", "node": "b", **inner}).graph
    assert edges_of(inlined) == {"a->x", "x->y", "y->c"}
    around = changed(graph, {"op": "rewrite", "rule": "reroute_avoid", "node": "b"}).graph
    assert (edges_of(around), list(around.nodes)) == ({"a->c"}, ["a", "b", "c"])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a node twice": ({"op": "add_node", "id": "a"}, "already there"),
    "no such node": ({"op": "remove_node", "id": "z"}, "no node z"),
    "a new id that is taken": ({"op": "rename_node", "id": "a", "new_id": "b"}, "already there"),
    "an edge to nowhere": ({"op": "add_edge", "from": "a", "to": "z"}, "no node z"),
    "an edge twice": ({"op": "add_edge", "from": "a", "to": "b"}, "already there"),
    "no such edge": ({"op": "remove_edge", "from": "b", "to": "a"}, "no edge b->a"),
    "an edge nobody names": ({"op": "remove_edge"}, "no edge is named"),
    "a weight that is none": (
        {"op": "set_edge_attribute", "id": "a->b", "key": "weight", "value": "heavy"},
        "a weight is a number",
    ),
    "set and unset": ({"op": "patch_metadata", "set": {"x": 1}, "unset": ["x"]}, "both set and unset"),
    "no parts": ({"op": "rewrite", "rule": "split_parallel", "node": "a"}, "needs parts"),
    "a part that is there": (
        {"op": "rewrite", "rule": "split_parallel", "node": "a", "parts": [{"id": "b"}]},
        "already there",
    ),
    "an infinite attribute": (
        {"op": "set_node_attribute", "id": "a", "key": "x", "value": float("inf")},
        "is not a number",
    ),
    "a text without end": ({"op": "set_node_attribute", "id": "a", "key": "x", "value": "y" * 5000}, "too long"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_refused_whole(name: str) -> None:
    operation, why = REFUSED[name]
    graph = chain("a", "b")
    with pytest.raises(GraphInvalid) as refused:
        changed(graph, {"op": "add_node", "id": "new"}, operation)
    assert why in refused.value.message
    assert graph == chain("a", "b")


def test_of_several_edges_between_two_nodes_one_must_be_named() -> None:
    graph = changed(chain("a", "b"), {"op": "add_edge", "from": "a", "to": "b", "label": "feeds"}).graph
    with pytest.raises(GraphInvalid, match="2 edges lead from a to b"):
        changed(graph, {"op": "remove_edge", "from": "a", "to": "b"})
    assert edges_of(changed(graph, {"op": "remove_edge", "from": "a", "to": "b", "label": "feeds"}).graph) == {"a->b"}


# -- invariants -------------------------------------------------------------------------------------------------------

RULES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "dag": ({"dag": True}, [{"op": "add_edge", "from": "c", "to": "a"}]),
    "require_labels": ({"require_labels": True}, [{"op": "add_node", "id": "d"}]),
    "require_edge_labels": ({"require_edge_labels": True}, []),
    "require_ports": ({"require_ports": True}, []),
    "max_in_degree": ({"max_in_degree": 1}, [{"op": "add_edge", "from": "a", "to": "c"}]),
    "max_out_degree": ({"max_out_degree": 1}, [{"op": "add_edge", "from": "a", "to": "c"}]),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_holds_only_where_the_metadata_has_it(rule: str) -> None:
    metadata, operations = RULES[rule]
    free = changed(chain("a", "b", "c"), *operations).graph
    assert list(broken_rules(free)) == []
    bound = changed(free, {"op": "patch_metadata", "set": metadata}).graph
    with pytest.raises(GraphInvalid) as refused:
        check_invariants(bound)
    assert refused.value.details["rule"] == rule


def test_a_cycle_is_named() -> None:
    rule = {"op": "patch_metadata", "set": {"dag": True}}
    graph = changed(chain("a", "b", "c", "d"), {"op": "add_edge", "from": "c", "to": "b"}, rule).graph
    (broken,) = broken_rules(graph)
    assert (broken.nodes, broken.message) == (["b", "c"], "the graph would have a cycle: b → c → b")
    alone = changed(chain("a"), {"op": "add_edge", "from": "a", "to": "a"}, rule).graph
    (broken,) = broken_rules(alone)
    assert (broken.nodes, broken.message) == (["a"], "the graph would have a cycle: a → a")


# -- differences ------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c/d", "e~f"])
VALUES: st.SearchStrategy[Scalar] = st.sampled_from([True, 1, 0, 1.5, "x"])
ATTRIBUTES = st.dictionaries(st.sampled_from(["k", "a/b"]), VALUES, max_size=2)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    nodes = draw(st.dictionaries(NAMES, st.builds(Node, label=st.sampled_from(["", "L"]), attributes=ATTRIBUTES)))
    ends = st.sampled_from(sorted(nodes)) if nodes else st.nothing()
    edges = st.builds(
        Edge, source=ends, target=ends, weight=st.none() | st.just(2.0), attributes=ATTRIBUTES, label=st.just("")
    )
    keyed = draw(st.dictionaries(st.sampled_from(["e1", "a->b", "x/y"]), edges)) if nodes else {}
    return Graph(name=draw(st.sampled_from(["", "n"])), nodes=nodes, edges=keyed, metadata=draw(ATTRIBUTES))


@given(graphs(), graphs())
def test_a_difference_leads_from_one_graph_to_the_other(one: Graph, other: Graph) -> None:
    operations = difference(one, other)
    document = patched(document_of(one), operations)
    assert msgspec.json.encode(document, order="sorted") == msgspec.json.encode(document_of(other), order="sorted")
    assert graph_from(document) == other
    summary = summary_of(one, other)
    told = (summary.name_changed, summary.metadata_changed, summary.nodes_changed, summary.edges_changed)
    assert any(told) == bool(operations)


@given(graphs())
def test_a_graph_does_not_differ_from_itself(graph: Graph) -> None:
    assert difference(graph, graph_from(document_of(graph))) == []


def test_one_change_of_many_nodes_is_one_operation() -> None:
    graph = chain(*(f"n{number}" for number in range(500)))
    renamed = changed(graph, {"op": "rename_node", "id": "n7", "label": "seven"}).graph
    assert difference(graph, renamed) == [{"op": "replace", "path": "/nodes/n7/label", "value": "seven"}]


@pytest.mark.parametrize(
    "document",
    [None, [], {"nodes": []}, {"nodes": {"a": {"label": 7}}}, {"edges": {"e": {"from": "a"}}}, {"other": 1}],
)
def test_what_is_no_graph_is_refused(document: Any) -> None:
    with pytest.raises(PatchFailed):
        graph_from(document)


def test_an_edge_to_nowhere_is_no_graph() -> None:
    with pytest.raises(GraphInvalid, match="which is no node"):
        graph_from({"nodes": {"a": {}}, "edges": {"e": {"from": "a", "to": "b"}}})
