"""The rules that a graph declares for itself in its metadata: no cycles, labels, ports, degrees. Pure.

`dag` (or `enforce_dag`, or `graph_kind: "dag"`), `require_labels`, `require_edge_labels`, `require_ports` (an edge says
`from_port` and `to_port`), `max_in_degree`, `max_out_degree`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from handrail.domain.graphs.graph import Graph
from handrail.domain.work.plan import find_cycle
from handrail.kernel.errors import GraphInvalid

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
