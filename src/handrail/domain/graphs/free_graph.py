"""Converts a graph that is not a plan between its rows and its value: now, at an earlier version, and the rows that a
change writes. No rules.

A change writes and removes the rows that differ, in one event in the graph's own stream; an old version is rebuilt from
these events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.graphs.diff import differs
from handrail.domain.graphs.graph import Edge, Graph, Node
from handrail.domain.graphs.history import Past, VersionEvent, made_by
from handrail.domain.graphs.records import GraphEdge, GraphNode, SharedGraph, graph_stream, member_id
from handrail.kernel.json_values import same_json
from handrail.kernel.records import Record, UnitOfWork, where

CREATED, COMMITTED = "graph.created", "graph.committed"
_ROWS: dict[str, frozenset[str]] = {
    "graph": frozenset(("name", "metadata")),
    "graph_node": frozenset(("key", "label", "attributes")),
    "graph_edge": frozenset(("key", "source", "target", "label", "said")),
}
"""For each table that stores such graphs, the columns that belong to the graph's value."""


class Differing(NamedTuple):
    """The rows in which two graphs differ."""

    puts: list[Record]
    removes: list[Record]


def stored(unit: UnitOfWork, shared: SharedGraph) -> Graph:
    """The graph as it is now."""
    nodes = unit.select(GraphNode, where(graph_id=shared.id))
    edges = unit.select(GraphEdge, where(graph_id=shared.id))
    return Graph(
        name=shared.name,
        nodes={one.key: Node(label=one.label, attributes=one.attributes) for one in nodes},
        edges={one.key: _edge(one.source, one.target, one.label, one.said) for one in edges},
        metadata=shared.metadata,
    )


def made_at(unit: UnitOfWork, graph_id: str, version: int) -> VersionEvent[Graph] | None:
    """How a version was made: its event, and the graph before and after it; None if no event made it."""
    past = Past(_ROWS)
    return made_by(unit, graph_stream(graph_id), version, past, lambda _: _graph_from_rows(graph_id, past.rows))


def _graph_from_rows(graph_id: str, rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Graph:
    own = rows["graph"].get(graph_id, {})
    nodes = sorted(rows["graph_node"].items())
    edges = sorted(rows["graph_edge"].items())
    return Graph(
        name=own.get("name", ""),
        nodes={one["key"]: Node(label=one["label"], attributes=one["attributes"]) for _, one in nodes},
        edges={one["key"]: _edge(one["source"], one["target"], one["label"], one["said"]) for _, one in edges},
        metadata=own.get("metadata", {}),
    )


def _edge(source: str, target: str, label: str, said: Mapping[str, Any]) -> Edge:
    return Edge(
        source=source,
        target=target,
        label=label,
        weight=said.get("weight"),
        attributes=said.get("attributes", {}),
    )


def differing_rows(graph_id: str, before: Graph, after: Graph) -> Differing:
    """The rows to write and to remove to turn one graph into the other."""
    puts: list[Record] = [_node_row(graph_id, key, node) for key, node in _added_or_changed(before.nodes, after.nodes)]
    puts += [_edge_row(graph_id, key, edge) for key, edge in _added_or_changed(before.edges, after.edges)]
    removes: list[Record] = [_node_row(graph_id, key, node) for key, node in _removed(before.nodes, after.nodes)]
    removes += [_edge_row(graph_id, key, edge) for key, edge in _removed(before.edges, after.edges)]
    return Differing(puts, removes)


def write_new(unit: UnitOfWork, shared: SharedGraph, graph: Graph, data: Mapping[str, Any]) -> None:
    """Records a new graph."""
    unit.record(CREATED, shared, *differing_rows(shared.id, Graph(), graph).puts, data=data)


def write_change(
    unit: UnitOfWork, shared: SharedGraph, before: Graph, after: Graph, data: Mapping[str, Any]
) -> SharedGraph | None:
    """Records the differences as the next version; None if there are none."""
    rows = differing_rows(shared.id, before, after)
    is_said_anew = before.name != after.name or not same_json(before.metadata, after.metadata)
    if not (rows.puts or rows.removes or is_said_anew):
        return None
    changed = msgspec.structs.replace(
        shared, name=after.name, metadata=after.metadata, version=shared.version + 1, committed_at=unit.now_ms()
    )
    unit.record(COMMITTED, changed, *rows.puts, removes=rows.removes, data=data)
    return changed


def _added_or_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, one in after.items():
        if key not in before or differs(before[key], one):
            yield key, one


def _removed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return ((key, one) for key, one in before.items() if key not in after)


def _node_row(graph_id: str, key: str, node: Node) -> GraphNode:
    return GraphNode(
        id=member_id(graph_id, key), graph_id=graph_id, key=key, label=node.label, attributes=node.attributes
    )


def _edge_row(graph_id: str, key: str, edge: Edge) -> GraphEdge:
    said: dict[str, Any] = {"attributes": edge.attributes} if edge.attributes else {}
    if edge.weight is not None:
        said["weight"] = edge.weight
    return GraphEdge(
        id=member_id(graph_id, key),
        graph_id=graph_id,
        key=key,
        source=edge.source,
        target=edge.target,
        label=edge.label,
        said=said,
    )
