"""Graphs as they are stored: the graph, each of its nodes and edges, and the transactions that change it. No behaviour.

A node and an edge are rows of their own, so that a change costs what it changes: its event carries the rows that
differ, and an old version is told again from events, as it is with plans. The graph of a workflow's plan is not kept
here: it is the plan (`plan_graph.py`).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from handrail.kernel.machine import Machine

TX_MACHINE = Machine("transaction", {"pending": ("committed", "rolled_back"), "committed": (), "rolled_back": ()})
STREAM = "gr:"
"""The prefix of graph streams."""


def graph_stream(graph_id: str) -> str:
    return f"{STREAM}{graph_id}"


def member_id(graph_id: str, key: str) -> str:
    """The id of a node's or edge's row. Its two parts stay distinguishable whatever characters they contain."""
    return f"{quote(graph_id, safe='')}/{key}"


class SharedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph that is not a plan. Its version starts at 1 and counts committed changes."""

    id: str
    name: str
    version: int
    metadata: dict[str, Any]
    repository_path: str | None
    created_by: str
    created_at: int
    committed_at: int

    @property
    def stream(self) -> str:
        return graph_stream(self.id)


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a shared graph."""

    id: str
    graph_id: str
    key: str
    label: str
    attributes: dict[str, Any]

    @property
    def stream(self) -> str:
        return graph_stream(self.graph_id)


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True):
    """An edge of a shared graph."""

    id: str
    graph_id: str
    key: str
    source: str
    target: str
    label: str
    said: dict[str, Any]
    """`weight`, if it has one, and `attributes`."""

    @property
    def stream(self) -> str:
        return graph_stream(self.graph_id)


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to one graph that are tried before they are made. It has a stream of its own, because trying changes must
    not delay writers of the graph."""

    id: str
    graph_id: str
    base_version: int
    owner: str
    note: str | None
    operations: list[dict[str, Any]]
    state: str
    started_at: int
    expires_at: int | None
    ended_at: int | None
    final_version: int | None

    @property
    def stream(self) -> str:
        return self.id
