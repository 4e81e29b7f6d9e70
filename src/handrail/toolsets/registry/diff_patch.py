"""Toolset `diff-patch`: the differences between two states of a graph, and patches to it. A workflow's plan is one too.

Differences and patches treat the graph as a document keyed by ids (`/nodes/<id>/label`, `/edges/<from>-><to>`), so that
a path means the same whatever else changes. The rules are in `domain/graphs`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.graphs.diff import DiffSummary, difference, summary_of
from handrail.domain.graphs.graph import Graph, document_of, graph_from
from handrail.domain.graphs.graph_access import Author, GraphInUnit, commit, find_graph, graph_at, would_break
from handrail.domain.graphs.json_patch import MOST_OPERATIONS, merged, patched
from handrail.domain.graphs.locks import check_unlocked
from handrail.domain.graphs.transactions import check_named, check_version, find_tx, read_transaction, shown_state
from handrail.domain.reply_size import LONG_REPLY, within
from handrail.kernel.errors import (
    ClaimHeld,
    GraphInvalid,
    GraphNotFound,
    InvalidParams,
    LockHeld,
    NotAllowed,
    PatchFailed,
    TxConflict,
    TxEnded,
    TxNotFound,
    WorkflowClosed,
)
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.plan.workflow import ABANDONED, HELD, PLANNED, STARTED
from handrail.toolsets.registry.graph_shapes import (
    AnyGraphId,
    Changed,
    IncludeGraph,
    Invariants,
    Note,
    Owner,
    TxId,
    Version,
    caller_of,
    changed_part,
    graph_in,
)
from handrail.toolsets.registry.tx import GRAPH
from handrail.toolsets.vocabulary import DIFF_PATCH

REPLY = 6_000
"""Bytes for operations if the caller gave no limit."""


class Selector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One state of a graph: exactly one of these."""

    latest: bool = False
    version: Version | None = None
    tx_id: TxId | None = None
    graph: dict[str, Any] | None = None


class DiffGraph(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"before": "from", "after": "to"}
):
    """Which two states."""

    graph_id: AnyGraphId
    before: Annotated[Selector, Meta(description="One of latest, version, tx_id, graph")]
    after: Selector = Selector(latest=True)
    limit: Annotated[int, Meta(ge=1, le=10_000)] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class GraphDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON Patch that leads from one to the other."""

    graph_id: str
    changed: bool
    operations: tuple[dict[str, Any], ...]
    total: int
    next_offset: int | UnsetType = UNSET
    """Where there are more."""
    summary: DiffSummary


class PatchGraph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A patch to a graph: one of `patch` and `merge`."""

    graph_id: AnyGraphId
    patch: (
        Annotated[
            list[dict[str, Any]],
            Meta(
                min_length=1,
                max_length=MOST_OPERATIONS,
                description="RFC 6902 over {name, nodes: {id: {label, attributes}}, "
                "edges: {id: {from, to, label, attributes}}, metadata}; "
                'paths as "/nodes/a/label", "/edges/a->b", "/edges/a->b#label"',
            ),
        ]
        | None
    ) = None
    merge: Annotated[dict[str, Any], Meta(description="RFC 7386 over the same")] | None = None
    base_version: Annotated[Version, Meta(description="Refuse if it is at another")] | None = None
    enforce_invariants: bool = True
    owner: Owner | None = None
    note: Note | None = None
    include_graph: IncludeGraph = False


class PatchedGraph(Changed, frozen=True, kw_only=True):
    """The graph after it."""

    base_version: int
    committed_version: int
    operations_applied: int
    invariants: Invariants


def graph_diff(call: Call, request: DiffGraph) -> GraphDiff:
    held = find_graph(call.work, request.graph_id)
    before = held.compared(_selected(call, held, request.before))
    after = held.compared(_selected(call, held, request.after))
    operations = difference(before, after)
    asked = request.limit is not UNSET
    page = operations[request.offset :]
    shown = within(page[: request.limit] if request.limit is not UNSET else page, LONG_REPLY if asked else REPLY)
    end = request.offset + len(shown)
    return GraphDiff(
        graph_id=held.id,
        changed=bool(operations),
        operations=tuple(shown),
        total=len(operations),
        next_offset=end if end < len(operations) else UNSET,
        summary=summary_of(before, after),
    )


