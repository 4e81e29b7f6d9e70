"""Toolset `tx`: creates graphs, and changes them in transactions, which are tried on the version they began with and
then committed all at once or not at all. A workflow's plan is a graph too; committing a change to it is a replan.

The rules are in `domain/graphs`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.graphs.diff import DiffSummary, difference, summary_of
from handrail.domain.graphs.graph import MOST_EDGES, MOST_NODES, Label
from handrail.domain.graphs.graph_access import Author, create, would_break
from handrail.domain.graphs.mutations import Applied
from handrail.domain.graphs.transactions import TX_MS, apply, begin, commit_tx, roll_back
from handrail.domain.registry.addresses import graph as graph_address
from handrail.domain.registry.addresses import snapshot
from handrail.kernel.clock import DAY_MS
from handrail.kernel.errors import (
    ClaimHeld,
    GraphInvalid,
    GraphNotFound,
    LockHeld,
    NotAllowed,
    TxConflict,
    TxEnded,
    TxNotFound,
    WorkflowClosed,
)
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.plan.workflow import PLANNED
from handrail.toolsets.registry.graph_shapes import (
    AnyGraphId,
    Changed,
    EdgeGiven,
    IncludeGraph,
    Invariants,
    NodeGiven,
    Note,
    Operations,
    Owner,
    Said,
    Sized,
    TxId,
    Version,
    applied_part,
    caller_of,
    changed_part,
    diff_part,
    graph_given,
    sized,
)
from handrail.toolsets.vocabulary import TX


class CreateGraph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A graph that is no workflow's plan."""

    graph_id: Annotated[str, Meta(min_length=1, max_length=120, pattern=r"^[A-Za-z0-9._~-]+\Z")] | None = None
    name: Label = ""
    nodes: Annotated[list[NodeGiven], Meta(max_length=MOST_NODES)] = []
    edges: Annotated[list[EdgeGiven], Meta(max_length=MOST_EDGES)] = []
    metadata: Annotated[
        Said,
        Meta(
            description="Rules too: dag, require_labels, require_edge_labels, require_ports, "
            "max_in_degree, max_out_degree"
        ),
    ] = {}
    note: Note | None = None


class CreatedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The new graph."""

    graph_id: str
    version: int
    nodes: int
    edges: int
    committed_at: int
    uri: str


class BeginTx(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A transaction on a graph."""

    graph_id: AnyGraphId
    expected_version: Version | None = None
    owner: Annotated[Owner, Meta(description="Default: the caller")] | None = None
    note: Note | None = None
    ttl_ms: Annotated[int, Meta(ge=1, le=DAY_MS)] = TX_MS
    include_graph: IncludeGraph = False


class BegunTx(Sized, frozen=True, kw_only=True):
    """The transaction, and the graph it begins with."""

    tx_id: str
    graph_id: str
    base_version: int
    owner: str
    started_at: int
    expires_at: int | None


