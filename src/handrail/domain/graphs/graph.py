"""A graph as a value: nodes and edges by id, and their attributes. Nothing here is changed in place.

As a document a graph is keyed by ids too (`document_of`), so that a pointer such as `/nodes/build/label` means the same
node whatever was added before it.

The rules that a graph declares for itself in its metadata: no cycles, labels, ports, degrees. Pure.

`dag` (or `enforce_dag`, or `graph_kind: "dag"`), `require_labels`, `require_edge_labels`, `require_ports` (an edge says
`from_port` and `to_port`), `max_in_degree`, `max_out_degree`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from handrail.domain.work.plan import find_cycle
from handrail.kernel.errors import GraphInvalid, PatchFailed

Scalar = str | int | float | bool
GraphId = Annotated[str, Meta(min_length=1, max_length=120)]
NodeId = Annotated[str, Meta(min_length=1, max_length=200)]
Label = Annotated[str, Meta(max_length=400)]

MOST_NODES = 20_000
MOST_EDGES = 60_000
MOST_ATTRIBUTES = 64
"""The most attributes of one node or edge, and the most entries in the metadata."""
LONGEST_TEXT = 4000
"""The most characters in an attribute."""
ARROW = "->"
PART_OF = "part_of"
"""The label of an edge from a task to a part of it."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One node."""

    label: Label = ""
    attributes: dict[str, Scalar] = {}


class Edge(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename={"source": "from", "target": "to"},
):
    """One edge, from a node to another."""

    source: NodeId
    target: NodeId
    label: Label = ""
    weight: float | None = None
    attributes: dict[str, Scalar] = {}


