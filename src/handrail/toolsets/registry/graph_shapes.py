"""What the tools that change graphs take and return, and how graphs are cut to the size of a reply. Types and their
construction; the domain defines what a graph is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.graphs.diff import DiffSummary
from handrail.domain.graphs.graph import Edge, Graph, GraphId, Label, Node, NodeId, edge_id, graph_from
from handrail.domain.graphs.graph_access import Committed
from handrail.domain.graphs.mutations import MOST_OPERATIONS, Applied
from handrail.domain.graphs.transactions import TransactionCaller
from handrail.domain.registry.addresses import graph as graph_address
from handrail.domain.registry.graphs import NormalisedGraph, normalised
from handrail.domain.reply_size import within
from handrail.kernel.errors import GraphInvalid
from handrail.operation import Call

GRAPH_ROOM = 2_500
"""Bytes for a graph in a reply that was not asked to include it."""
LIST_ROOM = 1_800
"""Bytes for each list in such a reply."""
MOST = 2**53

Version = Annotated[int, Meta(ge=0, le=MOST)]
Owner = Annotated[str, Meta(min_length=1, max_length=120)]
Note = Annotated[str, Meta(max_length=240)]
TxId = Annotated[str, Meta(min_length=1, max_length=200)]
Operations = Annotated[
    list[dict[str, Any]],
    Meta(
        min_length=1,
        max_length=MOST_OPERATIONS,
        description="{op, …}: add_node {id, label, attributes}, remove_node {id}, rename_node {id, label, new_id}, "
        "add_edge {from, to, label}, remove_edge {from, to}, set_node_attribute {id, key, value}, "
        "set_edge_attribute {from, to, key, value}, patch_metadata {set, unset}, "
        "rewrite {rule: split_parallel|inline_subgraph|reroute_avoid, node, parts, edges}",
    ),
]
Said = dict[str, Any]
"""Attributes, published without the four types that a value may have; `graph_given` refuses others."""
AnyGraphId = Annotated[GraphId, Meta(description="Or a workflow's id: its plan")]
IncludeGraph = Annotated[bool, Meta(description="The graph however large")]


class Sized(msgspec.Struct, frozen=True, kw_only=True):
    """How large a graph is, where it can be read, and all of it where it is short or was asked for."""

    nodes: int
    edges: int
    uri: str
    graph: NormalisedGraph | UnsetType = UNSET


class Invariants(msgspec.Struct, frozen=True):
    """Whether a graph keeps its rules, and which it breaks."""

    ok: bool
    broken: list[dict[str, Any]]


class NodeGiven(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node of a new graph."""

    id: NodeId
    label: Label = ""
    attributes: Said = {}


class EdgeGiven(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}
):
    """An edge of a new graph."""

    source: NodeId
    target: NodeId
    label: Label = ""
    id: Annotated[str, Meta(min_length=1, max_length=1000)] | None = None
    weight: float | None = None
    attributes: Said = {}


class Changed(Sized, frozen=True, kw_only=True):
    """What a commit did."""

    graph_id: str
    changed: bool
    committed_at: int | None
    created: dict[str, str] | UnsetType = UNSET
    """New tasks of a plan: the id given, and the task's."""
    created_total: int | UnsetType = UNSET
    """Where not all are shown."""
    skipped: list[str] | UnsetType = UNSET
    """Tasks that were left out and are kept as skipped, since work was recorded on them."""


def caller_of(call: Call, named: str | None = None) -> TransactionCaller:
    """The caller."""
    return TransactionCaller(call.work.actor.name, named, call.writer.fence)


def sized(graph_id: str, version: int, graph: Graph, *, whole: bool) -> dict[str, Any]:
    """The members of `Sized`."""
    members: dict[str, Any] = {
        "nodes": len(graph.nodes),
        "edges": len(graph.edges),
        "uri": graph_address(graph_id).uri,
    }
    small = len(graph.nodes) + len(graph.edges) < GRAPH_ROOM // 20
    if whole or small:
        shown = normalised(graph_id, version, graph)
        if whole or len(msgspec.json.encode(shown)) <= GRAPH_ROOM:
            members["graph"] = shown
    return members


