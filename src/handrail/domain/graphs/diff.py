"""The difference of two graphs as a JSON Patch, keyed by the ids of nodes and edges, and a count of it. Pure.

Applied to the document of the first graph it gives the document of the second. What is the same is not mentioned: one
renamed node among ten thousand is one operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from handrail.domain.graphs.graph import Graph
from handrail.domain.graphs.json_patch import pointer_to
from handrail.kernel.json_values import same_json

Operation = dict[str, Any]
_WRITTEN = msgspec.json.Encoder()


class DiffSummary(msgspec.Struct, frozen=True, rename="camel"):
    """The differences at a glance."""

    name_changed: bool
    metadata_changed: bool
    nodes_changed: bool
    edges_changed: bool
    nodes_added: int
    nodes_removed: int
    nodes_updated: int
    edges_added: int
    edges_removed: int
    edges_updated: int


def difference(before: Graph, after: Graph) -> list[Operation]:
    """The operations that turn one graph into the other. Edges are removed before their nodes and added after them."""
    if before is after:
        return []
    operations: list[Operation] = []
    if before.name != after.name:
        operations.append({"op": "replace", "path": "/name", "value": after.name})
    operations += _members(("metadata",), before.metadata, after.metadata)
    operations += [*_removals("edges", before.edges, after.edges), *_removals("nodes", before.nodes, after.nodes)]
    operations += [
        *_additions_and_changes("nodes", before.nodes, after.nodes),
        *_additions_and_changes("edges", before.edges, after.edges),
    ]
    return operations


def summary_of(before: Graph, after: Graph) -> DiffSummary:
    nodes, edges = _counts(before.nodes, after.nodes), _counts(before.edges, after.edges)
    return DiffSummary(
        before.name != after.name,
        not same_json(before.metadata, after.metadata),
        any(nodes),
        any(edges),
        *nodes,
        *edges,
    )


def _counts(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[int, int, int]:
    updated = sum(1 for key, one in after.items() if key in before and differs(before[key], one))
    return len(after.keys() - before.keys()), len(before.keys() - after.keys()), updated


def differs(one: Any, other: Any) -> bool:
    """Whether two records are not the same JSON."""
    # Most of a graph that was read again encodes to the same bytes, which is the fastest check.
    if one is other or _WRITTEN.encode(one) == _WRITTEN.encode(other):
        return False
    # Equal records may still differ in JSON, where true is not 1; unequal ones always do.
    return one != other or not same_json(msgspec.to_builtins(one), msgspec.to_builtins(other))


def _removals(part: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Operation]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": pointer_to((part, key))}


def _additions_and_changes(part: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Operation]:
    for key, one in after.items():
        if key not in before:
            yield {"op": "add", "path": pointer_to((part, key)), "value": msgspec.to_builtins(one)}
        elif differs(before[key], one):
            yield from _members((part, key), msgspec.to_builtins(before[key]), msgspec.to_builtins(one))


def _members(way: tuple[str, ...], before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Operation]:
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": pointer_to((*way, name))}
    for name, value in after.items():
        if name not in before:
            yield {"op": "add", "path": pointer_to((*way, name)), "value": value}
        elif isinstance(value, dict) and isinstance(before[name], dict):
            yield from _members((*way, name), before[name], value)
        elif not same_json(before[name], value):
            yield {"op": "replace", "path": pointer_to((*way, name)), "value": value}
