"""Graphs that are no plans, and transactions on any graph, as addresses show them: as they are, as they were, as a
change found and left them. The plan of a workflow is `graphs.py`'s. No store.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from handrail.domain.graphs.free_graph import made_at, stored
from handrail.domain.graphs.graph import Graph, edge_id
from handrail.domain.graphs.records import SharedGraph, Transaction
from handrail.domain.graphs.transactions import has_run_out, shown_state
from handrail.domain.registry.addresses import graph, graph_version, snapshot
from handrail.domain.registry.graphs import (
    Edge,
    GraphSnapshot,
    GraphVersion,
    Made,
    Node,
    NormalisedGraph,
    at_version,
    latest,
    latest_version,
    version_of_tx,
    versions_of,
)
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import ResourceNotFound
from handrail.kernel.records import UnitOfWork


def normalised(graph_id: str, version: int, shown: Graph) -> NormalisedGraph:
    """A graph as every address and tool shows it."""
    edges = sorted(shown.edges.items(), key=lambda item: (item[1].source, item[1].target, item[1].label, item[0]))
    return NormalisedGraph(
        name=shown.name,
        graph_id=graph_id,
        graph_version=version,
        nodes=[Node(id=key, label=one.label, attributes=one.attributes) for key, one in shown.nodes.items()],
        edges=[
            Edge(
                source=one.source,
                target=one.target,
                label=one.label or UNSET,
                weight=UNSET if one.weight is None else one.weight,
                id=UNSET if key == edge_id(one.source, one.target, one.label) else key,
                attributes=one.attributes,
            )
            for key, one in edges
        ],
        metadata=shown.metadata,
    )


def shared_latest(unit: UnitOfWork, shared: SharedGraph) -> GraphVersion:
    return GraphVersion(
        graph_id=shared.id,
        version=shared.version,
        committed_at=shared.committed_at,
        graph=normalised(shared.id, shared.version, stored(unit, shared)),
    )


def shared_at_version(unit: UnitOfWork, shared: SharedGraph, version: int) -> GraphVersion:
    """The graph as it was when this version was committed; refused where no event made it."""
    made = _made(unit, shared, version)
    shown = normalised(shared.id, version, made.after)
    return GraphVersion(graph_id=shared.id, version=version, committed_at=made.event.at_ms, graph=shown)


def shared_snapshot(unit: UnitOfWork, shared: SharedGraph, tx: str) -> GraphSnapshot:
    """The change that made a version, as a transaction."""
    version = version_of_tx(tx)
    if version is None:
        raise ResourceNotFound(
            f"{shared.id} has no transaction {tx}",
            hint=f"resources_list with prefix {snapshot(shared.id, '').uri} shows its transactions",
            uri=snapshot(shared.id, tx).uri,
        )
    made = _made(unit, shared, version)
    event = made.event
    reason = event.data.get("reason")
    return GraphSnapshot(
        graph_id=shared.id,
        tx_id=tx,
        base_version=version - 1,
        started_at=event.at_ms,
        state="committed",
        committed_at=event.at_ms,
        final_version=version,
        base_graph=normalised(shared.id, version - 1, made.before),
        final_graph=normalised(shared.id, version, made.after),
        owner=str(event.data.get("owner", event.actor)),
        note=reason if isinstance(reason, str) else UNSET,
    )


def _made(unit: UnitOfWork, shared: SharedGraph, version: int) -> Made[Graph]:
    made = made_at(unit, shared.id, version) if 1 <= version <= shared.version else None
    if made is None:
        uri = graph_version(shared.id, version).uri
        newest = graph_version(shared.id, shared.version).uri
        raise ResourceNotFound(
            f"there is no version {version} of {shared.id}",
            hint=f"the newest is {newest}; {graph(shared.id).uri} is the graph as it is",
            uri=uri,
        )
    return made


# -- transactions -----------------------------------------------------------------------------------------------------


def tx_snapshot(unit: UnitOfWork, owner: Workflow | SharedGraph, tx: Transaction) -> GraphSnapshot:
    """A transaction: the graph it began with, and the one it made where it was committed."""
    expired = has_run_out(unit, tx)
    committed = tx.state == "committed" and tx.final_version is not None
    ended = tx.expires_at if expired else tx.ended_at
    return GraphSnapshot(
        graph_id=tx.graph_id,
        tx_id=tx.id,
        base_version=tx.base_version,
        started_at=tx.started_at,
        state=shown_state(unit, tx),
        committed_at=tx.ended_at if committed else None,
        final_version=tx.final_version,
        base_graph=_at(unit, owner, tx.base_version),
        final_graph=_at(unit, owner, tx.final_version or 0) if committed else None,
        owner=tx.owner,
        note=tx.note if tx.note is not None else UNSET,
        expires_at=tx.expires_at if tx.expires_at is not None else UNSET,
        ended_at=ended if ended is not None and not committed else UNSET,
        expired=True if expired else UNSET,
        operations=len(tx.operations),
    )


def tx_metadata(unit: UnitOfWork, tx: Transaction) -> dict[str, Any]:
    """What a list tells of a transaction."""
    told: dict[str, Any] = {
        "state": shown_state(unit, tx),
        "base_version": tx.base_version,
        "owner": tx.owner,
        "note": tx.note,
        "expires_at": tx.expires_at,
    }
    return {name: value for name, value in told.items() if value is not None}


def _at(unit: UnitOfWork, owner: Workflow | SharedGraph, version: int) -> NormalisedGraph:
    """The graph as a version had it when it was committed."""
    if isinstance(owner, SharedGraph):
        return shared_at_version(unit, owner, version).graph
    if version == 0:
        return msgspec.structs.replace(latest(unit, owner).graph, graph_version=0, nodes=[], edges=[])
    if version not in versions_of(unit, owner.id) and version == latest_version(unit, owner.id)[0]:
        return latest(unit, owner).graph  # from before versions were counted
    return at_version(unit, owner, version).graph