def changed_part(graph_id: str, done: Committed, *, whole: bool) -> dict[str, Any]:
    """The members of `Changed`."""
    members: dict[str, Any] = {"graph_id": graph_id, "changed": done.changed, "committed_at": done.committed_at}
    if done.created:
        shown = within(list(done.created.items()), LIST_ROOM)
        members["created"] = dict(shown)
        if len(shown) < len(done.created):
            members["created_total"] = len(done.created)
    if done.skipped:
        members["skipped"] = within(done.skipped, LIST_ROOM)
    return {**members, **sized(graph_id, done.version, done.graph, whole=whole)}


def graph_given(name: str, nodes: Sequence[NodeGiven], edges: Sequence[EdgeGiven], said: Said) -> Graph:
    """The graph described by lists of nodes and edges."""
    for attributes in (said, *(node.attributes for node in nodes), *(edge.attributes for edge in edges)):
        _check_plain(attributes)
    by_id: dict[str, Node] = {}
    for node in nodes:
        if node.id in by_id:
            raise GraphInvalid(f"two nodes have the id {node.id}", hint="give each its own", rule="id", node=node.id)
        by_id[node.id] = Node(label=node.label, attributes=node.attributes)
    ways: dict[str, Edge] = {}
    for edge in edges:
        key = edge.id or edge_id(edge.source, edge.target, edge.label)
        if key in ways:
            raise GraphInvalid(f"two edges have the id {key}", hint="give one another id", rule="id", edge=key)
        ways[key] = Edge(
            source=edge.source, target=edge.target, label=edge.label, weight=edge.weight, attributes=edge.attributes
        )
    return Graph(name=name, nodes=by_id, edges=ways, metadata=said)


def _check_plain(attributes: Said) -> None:
    for name, value in attributes.items():
        if not isinstance(value, str | int | float | bool):
            raise GraphInvalid(
                f"the attribute {name[:40]} is not text, a number, true or false",
                hint="write it as a text, or leave it out",
                rule="attributes",
            )


def graph_in(document: Mapping[str, Any]) -> Graph:
    """The graph that an object describes: keyed by ids, or with lists in the form that addresses show."""
    whole = {name: value for name, value in document.items() if name not in ("graphId", "graphVersion")}
    for part in ("nodes", "edges"):
        if isinstance(whole.get(part), list):
            whole[part] = _by_id(whole[part])
    return graph_from(whole)


def _by_id(members: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in members:
        if not isinstance(one, dict):
            raise GraphInvalid("a node or edge is no object", hint="nodes have id, edges from and to", rule="graph")
        key = one.get("id") or edge_id(str(one.get("from")), str(one.get("to")), str(one.get("label", "")))
        found[str(key)] = {name: value for name, value in one.items() if name != "id"}
    return found


def applied_part(applied: Sequence[Applied]) -> dict[str, Any]:
    """What changes did, as far as it fits; `applied_total` if not everything is shown."""
    shown = within(applied, LIST_ROOM)
    return {"applied": tuple(shown), **({"applied_total": len(applied)} if len(shown) < len(applied) else {})}


def diff_part(operations: Sequence[dict[str, Any]], summary: DiffSummary) -> dict[str, Any]:
    """The differences, as far as they fit; `diff_total` if not all are shown."""
    shown = within(operations, LIST_ROOM) if not operations or _is_small(operations[0]) else []
    total = {"diff_total": len(operations)} if len(shown) < len(operations) else {}
    return {"diff": tuple(shown), "diff_summary": summary, **total}


def _is_small(operation: Mapping[str, Any]) -> bool:
    return len(msgspec.json.encode(operation)) <= LIST_ROOM
