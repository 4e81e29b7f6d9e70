"""The graphs that are measured: groups of tasks that wait for the group before, as plans have them. No store."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.graphs.graph import Edge, Graph, Node, Scalar, edge_id

GROUP = 8
"""Nodes that stand beside each other; each waits for two of the group before."""
RULES: dict[str, Any] = {"dag": True, "require_labels": True}


def graph_of(count: int) -> Graph:
    """A graph of so many nodes, and nearly twice as many edges."""
    nodes = {name(number): _node(number) for number in range(count)}
    edges: dict[str, Edge] = {}
    for number in range(GROUP, count):
        first = (number // GROUP - 1) * GROUP
        for need in (first, first + 1):
            edges[edge_id(name(need), name(number))] = Edge(source=name(need), target=name(number))
    return Graph(name="measured", nodes=nodes, edges=edges, metadata=RULES)


def name(number: int) -> str:
    return f"node_{number:06}"


def _node(number: int) -> Node:
    said: dict[str, Scalar] = {
        "priority": number % 5,
        "complexity": "medium",
        "description": f"Move importer {number} to the queue",
    }
    return Node(label=f"importer {number}", attributes=said)


def with_other_nodes(graph: Graph, count: int) -> Graph:
    """The graph with so many nodes labelled anew, all over it."""
    keys = list(graph.nodes)
    chosen = keys[:: max(1, len(keys) // count)][:count]
    other = {key: msgspec.structs.replace(graph.nodes[key], label="another label") for key in chosen}
    return msgspec.structs.replace(graph, nodes={**graph.nodes, **other})
