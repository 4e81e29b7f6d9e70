"""Toolset `events`: registry.md's event bus and logs, over the one ledger. Nothing is buffered or dropped: a cursor
that was given out once stays valid in any process, at any time.

`domain/registry/envelopes.py` says what is shown of an event, `tailing.py` finds the pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.crew.presence import find_agent
from handrail.domain.registry.envelopes import child_of, envelope, level_of, line_of, task_of
from handrail.domain.registry.tail import (
    Cursor,
    EventFilter,
    EventForm,
    EventSource,
    OneStream,
    bus_of,
    first_kept,
    newest_page,
    page_after,
)
from handrail.domain.reply_size import bounds
from handrail.domain.work.lookup import find_workflow
from handrail.kernel.errors import AgentNotFound, InvalidParams, RunNotFound
from handrail.kernel.ledger import Event
from handrail.kernel.limits import WAIT_MS
from handrail.operation import Call, Effect, Example, Operation, Wait
from handrail.toolsets.plan.agent import ANNA
from handrail.toolsets.plan.workflow import PLANNED
from handrail.toolsets.vocabulary import EVENTS

Category = Literal[
    "child", "scheduler", "graph", "bb", "op", "journal", "gate", "pipeline", "workspace", "store", "values"
]
Level = Literal["info", "warn", "error"]
Limit = Annotated[int, Meta(ge=1, le=500)]
Seq = Annotated[int, Meta(ge=0, le=2**63 - 1)]
WaitMs = Annotated[int, Meta(ge=0, le=WAIT_MS, description="Wait for one, at most 25000")]
LISTED = 100


class SubscribeEvents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which events, from where on."""

    cats: Annotated[list[Category], Meta(max_length=10)] = []
    levels: Annotated[list[Level], Meta(max_length=4)] = []
    run_id: str | None = None
    job_id: Annotated[str, Meta(description="A task")] | None = None
    child_id: Annotated[str, Meta(description="An agent")] | None = None
    graph_id: str | None = None
    node_id: str | None = None
    from_seq: Annotated[Seq, Meta(description="next_seq of the page before")] = 0
    limit: Limit | UnsetType = UNSET
    format: Literal["json", "jsonlines"] = "json"
    wait_ms: WaitMs = 0


class EventPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Events with a later seq, ascending. An empty page means that there are none yet."""

    format: str
    events: tuple[dict[str, Any], ...]
    stream: str | None
    """The same as lines of JSON, where asked for."""
    next_seq: int
    count: int
    truncated_before: int = 0
    """The first seq that is still shown, where older events were asked for and are not shown here."""


class TailLogs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which log, and from where on."""

    stream: Literal["server", "run", "child"]
    id: Annotated[str, Meta(description="The run or child")] | None = None
    from_seq: Annotated[Seq, Meta(description="Left out: the newest")] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    levels: Annotated[list[Level], Meta(max_length=4)] = []
    wait_ms: WaitMs = 0


class LogPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Log lines, ascending."""

    stream: str
    id: str | None
    entries: tuple[dict[str, Any], ...]
    next_seq: int
    truncated_before: int = 0
    looked_back_to: int = 0
    """The oldest seq that was looked at, where the look back ended before the page was full."""


def events_subscribe(call: Call, request: SubscribeEvents) -> EventPage:
    wanted = _wanted(call, request)
    cursor: Cursor = call.kept
    after = request.from_seq if cursor.seq is None else cursor.seq
    scope = wanted._replace(categories=(), levels=(), task_id=None)
    cut = first_kept(bus_of(call.work, scope), after, call.bounds.events) if call.bounds.events else 0
    lines = request.format == "jsonlines"
    shown = _shown(envelope, request.limit, 2 if lines else 1)
    page = cursor.keep(page_after(bus_of(call.work, wanted), wanted.fits, after, shown, cut))
    text = "".join(f"{msgspec.json.encode(entry).decode()}\n" for entry in page.entries) if lines else None
    return EventPage(request.format, page.entries, text, page.next_seq, len(page.entries), page.truncated_before)


def logs_tail(call: Call, request: TailLogs) -> LogPage:
    scope, wanted = _source(call, request), EventFilter(levels=tuple(request.levels))
    source = _source(call, request, wanted.levels)
    cursor: Cursor = call.kept
    shown = _shown(lambda event: _entry(source, event), request.limit)
    after = cursor.seq if cursor.seq is not None else request.from_seq
    if after is UNSET:
        page = newest_page(source, wanted.fits, shown, first_kept(scope, 0, call.bounds.events))
    else:
        page = page_after(source, wanted.fits, after, shown, first_kept(scope, after, call.bounds.events))
    page = cursor.keep(page)
    return LogPage(request.stream, request.id, page.entries, page.next_seq, page.truncated_before, page.looked_back_to)


def _wanted(call: Call, request: SubscribeEvents) -> EventFilter:
    run_id = _one_id(request.run_id, request.graph_id, "run_id and graph_id", "a run and its graph have one id")
    task_id = _one_id(request.job_id, request.node_id, "job_id and node_id", "a task is both job and node")
    if run_id is not None:
        find_workflow(call.work, run_id)
    if request.child_id is not None:
        find_agent(call.work, request.child_id)
    return EventFilter(tuple(request.cats), tuple(request.levels), run_id, task_id, request.child_id)


def _one_id(one: str | None, other: str | None, names: str, why: str) -> str | None:
    """The one id that two arguments may both name."""
    if one is not None and other is not None and one != other:
        raise InvalidParams(f"{names} name different things: {one} and {other}", hint=f"{why}; leave one of them out")
    return one if one is not None else other


def _source(call: Call, request: TailLogs, levels: tuple[str, ...] = ()) -> EventSource:
    """The events of a log, with other levels excluded as far as the store can."""
    if request.stream == "server":
        if request.id is not None:
            raise InvalidParams("the server's log has no id", hint="leave id out, or say stream run or child")
        return bus_of(call.work, EventFilter(levels=levels))
    if request.id is None:
        raise InvalidParams(f"the log of a {request.stream} needs its id", hint="or say stream server for everything")
    if request.stream == "run":
        return OneStream(call.work, find_workflow(call.work, request.id).stream)
    return bus_of(call.work, EventFilter(levels=levels, agent_id=find_agent(call.work, request.id).id))


def _entry(source: EventSource, event: Event) -> dict[str, Any]:
    return {
        "seq": source.number(event),
        "ts": event.at_ms,
        "level": level_of(event),
        "kind": event.kind,
        "jobId": task_of(event),
        "childId": child_of(event),
        "message": line_of(event),
    }


def _shown(entry: Callable[[Event], dict[str, Any]], limit: int | UnsetType, times: int = 1) -> EventForm:
    """A page as large as the caller wants; small if it does not say. `times`: how often the reply repeats an entry."""
    most, room = bounds(limit, LISTED)
    return EventForm(entry, most, room // times)


_UNKNOWN_RUN = "an unknown workflow is refused"
_UNKNOWN_AGENT = "an unknown agent is refused"

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="events_subscribe",
        toolset=EVENTS,
        effect=Effect.READ,
        stored=True,
        wait=Wait(for_ms=lambda request: request.wait_ms, is_over=lambda answer: bool(answer.events), keeps=Cursor),
        summary="Lists events after from_seq in order, filtered; may wait for one. Continue with next_seq",
        request=SubscribeEvents,
        response=EventPage,
        handler=events_subscribe,
        refusals=(RunNotFound, AgentNotFound),
        examples=(
            Example(
                title="what happened in a run",
                given=PLANNED,
                request={"run_id": "wf_1", "cats": ["graph"], "limit": 1},
                response={
                    "format": "json",
                    "events": [
                        {"seq": 1, "cat": "graph", "level": "info", "runId": "wf_1", "kind": "WORKFLOW.CREATED"}
                    ],
                    "stream": None,
                    "next_seq": 1,
                    "count": 1,
                },
            ),
            Example(
                title="as lines of JSON",
                given=PLANNED,
                request={"from_seq": 1, "format": "jsonlines"},
                response={"format": "jsonlines", "stream": "...WORKFLOW.PLANNED...", "next_seq": 2, "count": 1},
            ),
            Example(
                title="nothing has gone wrong",
                given=PLANNED,
                request={"levels": ["warn", "error"]},
                response={"events": [], "next_seq": 2, "count": 0},
            ),
            Example(title=_UNKNOWN_RUN, request={"run_id": "wf_9"}, refused=RunNotFound),
            Example(title=_UNKNOWN_AGENT, request={"child_id": "ag_9"}, refused=AgentNotFound),
        ),
    ),
    Operation(
        name="logs_tail",
        toolset=EVENTS,
        effect=Effect.READ,
        stored=True,
        wait=Wait(for_ms=lambda request: request.wait_ms, is_over=lambda answer: bool(answer.entries), keeps=Cursor),
        summary="Shows the newest log lines of the server, a run or a child, or those after from_seq",
        request=TailLogs,
        response=LogPage,
        handler=logs_tail,
        refusals=(RunNotFound, AgentNotFound),
        examples=(
            Example(
                title="the newest line of a run",
                given=PLANNED,
                request={"stream": "run", "id": "wf_1", "limit": 1},
                response={
                    "stream": "run",
                    "id": "wf_1",
                    "entries": [{"seq": 2, "level": "info", "message": "workflow wf_1: planned by ..."}],
                    "next_seq": 2,
                },
            ),
            Example(
                title="what a child did",
                given=(ANNA,),
                request={"stream": "child", "id": "ag_1", "from_seq": 0},
                response={"entries": [{"seq": 1, "kind": "agent.registered", "childId": "ag_1"}], "next_seq": 1},
            ),
            Example(title=_UNKNOWN_RUN, request={"stream": "run", "id": "wf_9"}, refused=RunNotFound),
            Example(title=_UNKNOWN_AGENT, request={"stream": "child", "id": "ag_9"}, refused=AgentNotFound),
        ),
    ),
)
