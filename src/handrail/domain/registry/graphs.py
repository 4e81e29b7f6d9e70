"""A workflow's plan at its addresses: as it is now, and as it was when each of its versions was committed, told again
from the ledger; and the shape in which addresses and tools show any graph. Which nodes and edges a plan has is
`graphs/plan_graph.py`'s. No store.

A version is a plan: a task that moves changes the graph but makes no version. What a version was is found by folding
the workflow's events up to the one that made it, so nothing is kept twice and no later change can reach it.

Graphs that are not plans, and transactions on any graph, as addresses show them: now, at an earlier version, before and
after a change. No store.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from handrail.domain.graphs.free_graph import made_at, stored
from handrail.domain.graphs.graph import Graph, Scalar, edge_id
from handrail.domain.graphs.history import Past, VersionEvent, made_by, version_step
from handrail.domain.graphs.plan_graph import (
    SHOWN_ROWS,
    latest_version,
    plan_of,
    shown_graph_from,
    shown_graph_of,
    versions_of,
)
from handrail.domain.graphs.records import SharedGraph, Transaction
from handrail.domain.graphs.transactions import has_run_out, shown_state
from handrail.domain.registry.addresses import graph, graph_version, snapshot
from handrail.domain.work.workflow import Tally, Workflow
from handrail.kernel.errors import ResourceNotFound
from handrail.kernel.ledger import Event
from handrail.kernel.records import UnitOfWork

_SHARED = ("graph", "graph_node", "graph_edge")
"""The tables of a graph that is no plan."""


class ShownNode(msgspec.Struct, frozen=True, kw_only=True):
    """A task, or a node of a graph that is no plan."""

    id: str
    label: str
    attributes: dict[str, Scalar]


class ShownEdge(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from", "target": "to"}):
    """From a task to one that waits for it, or to a part of it; in other graphs from any node to any other."""

    source: str
    target: str
    label: str | UnsetType = UNSET
    weight: float | UnsetType = UNSET
    id: str | UnsetType = UNSET
    """Only where it is not `from->to`, with `#label` where there is one."""
    attributes: dict[str, Scalar]


class NormalisedGraph(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A graph at one moment."""

    name: str
    graph_id: str
    graph_version: int
    nodes: list[ShownNode]
    edges: list[ShownEdge]
    metadata: dict[str, Scalar]