class ApplyTx(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to try."""

    tx_id: TxId
    operations: Operations
    owner: Owner | None = None
    include_graph: IncludeGraph = False


class AppliedTx(Sized, frozen=True, kw_only=True):
    """What the transaction would make of its graph."""

    tx_id: str
    graph_id: str
    base_version: int
    preview_version: int
    changed: bool
    applied: tuple[Applied, ...]
    applied_total: int | UnsetType = UNSET
    """Where not all are shown."""
    diff: tuple[dict[str, Any], ...]
    """From the graph it began with: all its changes so far, not only these."""
    diff_total: int | UnsetType = UNSET
    diff_summary: DiffSummary
    invariants: Invariants
    """What would keep it from being committed as it is."""
    latest_version: int | UnsetType = UNSET
    """Where the graph has moved on: committing will be refused."""


class CommitTx(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which transaction."""

    tx_id: TxId
    owner: Owner | None = None
    include_graph: IncludeGraph = False


class CommittedTx(Changed, frozen=True, kw_only=True):
    """The graph after it."""

    tx_id: str
    version: int


class RollbackTx(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which transaction."""

    tx_id: TxId
    owner: Owner | None = None


class RolledBackTx(msgspec.Struct, frozen=True, kw_only=True):
    """The graph is at the version it was at."""

    tx_id: str
    graph_id: str
    version: int
    rolled_back_at: int | None
    snapshot: str
    """Where what was tried is kept."""


def graph_create(call: Call, request: CreateGraph) -> CreatedGraph:
    graph_id = request.graph_id or call.work.new_id("graph")
    graph = graph_given(request.name, request.nodes, request.edges, request.metadata)
    author = Author(caller_of(call).names, request.note)
    shared = create(call.work, graph_id, graph, author, repository=call.here.repository)
    return CreatedGraph(
        graph_id=graph_id,
        version=shared.version,
        nodes=len(graph.nodes),
        edges=len(graph.edges),
        committed_at=shared.committed_at,
        uri=graph_address(graph_id).uri,
    )


def tx_begin(call: Call, request: BeginTx) -> BegunTx:
    caller = caller_of(call, request.owner)
    tx, held = begin(
        call.work,
        request.graph_id,
        caller,
        expected=request.expected_version,
        note=request.note,
        ttl_ms=request.ttl_ms,
    )
    return BegunTx(
        tx_id=tx.id,
        graph_id=tx.graph_id,
        base_version=tx.base_version,
        owner=tx.owner,
        started_at=tx.started_at,
        expires_at=tx.expires_at,
        **sized(held.id, held.version, held.graph, whole=request.include_graph),
    )


def tx_apply(call: Call, request: ApplyTx) -> AppliedTx:
    caller = caller_of(call, request.owner)
    tried, applied = apply(call.work, request.tx_id, caller, request.operations)
    tx, held = tried.tx, tried.held
    before, after = held.compared(tried.base), held.compared(tried.graph)
    operations, summary = difference(before, after), summary_of(before, after)
    moved_on = held.version != tx.base_version
    broken = [] if moved_on else would_break(call.work, held, tried.graph, Author(caller.names | {tx.owner}))
    changed = bool(operations)
    preview = tx.base_version + changed
    return AppliedTx(
        tx_id=tx.id,
        graph_id=tx.graph_id,
        base_version=tx.base_version,
        preview_version=preview,
        changed=changed,
        invariants=Invariants(not broken, broken),
        latest_version=held.version if moved_on else UNSET,
        **applied_part(applied),
        **diff_part(operations, summary),
        **sized(held.id, preview, tried.graph, whole=request.include_graph),
    )


def tx_commit(call: Call, request: CommitTx) -> CommittedTx:
    tx, done, held = commit_tx(call.work, request.tx_id, caller_of(call, request.owner))
    return CommittedTx(tx_id=tx.id, version=done.version, **changed_part(held.id, done, whole=request.include_graph))


def tx_rollback(call: Call, request: RollbackTx) -> RolledBackTx:
    tx = roll_back(call.work, request.tx_id, caller_of(call, request.owner))
    return RolledBackTx(
        tx_id=tx.id,
        graph_id=tx.graph_id,
        version=tx.base_version,
        rolled_back_at=tx.ended_at,
        snapshot=snapshot(tx.graph_id, tx.id).uri,
    )


_NODES = [{"id": "build", "label": "Build"}, {"id": "ship", "label": "Ship"}]
_GRAPH = {
    "graph_id": "release",
    "name": "Release",
    "nodes": _NODES,
    "edges": [{"from": "build", "to": "ship"}],
    "metadata": {"dag": True},
}
GRAPH = (("graph_create", _GRAPH),)
"""A graph of two nodes."""
_ANNA = {"owner": "anna"}
_BEGUN = (*GRAPH, ("tx_begin", {"graph_id": "release", **_ANNA}))
_TEST = [
    {"op": "add_node", "id": "test", "label": "Test"},
    {"op": "remove_edge", "from": "build", "to": "ship"},
    {"op": "add_edge", "from": "build", "to": "test"},
    {"op": "add_edge", "from": "test", "to": "ship"},
]
_AGENTS = (
    *GRAPH,
    ("agent_register", {"name": "Anna", "runtime": "codex"}),
    ("tx_begin", {"graph_id": "release", "agent_id": "ag_1"}),
)
_TRIED = (*_BEGUN, ("tx_apply", {"tx_id": "tx_1", "operations": _TEST, **_ANNA}))
_COMMITTED = (*_TRIED, ("tx_commit", {"tx_id": "tx_1", **_ANNA}))
_CYCLE = {"op": "add_edge", "from": "ship", "to": "build"}
_DOCS = [
    {"op": "add_node", "id": "docs", "label": "docs", "attributes": {"description": "Say so in the docs"}},
    {"op": "add_edge", "from": "task_2", "to": "docs"},
]
_ON_PLAN = (
    *PLANNED,
    ("tx_begin", {"graph_id": "wf_1", **_ANNA}),
    ("tx_apply", {"tx_id": "tx_1", "operations": _DOCS, **_ANNA}),
)
_RENAMED = [{"op": "rename_node", "id": "task_1", "label": "wrap the fetch"}]
_CLAIMED = (
    *PLANNED,
    ("tx_begin", {"graph_id": "wf_1", **_ANNA}),
    ("tx_apply", {"tx_id": "tx_1", "operations": _RENAMED, **_ANNA}),
    ("agent_register", {"name": "Ben", "runtime": "codex"}),
    ("task_claim", {"task_id": "task_1", "agent_id": "ag_1"}),
)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="graph_create",
        toolset=TX,
        effect=Effect.WRITE,
        stored=True,
        summary="Creates a graph that is not a workflow's plan",
        request=CreateGraph,
        response=CreatedGraph,
        handler=graph_create,
        refusals=(GraphInvalid,),
        examples=(
            Example(
                title="a new graph has version 1",
                request=_GRAPH,
                response={"graph_id": "release", "version": 1, "nodes": 2, "edges": 1, "uri": "sc://graphs/release"},
            ),
            Example(
                title="one that breaks its own rules is refused",
                request={**_GRAPH, "edges": [*_GRAPH["edges"], {"from": "ship", "to": "build"}]},
                refused=GraphInvalid,
            ),
        ),
    ),
    Operation(
        name="tx_begin",
        toolset=TX,
        effect=Effect.WRITE,
        stored=True,
        summary="Begins a transaction on a graph or a workflow's plan",
        request=BeginTx,
        response=BegunTx,
        handler=tx_begin,
        refusals=(GraphNotFound, TxConflict, NotAllowed),
        examples=(
            Example(
                title="on a graph",
                given=GRAPH,
                request={"graph_id": "release", "expected_version": 1, "note": "tests first"},
                response={"tx_id": "tx_...", "base_version": 1, "nodes": 2, "graph": {"edges": [{"from": "build"}]}},
            ),
            Example(
                title="on a plan",
                given=PLANNED,
                request={"graph_id": "wf_1"},
                response={"base_version": 1, "graph": {"nodes": [{"id": "task_1", "label": "wrap"}]}},
            ),
            Example(
                title="another version than the expected one",
                given=GRAPH,
                request={"graph_id": "release", "expected_version": 7},
                refused=TxConflict,
            ),
            Example(title="no such graph", request={"graph_id": "nothing"}, refused=GraphNotFound),
            Example(
                title="in the name of another agent",
                given=(*GRAPH, ("agent_register", {"name": "Anna", "runtime": "codex"})),
                request={"graph_id": "release", "owner": "ag_1"},
                refused=NotAllowed,
            ),
        ),
    ),
    Operation(
        name="tx_apply",
        toolset=TX,
        effect=Effect.WRITE,
        stored=True,
        summary="Tries changes in a transaction and shows the result",
        request=ApplyTx,
        response=AppliedTx,
        handler=tx_apply,
        refusals=(TxNotFound, TxEnded, NotAllowed, GraphInvalid),
        examples=(
            Example(
                title="changes and what they come to",
                given=_BEGUN,
                request={"tx_id": "tx_1", "operations": _TEST, **_ANNA},
                response={
                    "preview_version": 2,
                    "changed": True,
                    "applied": [{"op": "add_node", "description": "added node test", "changed": True}],
                    "diff": [{"op": "remove", "path": "/edges/build->ship"}],
                    "diff_summary": {"nodesAdded": 1, "edgesAdded": 2, "edgesRemoved": 1},
                    "invariants": {"ok": True},
                },
            ),
            Example(
                title="what could not be committed is told",
                given=_BEGUN,
                request={"tx_id": "tx_1", "operations": [_CYCLE], **_ANNA},
                response={"invariants": {"ok": False, "broken": [{"rule": "dag"}]}},
            ),
            Example(
                title="a node that is not there",
                given=_BEGUN,
                request={"tx_id": "tx_1", "operations": [{"op": "remove_node", "id": "tset"}], **_ANNA},
                refused=GraphInvalid,
            ),
            Example(
                title="somebody else's",
                given=_AGENTS,
                request={"tx_id": "tx_1", "operations": _TEST},
                refused=NotAllowed,
            ),
            Example(
                title="one that is over",
                given=_COMMITTED,
                request={"tx_id": "tx_1", "operations": _TEST, **_ANNA},
                refused=TxEnded,
            ),
            Example(title="no such one", request={"tx_id": "tx_9", "operations": _TEST}, refused=TxNotFound),
        ),
    ),
    Operation(
        name="tx_commit",
        toolset=TX,
        effect=Effect.DESTRUCTIVE,
        idempotent=True,
        stored=True,
        summary="Commits a transaction, unless the graph has changed since",
        request=CommitTx,
        response=CommittedTx,
        handler=tx_commit,
        refusals=(TxNotFound, TxEnded, TxConflict, NotAllowed, GraphInvalid, LockHeld, ClaimHeld, WorkflowClosed),
        examples=(
            Example(
                title="the graph has a new version",
                given=_TRIED,
                request={"tx_id": "tx_1", **_ANNA},
                response={"version": 2, "changed": True, "nodes": 3, "edges": 2},
            ),
            Example(
                title="a plan is planned anew",
                given=_ON_PLAN,
                request={"tx_id": "tx_1", **_ANNA},
                response={"version": 2, "created": {"docs": "task_..."}, "nodes": 3},
            ),
            Example(
                title="the graph has moved on",
                given=(
                    *_TRIED,
                    ("tx_begin", {"graph_id": "release", "owner": "ben"}),
                    ("tx_apply", {"tx_id": "tx_2", "operations": _TEST[1:2], "owner": "ben"}),
                    ("tx_commit", {"tx_id": "tx_2", "owner": "ben"}),
                ),
                request={"tx_id": "tx_1", **_ANNA},
                refused=TxConflict,
            ),
            Example(
                title="a rule of the graph would be broken",
                given=(*_BEGUN, ("tx_apply", {"tx_id": "tx_1", "operations": [_CYCLE], **_ANNA})),
                request={"tx_id": "tx_1", **_ANNA},
                refused=GraphInvalid,
            ),
            Example(
                title="somebody has locked the graph",
                given=(*_TRIED, ("graph_lock", {"graph_id": "release", "holder": "ben"})),
                request={"tx_id": "tx_1", **_ANNA},
                refused=LockHeld,
            ),
            Example(
                title="a task that would change is another's",
                given=_CLAIMED,
                request={"tx_id": "tx_1", **_ANNA},
                refused=ClaimHeld,
            ),
            Example(
                title="a workflow that has ended is not planned",
                given=(*_ON_PLAN, ("workflow_update_status", {"id": "wf_1", "status": "abandoned"})),
                request={"tx_id": "tx_1", **_ANNA},
                refused=WorkflowClosed,
            ),
            Example(title="somebody else's", given=_AGENTS, request={"tx_id": "tx_1"}, refused=NotAllowed),
            Example(title="one that is over", given=_COMMITTED, request={"tx_id": "tx_1", **_ANNA}, refused=TxEnded),
            Example(title="no such one", request={"tx_id": "tx_9"}, refused=TxNotFound),
        ),
    ),
    Operation(
        name="tx_rollback",
        toolset=TX,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Rolls back a transaction",
        request=RollbackTx,
        response=RolledBackTx,
        handler=tx_rollback,
        refusals=(TxNotFound, TxEnded, NotAllowed),
        examples=(
            Example(
                title="the graph stays as it is",
                given=_TRIED,
                request={"tx_id": "tx_1", **_ANNA},
                response={"version": 1, "snapshot": "sc://snapshots/release/tx_1"},
            ),
            Example(title="somebody else's", given=_AGENTS, request={"tx_id": "tx_1"}, refused=NotAllowed),
            Example(title="one that is over", given=_COMMITTED, request={"tx_id": "tx_1", **_ANNA}, refused=TxEnded),
            Example(title="no such one", request={"tx_id": "tx_9"}, refused=TxNotFound),
        ),
    ),
)
