"""Toolset `bulk`: many changes at once, all or none. If some cannot be made, each of them is named.

Boards are defined in `domain/board`, graphs in `domain/graphs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.board.board import EntryUpdate, set_many
from handrail.domain.graphs.graph_access import Author, GraphInUnit, commit, failure_of, find_graph
from handrail.domain.graphs.locks import check_unlocked
from handrail.domain.graphs.mutations import Applied, Mutated, Mutation, failures_among, mutate, mutation_from
from handrail.domain.graphs.transactions import check_ids_stay, check_named, check_version
from handrail.domain.reply_size import within
from handrail.kernel.errors import (
    BulkRefused,
    ClaimHeld,
    GraphInvalid,
    GraphNotFound,
    LockHeld,
    NotAllowed,
    TxConflict,
    WorkflowClosed,
)
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.plan.workflow import ABANDONED, PLANNED
from handrail.toolsets.registry.blackboard import SetEntry
from handrail.toolsets.registry.graph_shapes import (
    AnyGraphId,
    Changed,
    IncludeGraph,
    Note,
    Operations,
    Owner,
    Version,
    applied_part,
    caller_of,
    changed_part,
)
from handrail.toolsets.registry.tx import GRAPH
from handrail.toolsets.vocabulary import BULK

MOST_ENTRIES = 100
SHOWN_FAILURES = 20
REPLY = 6_000
"""Bytes for entries in a reply."""


class SetEntries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to stand on boards, as bb_set takes it."""

    entries: Annotated[list[SetEntry], Meta(min_length=1, max_length=MOST_ENTRIES)]


class EntrySet(msgspec.Struct, frozen=True, kw_only=True):
    """One entry that stands now."""

    key: str
    version: int


class SetMany(msgspec.Struct, frozen=True, kw_only=True):
    """What was set, in the order it was given."""

    count: int
    entries: tuple[EntrySet, ...]
    """As many as fit."""