def graph_patch(call: Call, request: PatchGraph) -> PatchedGraph:
    caller = caller_of(call, request.owner)
    check_named(call.work, caller)
    held = find_graph(call.work, request.graph_id)
    if not request.enforce_invariants and held.plan is not None:
        raise InvalidParams(
            "a plan must keep its rules", hint="leave enforce_invariants out: it is for graphs that are not plans"
        )
    check_version(call.work, held, request.base_version)
    check_unlocked(call.work, held.id, held.stream, caller.names, caller.fence)
    after, applied = _patched(held, request)
    author = Author(caller.names, request.note, {"owner": request.owner} if request.owner else {})
    done = commit(call.work, held, after, author, enforce=request.enforce_invariants)
    broken = [] if request.enforce_invariants else would_break(call.work, held, after, author)
    return PatchedGraph(
        base_version=held.version,
        committed_version=done.version,
        operations_applied=applied,
        invariants=Invariants(not broken, broken),
        **changed_part(held.id, done, whole=request.include_graph),
    )


def _patched(held: GraphInUnit, request: PatchGraph) -> tuple[Graph, int]:
    """The graph that a patch produces, and how many operations that took."""
    if (request.patch is None) == (request.merge is None):
        raise InvalidParams("give one of patch and merge", hint="patch is a list of operations, merge an object")
    document = document_of(held.graph)
    if request.patch is not None:
        return graph_from(patched(document, request.patch)), len(request.patch)
    after = graph_from(merged(document, request.merge))
    return after, len(difference(held.graph, after))


def _selected(call: Call, held: GraphInUnit, selector: Selector) -> Graph:
    """The state that a selector means."""
    given = [name for name in ("version", "tx_id", "graph") if getattr(selector, name) is not None]
    if len(given) + selector.latest != 1:
        raise InvalidParams(
            "a state is one of latest, version, tx_id and graph", hint='such as {"latest": true} or {"version": 3}'
        )
    if selector.version is not None:
        return graph_at(call.work, held, selector.version)
    if selector.graph is not None:
        return graph_in(selector.graph)
    return _in_tx(call, held, selector.tx_id) if selector.tx_id is not None else held.graph


def _in_tx(call: Call, held: GraphInUnit, tx_id: str) -> Graph:
    """What a transaction would produce, or has produced."""
    tx = find_tx(call.work, tx_id)
    if tx.graph_id != held.id:
        raise TxNotFound(f"{tx_id} is on {tx.graph_id}, not on {held.id}", hint="give that graph_id", id=tx_id)
    state = shown_state(call.work, tx)
    if state == "committed" and tx.final_version is not None:
        return graph_at(call.work, held, tx.final_version)
    if state != "pending":
        raise TxEnded(f"{tx_id} was rolled back or expired", hint="tx_begin starts another", id=tx_id)
    return read_transaction(call.work, tx).graph