class GraphVersion(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A graph, and since when its plan is what it is."""

    graph_id: str
    version: int
    committed_at: int | None
    graph: NormalisedGraph


class GraphSnapshot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A change of a graph as a transaction: the graph right before it and right after it."""

    graph_id: str
    tx_id: str
    base_version: int
    started_at: int
    state: str
    committed_at: int | None
    final_version: int | None
    base_graph: NormalisedGraph
    final_graph: NormalisedGraph | None
    owner: str
    note: str | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET
    ended_at: int | UnsetType = UNSET
    """When it was rolled back, or ran out."""
    expired: bool | UnsetType = UNSET
    operations: int | UnsetType = UNSET
    """How many changes it holds."""


class VersionCommit(NamedTuple):
    """The event that made a version, when that was, and the graphs around it."""

    event: Event
    at: int
    before: NormalisedGraph
    after: NormalisedGraph

    def as_snapshot(self, owner: str) -> GraphSnapshot:
        """The change as a transaction, whose name tells the version that it made."""
        reason = self.event.data.get("reason")
        return GraphSnapshot(
            graph_id=self.after.graph_id,
            tx_id=tx_of_version(self.after.graph_version),
            base_version=self.before.graph_version,
            started_at=self.at,
            state="committed",
            committed_at=self.at,
            final_version=self.after.graph_version,
            base_graph=self.before,
            final_graph=self.after,
            owner=owner,
            note=reason if isinstance(reason, str) else UNSET,
        )


# -- as it is now -----------------------------------------------------------------------------------------------------


def latest(unit: UnitOfWork, workflow: Workflow) -> GraphVersion:
    """The graph as it is now. A workflow without a plan has an empty one, of version 0."""
    version, laid_at = latest_version(unit, workflow.id)
    shown = normalised(workflow.id, version, shown_graph_of(plan_of(unit, workflow)))
    return GraphVersion(graph_id=workflow.id, version=version, committed_at=laid_at or None, graph=shown)


def normalised(graph_id: str, version: int, shown: Graph) -> NormalisedGraph:
    """A graph as every address and tool shows it."""
    edges = sorted(shown.edges.items(), key=lambda item: (item[1].source, item[1].target, item[1].label, item[0]))
    return NormalisedGraph(
        name=shown.name,
        graph_id=graph_id,
        graph_version=version,
        nodes=[ShownNode(id=key, label=one.label, attributes=one.attributes) for key, one in shown.nodes.items()],
        edges=[
            ShownEdge(
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


# -- as it was --------------------------------------------------------------------------------------------------------


def at_version(unit: UnitOfWork, workflow: Workflow, version: int) -> GraphVersion:
    """The graph as it was when this version was committed; refused where no event made it."""
    commit = _commit(unit, workflow, version)
    return GraphVersion(graph_id=workflow.id, version=version, committed_at=commit.at, graph=commit.after)


def snapshot_of(unit: UnitOfWork, workflow: Workflow, tx: str) -> GraphSnapshot:
    """The change of the plan that this transaction was."""
    version = version_of_tx(tx)
    if version is None:
        raise ResourceNotFound(
            f"{workflow.id} has no transaction {tx}",
            hint=f"the changes of a plan are v1, v2 …: {snapshot(workflow.id, 'v1').uri}",
            uri=snapshot(workflow.id, tx).uri,
        )
    commit = _commit(unit, workflow, version)
    return commit.as_snapshot(commit.event.actor)


def tx_of_version(version: int) -> str:
    return f"v{version}"


def version_of_tx(tx: str) -> int | None:
    """The version that a transaction made; None where its name is of another kind."""
    digits = tx.removeprefix("v")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 16 or tx_of_version(int(digits)) != tx:
        return None
    return int(digits) or None


def _commit(unit: UnitOfWork, workflow: Workflow, version: int) -> VersionCommit:
    newest = unit.get(Tally, workflow.id)
    made = None
    if newest is not None and 1 <= version <= newest.version:
        past = Past(SHOWN_ROWS)
        made = made_by(unit, workflow.id, version, past, lambda number: _normalised_past(workflow.id, past, number))
    if made is None:
        raise _no_version(unit, workflow.id, version)
    laid_at = next((change.after or {}).get("laid_at") for change in made.event.changes if change.table == "tally")
    before = msgspec.structs.replace(made.before, name=made.before.name or made.after.name)
    return VersionCommit(made.event, laid_at or made.event.at_ms, before, made.after)


def _normalised_past(graph_id: str, past: Past, version: int) -> NormalisedGraph:
    return normalised(graph_id, version, shown_graph_from(graph_id, past.rows))


def _no_version(unit: UnitOfWork, workflow_id: str, version: int) -> ResourceNotFound:
    there = versions_of(unit, workflow_id)
    now = graph(workflow_id).uri
    if not there:
        hint = f"{now} is the plan as it is; its next change makes a version"
    elif version < there.start:
        first = snapshot(workflow_id, tx_of_version(there.start)).uri
        hint = f"it was there before versions were counted; {first} begins with what it had become"
    else:
        hint = f"the newest is {graph_version(workflow_id, there[-1]).uri}; {now} is the plan as it is"
    uri = graph_version(workflow_id, version).uri
    return ResourceNotFound(f"there is no version {version} of {workflow_id}", hint=hint, uri=uri)


# -- its events -------------------------------------------------------------------------------------------------------


def changes_graph(event: Event) -> bool:
    """Whether the graph that an event belongs to looks different after it."""
    for change in event.changes:
        if change.table in _SHARED:
            return True
        shown = SHOWN_ROWS.get(change.table)
        if shown is not None and (change.after is None or change.before is None or not shown.isdisjoint(change.after)):
            return True
    return version_step(event) is not None


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