class MutateGraph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to a graph."""

    graph_id: AnyGraphId
    operations: Operations
    expected_version: Version | None = None
    owner: Owner | None = None
    note: Note | None = None
    include_graph: IncludeGraph = False


class MutatedGraph(Changed, frozen=True, kw_only=True):
    """The graph after them."""

    base_version: int
    version: int
    applied: tuple[Applied, ...]
    applied_total: int | UnsetType = UNSET
    """Where not all are shown."""


def bb_batch_set(call: Call, request: SetEntries) -> SetMany:
    wanted = [EntryUpdate(one.key, one.value, one.tags, one.ttl_ms, one.expected_version) for one in request.entries]
    entries, failed = set_many(call.work, wanted)
    if failed:
        raise _refused([failure_of(one.at, one.refusal) for one in failed], len(wanted), "entries")
    shown = within([EntrySet(key=entry.id, version=entry.version) for entry in entries], REPLY)
    return SetMany(count=len(entries), entries=tuple(shown))


def graph_batch_mutate(call: Call, request: MutateGraph) -> MutatedGraph:
    caller = caller_of(call, request.owner)
    check_named(call.work, caller)
    held = find_graph(call.work, request.graph_id)
    check_version(call.work, held, request.expected_version)
    check_unlocked(call.work, held.id, held.stream, caller.names, caller.fence)
    after, applied = _apply_all(held, request.operations)
    author = Author(caller.names, request.note, {"owner": request.owner} if request.owner else {})
    done = commit(call.work, held, after, author)
    return MutatedGraph(
        base_version=held.version,
        version=done.version,
        **applied_part(applied),
        **changed_part(held.id, done, whole=request.include_graph),
    )


def _apply_all(held: GraphInUnit, operations: Sequence[dict[str, Any]]) -> Mutated:
    """The graph after all of these. If some cannot be applied, the others are tried without them, so that each one that
    fails by itself is named."""
    try:
        mutations = [mutation_from(one) for one in operations]
        check_ids_stay(held, mutations)
        return mutate(held.graph, mutations)
    except GraphInvalid:
        failures = _failures(held, operations)
        if not failures:
            raise
        raise _refused(failures, len(operations), "operations") from None


def _failures(held: GraphInUnit, operations: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    failed: dict[int, GraphInvalid] = {}
    sound: dict[int, Mutation] = {}
    for index, one in enumerate(operations):
        try:
            sound[index] = mutation_from(one)
            check_ids_stay(held, [sound[index]])
        except GraphInvalid as refusal:
            failed[index] = refusal
            sound.pop(index, None)
    failed |= failures_among(held.graph, sound)
    return [failure_of(index, failed[index]) for index in sorted(failed)]


def _refused(failures: Sequence[dict[str, Any]], count: int, what: str) -> BulkRefused:
    first = failures[0]
    return BulkRefused(
        f"{len(failures)} of {count} {what} cannot be done, so none was; number {first['index']}: {first['message']}",
        hint="fix or leave out those that are listed, and send all of them again",
        failures=within(failures[:SHOWN_FAILURES], 5_000),
        failed=len(failures),
        rolled_back=True,
    )


_DOCS = {"op": "add_node", "id": "docs", "label": "docs"}

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="bb_batch_set",
        toolset=BULK,
        effect=Effect.WRITE,
        stored=True,
        summary="Sets several board entries, all or none",
        request=SetEntries,
        response=SetMany,
        handler=bb_batch_set,
        refusals=(BulkRefused,),
        examples=(
            Example(
                title="two entries",
                request={"entries": [{"key": "plan:port", "value": 8765}, {"key": "plan:host", "value": "localhost"}]},
                response={"count": 2, "entries": [{"key": "plan:port", "version": 1}, {"key": "plan:host"}]},
            ),
            Example(
                title="one that is not what was expected keeps all from being set",
                given=(("bb_set", {"key": "plan:port", "value": 8765}),),
                request={
                    "entries": [
                        {"key": "plan:host", "value": "localhost"},
                        {"key": "plan:port", "value": 9000, "expected_version": 0},
                    ]
                },
                refused=BulkRefused,
            ),
        ),
    ),
    Operation(
        name="graph_batch_mutate",
        toolset=BULK,
        effect=Effect.DESTRUCTIVE,
        stored=True,
        summary="Changes a graph or plan, all or nothing",
        request=MutateGraph,
        response=MutatedGraph,
        handler=graph_batch_mutate,
        refusals=(
            GraphNotFound,
            BulkRefused,
            GraphInvalid,
            TxConflict,
            LockHeld,
            NotAllowed,
            ClaimHeld,
            WorkflowClosed,
        ),
        examples=(
            Example(
                title="a node and an edge",
                given=GRAPH,
                request={
                    "graph_id": "release",
                    "operations": [_DOCS, {"op": "add_edge", "from": "build", "to": "docs"}],
                },
                response={"version": 2, "changed": True, "applied": [{"op": "add_node"}, {"op": "add_edge"}]},
            ),
            Example(
                title="a plan is planned anew",
                given=PLANNED,
                request={"graph_id": "wf_1", "operations": [_DOCS], "note": "docs were forgotten"},
                response={"base_version": 1, "version": 2, "created": {"docs": "task_..."}},
            ),
            Example(
                title="every one that fails is named",
                given=GRAPH,
                request={
                    "graph_id": "release",
                    "operations": [{"op": "remove_node", "id": "x"}, _DOCS, {"op": "remove_node", "id": "y"}],
                },
                refused=BulkRefused,
            ),
            Example(
                title="a rule of the graph would be broken",
                given=GRAPH,
                request={"graph_id": "release", "operations": [{"op": "add_edge", "from": "ship", "to": "build"}]},
                refused=GraphInvalid,
            ),
            Example(
                title="another version than the expected one",
                given=GRAPH,
                request={"graph_id": "release", "operations": [_DOCS], "expected_version": 7},
                refused=TxConflict,
            ),
            Example(
                title="somebody has locked it",
                given=(*GRAPH, ("graph_lock", {"graph_id": "release", "holder": "ben"})),
                request={"graph_id": "release", "operations": [_DOCS]},
                refused=LockHeld,
            ),
            Example(
                title="in the name of another agent",
                given=(*GRAPH, ("agent_register", {"name": "Anna", "runtime": "codex"})),
                request={"graph_id": "release", "operations": [_DOCS], "owner": "ag_1"},
                refused=NotAllowed,
            ),
            Example(
                title="a task that another has claimed",
                given=(
                    *PLANNED,
                    ("agent_register", {"name": "Anna", "runtime": "codex"}),
                    ("task_claim", {"task_id": "task_1", "agent_id": "ag_1"}),
                ),
                request={"graph_id": "wf_1", "operations": [{"op": "remove_node", "id": "task_1"}]},
                refused=ClaimHeld,
            ),
            Example(
                title="a workflow that has ended is not planned",
                given=ABANDONED,
                request={"graph_id": "wf_1", "operations": [_DOCS]},
                refused=WorkflowClosed,
            ),
            Example(
                title="no such graph", request={"graph_id": "nothing", "operations": [_DOCS]}, refused=GraphNotFound
            ),
        ),
    ),
)