_RELABEL = [{"op": "replace", "path": "/nodes/ship/label", "value": "Ship it"}]
_PATCHED = (*GRAPH, ("graph_patch", {"graph_id": "release", "patch": _RELABEL}))
_ROLLED_BACK = (
    *GRAPH,
    ("tx_begin", {"graph_id": "release", "owner": "anna"}),
    ("tx_rollback", {"tx_id": "tx_1", "owner": "anna"}),
)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="graph_diff",
        toolset=DIFF_PATCH,
        effect=Effect.READ,
        stored=True,
        summary="Shows the difference between two states of a graph as a JSON Patch",
        request=DiffGraph,
        response=GraphDiff,
        handler=graph_diff,
        refusals=(GraphNotFound, GraphInvalid, PatchFailed, TxNotFound, TxEnded),
        examples=(
            Example(
                title="since a version",
                given=_PATCHED,
                request={"graph_id": "release", "from": {"version": 1}},
                response={
                    "changed": True,
                    "operations": [{"op": "replace", "path": "/nodes/ship/label", "value": "Ship it"}],
                    "total": 1,
                    "summary": {"nodesChanged": True, "nodesUpdated": 1, "edgesChanged": False},
                },
            ),
            Example(
                title="against a graph at hand",
                given=GRAPH,
                request={"graph_id": "release", "from": {"latest": True}, "to": {"graph": {"name": "Release"}}},
                response={"changed": True, "summary": {"nodesRemoved": 2, "edgesRemoved": 1}},
            ),
            Example(
                title="no such version",
                given=GRAPH,
                request={"graph_id": "release", "from": {"version": 9}},
                refused=GraphNotFound,
            ),
            Example(
                title="an edge to nowhere is no graph",
                given=GRAPH,
                request={"graph_id": "release", "from": {"graph": {"edges": [{"from": "a", "to": "b"}]}}},
                refused=GraphInvalid,
            ),
            Example(
                title="what is no graph at all",
                given=GRAPH,
                request={"graph_id": "release", "from": {"graph": {"vertices": []}}},
                refused=PatchFailed,
            ),
            Example(
                title="no such transaction",
                given=GRAPH,
                request={"graph_id": "release", "from": {"tx_id": "tx_9"}},
                refused=TxNotFound,
            ),
            Example(
                title="one that came to nothing",
                given=_ROLLED_BACK,
                request={"graph_id": "release", "from": {"tx_id": "tx_1"}},
                refused=TxEnded,
            ),
        ),
    ),
    Operation(
        name="graph_patch",
        toolset=DIFF_PATCH,
        effect=Effect.DESTRUCTIVE,
        stored=True,
        summary="Patches a graph or plan, all or nothing",
        request=PatchGraph,
        response=PatchedGraph,
        handler=graph_patch,
        refusals=(
            GraphNotFound,
            PatchFailed,
            GraphInvalid,
            TxConflict,
            LockHeld,
            NotAllowed,
            ClaimHeld,
            WorkflowClosed,
        ),
        examples=(
            Example(
                title="RFC 6902",
                given=GRAPH,
                request={
                    "graph_id": "release",
                    "patch": [{"op": "test", "path": "/nodes/ship/label", "value": "Ship"}, *_RELABEL],
                    "base_version": 1,
                },
                response={"committed_version": 2, "changed": True, "operations_applied": 2},
            ),
            Example(
                title="RFC 7386",
                given=GRAPH,
                request={"graph_id": "release", "merge": {"nodes": {"ship": {"attributes": {"team": "web"}}}}},
                response={"committed_version": 2, "operations_applied": 1},
            ),
            Example(
                title="a plan is planned anew",
                given=PLANNED,
                request={
                    "graph_id": "wf_1",
                    "patch": [{"op": "replace", "path": "/nodes/task_2/attributes/priority", "value": 5}],
                },
                response={"base_version": 1, "committed_version": 2},
            ),
            Example(
                title="what is there is what it was",
                given=GRAPH,
                request={"graph_id": "release", "merge": {"name": "Release"}},
                response={"committed_version": 1, "changed": False},
            ),
            Example(
                title="a test that fails",
                given=GRAPH,
                request={
                    "graph_id": "release",
                    "patch": [{"op": "test", "path": "/nodes/ship/label", "value": "Ship it"}],
                },
                refused=PatchFailed,
            ),
            Example(
                title="a task under way stays as it is",
                given=STARTED,
                request={"graph_id": "wf_1", "merge": {"nodes": {"task_1": {"label": "other"}}}},
                refused=GraphInvalid,
            ),
            Example(
                title="another version than the expected one",
                given=_PATCHED,
                request={"graph_id": "release", "patch": _RELABEL, "base_version": 1},
                refused=TxConflict,
            ),
            Example(
                title="somebody has locked it",
                given=(*GRAPH, ("graph_lock", {"graph_id": "release", "holder": "ben"})),
                request={"graph_id": "release", "patch": _RELABEL},
                refused=LockHeld,
            ),
            Example(
                title="a task that another has claimed",
                given=(
                    *PLANNED,
                    ("agent_register", {"name": "Anna", "runtime": "codex"}),
                    ("task_claim", {"task_id": "task_1", "agent_id": "ag_1"}),
                ),
                request={"graph_id": "wf_1", "merge": {"nodes": {"task_1": {"label": "other"}}}},
                refused=ClaimHeld,
            ),
            Example(
                title="in the name of another agent",
                given=HELD,
                request={"graph_id": "wf_1", "merge": {}, "owner": "ag_1"},
                refused=NotAllowed,
            ),
            Example(
                title="a workflow that has ended is not planned",
                given=ABANDONED,
                request={"graph_id": "wf_1", "merge": {"nodes": {"task_1": {"label": "other"}}}},
                refused=WorkflowClosed,
            ),
            Example(title="no such graph", request={"graph_id": "nothing", "patch": _RELABEL}, refused=GraphNotFound),
        ),
    ),
)
