"""Graphs that are not plans, and transactions on any graph, as addresses show them: now, at an earlier version, before
and after a change. Plans of workflows are in `graphs.py`. No store.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from handrail.domain.graphs.free_graph import made_at, stored
from handrail.domain.graphs.graph import Graph
from handrail.domain.graphs.history import VersionEvent
from handrail.domain.graphs.plan_graph import latest_version, versions_of
from handrail.domain.graphs.records import SharedGraph, Transaction
from handrail.domain.graphs.transactions import has_run_out, shown_state
from handrail.domain.registry.addresses import graph, graph_version, snapshot
from handrail.domain.registry.graphs import (
    GraphSnapshot,
    GraphVersion,
    NormalisedGraph,
    VersionCommit,
    at_version,
    latest,
    normalised,
    version_of_tx,
)
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import ResourceNotFound
from handrail.kernel.records import UnitOfWork

Owner = Workflow | SharedGraph
"""What has a graph."""


def versions_there(unit: UnitOfWork, owner: Owner) -> range:
    """The versions of a graph that can be read."""
    return range(1, owner.version + 1) if isinstance(owner, SharedGraph) else versions_of(unit, owner.id)


def shared_latest(unit: UnitOfWork, shared: SharedGraph) -> GraphVersion:
    return GraphVersion(
        graph_id=shared.id,
        version=shared.version,
        committed_at=shared.committed_at,
        graph=normalised(shared.id, shared.version, stored(unit, shared)),
    )


def shared_at_version(unit: UnitOfWork, shared: SharedGraph, version: int) -> GraphVersion:
    """The graph as it was when this version was committed; refused if no event made it."""
    made = _find_version(unit, shared, version)
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
    made = _find_version(unit, shared, version)
    before, after = normalised(shared.id, version - 1, made.before), normalised(shared.id, version, made.after)
    commit = VersionCommit(made.event, made.event.at_ms, before, after)
    return commit.as_snapshot(str(made.event.data.get("owner", made.event.actor)))


def _find_version(unit: UnitOfWork, shared: SharedGraph, version: int) -> VersionEvent[Graph]:
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


def tx_snapshot(unit: UnitOfWork, owner: Owner, tx: Transaction) -> GraphSnapshot:
    """A transaction: the graph it began with and, if it was committed, the one it made."""
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
        base_graph=_graph_at_version(unit, owner, tx.base_version),
        final_graph=_graph_at_version(unit, owner, tx.final_version or 0) if committed else None,
        owner=tx.owner,
        note=tx.note if tx.note is not None else UNSET,
        expires_at=tx.expires_at if tx.expires_at is not None else UNSET,
        ended_at=ended if ended is not None and not committed else UNSET,
        expired=True if expired else UNSET,
        operations=len(tx.operations),
    )


def tx_metadata(unit: UnitOfWork, tx: Transaction) -> dict[str, Any]:
    """What a list says about a transaction."""
    told: dict[str, Any] = {
        "state": shown_state(unit, tx),
        "base_version": tx.base_version,
        "owner": tx.owner,
        "note": tx.note,
        "expires_at": tx.expires_at,
    }
    return {name: value for name, value in told.items() if value is not None}


def _graph_at_version(unit: UnitOfWork, owner: Owner, version: int) -> NormalisedGraph:
    """The graph as a version had it when it was committed."""
    if isinstance(owner, SharedGraph):
        return shared_at_version(unit, owner, version).graph
    if version == 0:
        return msgspec.structs.replace(latest(unit, owner).graph, graph_version=0, nodes=[], edges=[])
    if version not in versions_of(unit, owner.id) and version == latest_version(unit, owner.id)[0]:
        return latest(unit, owner).graph  # it dates from before versions were counted
    return at_version(unit, owner, version).graph