class Graph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A graph at one moment."""

    name: Annotated[str, Meta(max_length=400)] = ""
    nodes: dict[NodeId, Node] = {}
    edges: dict[str, Edge] = {}
    metadata: dict[str, Scalar] = {}


msgspec.json.Decoder(Graph)  # makes the type known to msgspec before several threads convert


def edge_id(source: str, target: str, label: str = "") -> str:
    """The default id of an edge."""
    return f"{source}{ARROW}{target}#{label}" if label else f"{source}{ARROW}{target}"


def document_of(graph: Graph) -> dict[str, Any]:
    """The graph as plain JSON values, keyed by ids: the form that patches and differences refer to."""
    document: dict[str, Any] = msgspec.to_builtins(graph)
    return document


def graph_from(document: Any) -> Graph:
    """The graph that a document describes. Raises PatchFailed if it describes none."""
    try:
        graph = msgspec.convert(document, Graph)
    except msgspec.ValidationError as wrong:
        raise PatchFailed(
            f"what came out is no graph: {wrong}",
            hint="a graph has name, nodes {id: {label, attributes}}, edges {id: {from, to, label, weight, attributes}} "
            "and metadata; attributes are texts, numbers, true and false",
        ) from None
    check_sound(graph)
    return graph


def check_sound(graph: Graph) -> None:
    """Refuses a malformed graph: dangling edges, too many nodes or edges, oversized attributes."""
    for what, found, most in (("nodes", len(graph.nodes), MOST_NODES), ("edges", len(graph.edges), MOST_EDGES)):
        if found > most:
            raise GraphInvalid(f"{found} {what}", hint=f"{most} is the most a graph has", rule="size")
    for key, edge in graph.edges.items():
        for end in (edge.source, edge.target):
            if end not in graph.nodes:
                raise GraphInvalid(
                    f"edge {key} leads from or to {end}, which is no node",
                    hint="add the node first, or leave the edge out",
                    rule="ends",
                    edge=key,
                )
    _check_said("the metadata", graph.metadata)
    for key, node in graph.nodes.items():
        if node.attributes:
            _check_said(f"node {key}", node.attributes)
    for key, edge in graph.edges.items():
        if edge.attributes:
            _check_said(f"edge {key}", edge.attributes)


def _check_said(what: str, attributes: Mapping[str, Scalar]) -> None:
    if len(attributes) > MOST_ATTRIBUTES:
        raise GraphInvalid(
            f"{what}: {len(attributes)} attributes", hint=f"{MOST_ATTRIBUTES} is the most", rule="attributes"
        )
    for name, value in attributes.items():
        if len(name) > 200 or (isinstance(value, str) and len(value) > LONGEST_TEXT):
            raise GraphInvalid(
                f"{what}: the attribute {name[:40]} is too long",
                hint=f"names have at most 200 characters, texts {LONGEST_TEXT}",
                rule="attributes",
            )
        if isinstance(value, float) and value - value != 0:  # JSON has neither infinity nor NaN
            raise GraphInvalid(
                f"{what}: the attribute {name} is not a number", hint="give a finite one", rule="attributes"
            )


SHOWN = 20
PORTS = ("from_port", "to_port")


class Broken(msgspec.Struct, frozen=True, omit_defaults=True):
    """One rule that is broken, and where."""

    rule: str
    message: str
    hint: str
    nodes: list[str] = []
    edges: list[str] = []


def check_invariants(graph: Graph) -> None:
    """Refuses a graph that breaks one of its rules, and names them all."""
    broken = list(broken_rules(graph))
    if broken:
        first = broken[0]
        more = f"; {len(broken) - 1} more rules are broken" if len(broken) > 1 else ""
        raise GraphInvalid(
            f"{first.message}{more}",
            hint=first.hint,
            rule=first.rule,
            broken=[msgspec.to_builtins(one) for one in broken],
        )


def broken_rules(graph: Graph) -> Iterator[Broken]:
    """Every rule that the graph declares and breaks."""
    said = graph.metadata
    if _is_acyclic_by_rule(graph) and (cycle := _a_cycle(graph)):
        way = " → ".join([*cycle, cycle[0]][: SHOWN + 1])
        yield Broken("dag", f"the graph would have a cycle: {way}", "remove one of these edges", cycle)
    if said.get("require_labels") is True:
        bare = [key for key, node in graph.nodes.items() if not node.label.strip()]
        if bare:
            yield Broken(
                "require_labels", f"{len(bare)} nodes have no label: {_listed(bare)}", "label them", bare[:SHOWN]
            )
    if said.get("require_edge_labels") is True:
        bare = [key for key, edge in graph.edges.items() if not edge.label.strip()]
        if bare:
            hint = "label them"
            yield Broken(
                "require_edge_labels", f"{len(bare)} edges have no label: {_listed(bare)}", hint, [], bare[:SHOWN]
            )
    if said.get("require_ports") is True:
        bare = [key for key, edge in graph.edges.items() if any(not edge.attributes.get(port) for port in PORTS)]
        if bare:
            hint = f"set {' and '.join(PORTS)} of each"
            yield Broken("require_ports", f"{len(bare)} edges name no ports: {_listed(bare)}", hint, [], bare[:SHOWN])
    yield from _degrees(graph)


def _degrees(graph: Graph) -> Iterator[Broken]:
    for rule, ends in (
        ("max_in_degree", [edge.target for edge in graph.edges.values()]),
        ("max_out_degree", [edge.source for edge in graph.edges.values()]),
    ):
        most = graph.metadata.get(rule)
        if isinstance(most, bool) or not isinstance(most, int | float):
            continue
        over = [key for key, count in Counter(ends).items() if count > most]
        if over:
            way = "into" if rule == "max_in_degree" else "out of"
            yield Broken(
                rule, f"more than {most:g} edges lead {way} {_listed(over)}", "remove some of them", over[:SHOWN]
            )


def _is_acyclic_by_rule(graph: Graph) -> bool:
    said = graph.metadata
    return said.get("dag") is True or said.get("enforce_dag") is True or said.get("graph_kind") == "dag"


def _a_cycle(graph: Graph) -> list[str]:
    """The nodes of one cycle, in order; empty if there is none."""
    following: dict[str, list[str]] = {key: [] for key in graph.nodes}
    for edge in graph.edges.values():
        following[edge.source].append(edge.target)
    return find_cycle(following)[:-1]


def _listed(keys: list[str]) -> str:
    return ", ".join(keys[:3]) + (" …" if len(keys) > 3 else "")
