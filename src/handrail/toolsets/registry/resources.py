"""Toolset `resources`: registry.md's `sc://` addresses. List what there is, read it, watch it.

The domain (`domain/registry`) defines what is at an address; the same addresses are native MCP resources
(`surfaces/mcp/registry_resources.py`).
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.registry.addresses import LONGEST, Kind, parse
from handrail.domain.registry.index import ListingQuery, listed
from handrail.domain.registry.reader import Most, read, watch
from handrail.domain.registry.tail import Cursor, TailPage
from handrail.domain.reply_size import bounds, within
from handrail.kernel.errors import InvalidParams, ResourceNotFound
from handrail.kernel.limits import WAIT_MS
from handrail.operation import Call, Effect, Example, Operation, Wait
from handrail.toolsets.plan.agent import ANNA
from handrail.toolsets.plan.workflow import PLANNED, STARTED
from handrail.toolsets.vocabulary import RESOURCES

LISTED = 100
WATCHED = 250

Uri = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Limit = Annotated[int, Meta(ge=1, le=500)]


class ListResources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which addresses."""

    prefix: Uri | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    after: Annotated[Uri, Meta(description="The last uri of the page before")] | UnsetType = UNSET


class ResourceItem(msgspec.Struct, frozen=True):
    """One address."""

    uri: str
    kind: Kind
    metadata: dict[str, Any] | UnsetType = UNSET


class ResourceList(msgspec.Struct, frozen=True, omit_defaults=True):
    """Addresses in their order."""

    items: tuple[ResourceItem, ...]
    truncated: bool = False
    """True where there are more."""


class ReadResource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which address."""

    uri: Uri


class ResourceRead(msgspec.Struct, frozen=True):
    """What lies there."""

    uri: str
    kind: Kind
    payload: dict[str, Any]


class WatchResource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which address, and from where on."""

    uri: Uri
    from_seq: Annotated[int, Meta(ge=0, le=2**53, description="next_seq of the page before")] = 0
    limit: Limit | UnsetType = UNSET
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS, description="Wait for news, at most 25000")] = 0


class ResourceWatched(msgspec.Struct, frozen=True):
    """What happened there after `from_seq`, in order."""

    uri: str
    kind: Kind
    events: tuple[dict[str, Any], ...]
    next_seq: int
    truncated_before: int | UnsetType = UNSET
    """The first event that is still shown, where some after `from_seq` are not."""


def resources_list(call: Call, request: ListResources) -> ResourceList:
    prefix = "" if request.prefix is UNSET else request.prefix.strip()
    if request.prefix is not UNSET and not prefix:
        raise InvalidParams("prefix is blank", hint="leave it out to list everything, or say sc://graphs/")
    after = "" if request.after is UNSET else request.after
    asked = ListingQuery(prefix, call.here.only, after, call.bounds.events)
    limit, room = bounds(request.limit, LISTED)
    found, more = listed(call.work, asked, limit)
    items = [
        ResourceItem(item.address.uri, item.address.kind, UNSET if item.metadata is None else item.metadata)
        for item in found
    ]
    shown = within(items, room)
    return ResourceList(tuple(shown), more or len(shown) < len(items))


def resources_read(call: Call, request: ReadResource) -> ResourceRead:
    address = parse(request.uri)
    return ResourceRead(address.uri, address.kind, read(call.work, address, keep=call.bounds.events))


def resources_watch(call: Call, request: WatchResource) -> ResourceWatched:
    address = parse(request.uri)
    most = Most(*bounds(request.limit, WATCHED))
    cursor: Cursor = call.kept
    after = request.from_seq if cursor.seq is None else cursor.seq
    watched = watch(call.work, address, after, most, keep=call.bounds.events)
    found = cursor.keep(TailPage(tuple(watched.events), watched.looked_to, watched.truncated_before))
    return ResourceWatched(
        address.uri,
        address.kind,
        tuple(watched.events),
        watched.events[-1]["seq"] if watched.events else request.from_seq,
        found.truncated_before or UNSET,
    )


OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="resources_list",
        toolset=RESOURCES,
        effect=Effect.READ,
        stored=True,
        summary="Lists sc:// addresses of graphs, runs, children and boards",
        request=ListResources,
        response=ResourceList,
        handler=resources_list,
        examples=(
            Example(
                title="a plan is a graph with versions, and a run",
                given=PLANNED,
                request={"limit": 10},
                response={
                    "items": [
                        {"uri": "sc://graphs/wf_1", "kind": "graph", "metadata": {"latest_version": 1}},
                        {"uri": "sc://graphs/wf_1@v1", "kind": "graph_version"},
                        {"uri": "sc://runs/wf_1/events", "kind": "run_events", "metadata": {"event_count": 2}},
                        {"uri": "sc://snapshots/wf_1/v1", "kind": "snapshot", "metadata": {"base_version": 0}},
                    ]
                },
            ),
            Example(
                title="agents have logs",
                given=(ANNA,),
                request={"prefix": "sc://children/"},
                response={"items": [{"uri": "sc://children/ag_1/logs", "kind": "child_logs"}]},
            ),
        ),
    ),
    Operation(
        name="resources_read",
        toolset=RESOURCES,
        effect=Effect.READ,
        stored=True,
        summary="Reads what is at an sc:// address",
        request=ReadResource,
        response=ResourceRead,
        handler=resources_read,
        refusals=(ResourceNotFound,),
        examples=(
            Example(
                title="a plan as a graph",
                given=STARTED,
                request={"uri": "sc://graphs/wf_1"},
                response={
                    "kind": "graph",
                    "payload": {
                        "graphId": "wf_1",
                        "version": 1,
                        "graph": {
                            "nodes": [{"id": "task_1", "label": "wrap", "attributes": {"status": "in_progress"}}],
                            "edges": [{"from": "task_1", "to": "task_2"}],
                        },
                    },
                },
            ),
            Example(
                title="a version stays as it was committed",
                given=STARTED,
                request={"uri": "sc://graphs/wf_1@v1"},
                response={"payload": {"graph": {"nodes": [{"id": "task_1", "attributes": {"status": "pending"}}]}}},
            ),
            Example(title="nothing is there", request={"uri": "sc://graphs/wf_9"}, refused=ResourceNotFound),
        ),
    ),
    Operation(
        name="resources_watch",
        toolset=RESOURCES,
        effect=Effect.READ,  # on a board it may record an expiry, which any reader would
        stored=True,
        wait=Wait(for_ms=lambda request: request.wait_ms, is_over=lambda answer: bool(answer.events), keeps=Cursor),
        summary="Shows what happened at an sc:// address after from_seq; may wait for it",
        request=WatchResource,
        response=ResourceWatched,
        handler=resources_watch,
        refusals=(ResourceNotFound,),
        examples=(
            Example(
                title="what happened since",
                given=STARTED,
                request={"uri": "sc://runs/wf_1/events", "from_seq": 2},
                response={
                    "events": [{"seq": 3, "kind": "task.in_progress", "level": "info", "jobId": "task_1"}],
                    "next_seq": 3,
                },
            ),
            Example(title="no such address", request={"uri": "sc://runs/wf_1"}, refused=ResourceNotFound),
        ),
    ),
)
