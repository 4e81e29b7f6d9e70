"""Looking at an address: is anything there, what is it, and what has happened to it since. One entry point for all six
kinds, so that tools and native resources see the same. No store.

Watching a board also removes its expired entries (`board/queries.py`); nothing else here writes.

What is at an address, as registry.md shows it: the events of a run, the log of a child, the entries of a board. Graphs
are in `graphs.py`. No store.

If a retention is set, only the newest events are shown. Nothing is left out silently, whether hidden by the retention
or by the size of one reply: `truncated_before` is the first event shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from handrail.domain.board.entry import EntrySnapshot, board_stream, check_board
from handrail.domain.board.entry import snapshot as shown_entry
from handrail.domain.board.queries import EntryQuery, search
from handrail.domain.board.queries import watch as watch_board
from handrail.domain.crew.agent import Agent
from handrail.domain.graphs.history import history, version_step
from handrail.domain.graphs.records import STREAM, SharedGraph, Transaction
from handrail.domain.registry.addresses import Address, board, graph, graph_version, snapshot
from handrail.domain.registry.addresses import child_logs as child_logs_at
from handrail.domain.registry.addresses import run_events as run_events_at
from handrail.domain.registry.envelopes import AGENT, ROUTINE, TX, level_of, line_of, run_of, task_of
from handrail.domain.registry.graphs import (
    Owner,
    at_version,
    changes_graph,
    latest,
    shared_at_version,
    shared_latest,
    shared_snapshot,
    snapshot_of,
    tx_of_version,
    tx_snapshot,
    version_of_tx,
    versions_there,
)
from handrail.domain.registry.tail import EventForm, OneStream, bus_of_agent, first_kept, newest_page, page_after
from handrail.domain.reply_size import within
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams, ResourceNotFound
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import UnitOfWork

NEWEST = 200
"""How many events or entries one reply shows."""
CHANGES = 12
"""How many rows one event names."""
DATA = 1000
"""The most bytes of an event's data, as JSON."""
COUNTED = 10_000
"""How many lines of a log are counted; for a longer one the count is a minimum."""
BOARD = 256 * 1024
"""The most bytes of a board's entries, as JSON; a single value may take up to a quarter of it."""
_PAGE = 500


class RunEvents(msgspec.Struct, frozen=True, kw_only=True, rename={"run_id": "runId"}):
    """The newest events of a run."""

    run_id: str
    events: list[dict[str, Any]]
    total: int
    truncated_before: int | UnsetType = UNSET


class ChildLogs(msgspec.Struct, frozen=True, kw_only=True, rename={"child_id": "childId"}):
    """The newest lines of a child's log."""

    child_id: str
    logs: list[dict[str, Any]]
    total: int | UnsetType = UNSET
    total_at_least: int | UnsetType = UNSET
    """Replaces `total` if not all were counted."""
    truncated_before: int | UnsetType = UNSET


class BoardEntries(msgspec.Struct, frozen=True, kw_only=True):
    """What is on a board, by key."""

    namespace: str
    entries: list[EntrySnapshot]
    total: int
    after: str | UnsetType = UNSET
    """The last key shown, if there are more: bb_query continues there."""


# -- runs -------------------------------------------------------------------------------------------------------------


def run_events(unit: UnitOfWork, run_id: str, keep: int) -> RunEvents:
    """The newest events of a run. `keep` is how many may be shown; 0 means all."""
    total = unit.head_seq(run_id)
    first = max(1, total - min(NEWEST, keep or NEWEST) + 1)
    shown = unit.events(run_id, after=first - 1, limit=NEWEST)
    return RunEvents(
        run_id=run_id,
        events=[run_event(event) for event in shown],
        total=total,
        truncated_before=first if first > 1 else UNSET,
    )


def run_event(event: Event) -> dict[str, Any]:
    """An event of a workflow: `jobId` is the task it is about, `childId` the agent that did it."""
    return {
        "seq": event.seq,
        "ts": event.at_ms,
        "kind": event.kind,
        "level": level_of(event),
        "jobId": task_of(event),
        "childId": event.actor if event.actor.startswith(AGENT) else None,
        "payload": _event_payload(event),
    }


def _event_payload(event: Event) -> dict[str, Any]:
    """What an event says, in short: its data, and which rows it changed, without their contents."""
    shown: dict[str, Any] = {"actor": event.actor, "channel": event.channel}
    if event.data:
        text = msgspec.json.encode(event.data)
        shown["data"] = event.data if len(text) <= DATA else {"cut": text[:DATA].decode(errors="ignore")}
    if event.changes:
        shown["changed"] = [f"{change.table} {change.key}" for change in event.changes[:CHANGES]]
    if len(event.changes) > CHANGES:
        shown["changedTotal"] = len(event.changes)
    return shown


# -- children ---------------------------------------------------------------------------------------------------------


def child_logs(unit: UnitOfWork, child_id: str, keep: int) -> ChildLogs:
    """The newest lines of an agent's log: what it wrote, and what happened to it."""
    total, is_all = _lines(unit, child_id)
    log = bus_of_agent(unit, child_id)
    shown = newest_page(log, is_line, EventForm(log_entry, NEWEST), first_kept(log, 0, keep)).entries
    return ChildLogs(
        child_id=child_id,
        logs=list(shown),
        total=total if is_all else UNSET,
        total_at_least=UNSET if is_all else total,
        truncated_before=shown[0]["seq"] if shown and total > len(shown) else UNSET,
    )


def is_line(event: Event) -> bool:
    """Whether a log shows an event. It does not show calls starting and ending."""
    return event.kind not in ROUTINE


def log_entry(event: Event) -> dict[str, Any]:
    """A line of a log. It is numbered by position in the ledger, because a child's lines come from many streams."""
    return {"seq": event.position, "ts": event.at_ms, "stream": "meta", "message": line_of(event)}


def _lines(unit: UnitOfWork, child_id: str) -> tuple[int, bool]:
    """How many lines a log has, and whether that is all of them. Counting stops at a limit, so that reading the newest
    lines does not cost more in a long log."""
    count, after, looked_at = unit.head_seq(child_id), 0, 0
    while page := unit.feed(after, _PAGE, Only(actors=(child_id,))):
        if looked_at >= COUNTED:
            return count, False
        count += sum(event.stream != child_id and is_line(event) for event in page)
        after, looked_at = page[-1].position, looked_at + len(page)
    return count, True


# -- boards -----------------------------------------------------------------------------------------------------------


def board_entries(unit: UnitOfWork, namespace: str) -> BoardEntries:
    """What is on a board; refused if nothing ever was."""
    if not unit.head_seq(board_stream(namespace)):
        raise ResourceNotFound(
            f"nothing was ever set on the board {namespace}", hint="bb_set sets something; resources_list shows boards"
        )
    found = search(unit, EntryQuery(board=namespace), NEWEST)
    shown = within([shown_entry(entry) for entry in found.entries], BOARD)
    last = shown[-1].key if len(shown) < len(found.entries) else found.next
    return BoardEntries(
        namespace=namespace,
        entries=shown,
        total=found.total if found.total is not None else len(shown),
        after=last if last is not None else UNSET,
    )


class AddressChanges(NamedTuple):
    """What happened at an address after a sequence number."""

    events: list[dict[str, Any]]
    truncated_before: int = 0
    """The first event still shown, if some that were asked for no longer are."""
    looked_to: int = 0
    """The last number that was examined. If nothing was found, the next look can start there."""


class Most(NamedTuple):
    """How much is shown at once. At least one entry is shown even if it is too long, so that a reader always makes
    progress."""

    events: int
    bytes: int


def read(unit: UnitOfWork, address: Address, *, keep: int) -> dict[str, Any]:
    """What is at an address, in the shape its document defines. `keep` is how many events of one run or child may be
    shown; 0 means all."""
    shown: dict[str, Any] = msgspec.to_builtins(_payload(unit, address, keep))
    return shown


def _payload(unit: UnitOfWork, address: Address, keep: int) -> Any:
    match address.kind:
        case "graph" | "graph_version" | "snapshot":
            return _graph(unit, address)
        case "run_events":
            return run_events(unit, _workflow(unit, address).id, keep)
        case "child_logs":
            return child_logs(unit, _agent(unit, address).id, keep)
        case "blackboard_namespace":
            return board_entries(unit, address.id)


def _graph(unit: UnitOfWork, address: Address) -> Any:
    """A graph now, at an earlier version, or before and after a change: a workflow's plan, or a shared graph."""
    owner = _owner(unit, address)
    if address.kind == "snapshot" and (tx := _tx(unit, address)) is not None:
        return tx_snapshot(unit, owner, tx)
    if isinstance(owner, SharedGraph):
        match address.kind:
            case "graph":
                return shared_latest(unit, owner)
            case "graph_version":
                return shared_at_version(unit, owner, address.version)
            case _:
                return shared_snapshot(unit, owner, address.tx)
    match address.kind:
        case "graph":
            return latest(unit, owner)
        case "graph_version":
            return at_version(unit, owner, address.version)
        case _:
            return snapshot_of(unit, owner, address.tx)


def check(unit: UnitOfWork, address: Address) -> None:
    """Refuses an address where nothing can ever happen. A board may be watched before anything is on it."""
    match address.kind:
        case "child_logs":
            _agent(unit, address)
        case "blackboard_namespace":
            _board(address)
        case "run_events":
            _workflow(unit, address)
        case "graph":
            _owner(unit, address)
        case "graph_version" | "snapshot":
            owner = _owner(unit, address)
            if _tx(unit, address) is None and _version(address) not in versions_there(unit, owner):
                _payload(unit, address, 0)  # raises the refusal, with the reason


def watch(unit: UnitOfWork, address: Address, after: int, most: Most, *, keep: int) -> AddressChanges:
    """What happened there after a sequence number, as much of it as fits."""
    if address.kind == "blackboard_namespace":
        return _watched_board(unit, address, after, most, keep)
    check(unit, address)
    if address.kind == "child_logs":
        log = bus_of_agent(unit, address.id)
        page = page_after(log, is_line, after, EventForm(log_entry, *most), first_kept(log, after, keep))
        return AddressChanges(list(page.entries), page.truncated_before, page.next_seq)
    stream, is_tx = _stream(unit, address)
    if address.kind in ("graph_version", "snapshot") and not is_tx:
        end = unit.head_seq(stream)
        cut = first_kept(OneStream(unit, stream), after, keep)
        made = _made_or_taken_back(unit, stream, _version(address), max(after, cut - 1))
        return AddressChanges([run_event(event) for event in islice(made, most.events)], cut, max(after, end))
    run = OneStream(unit, stream)
    fits = changes_graph if address.kind == "graph" else _every_one
    page = page_after(run, fits, after, EventForm(run_event, *most), first_kept(run, after, keep))
    return AddressChanges(list(page.entries), page.truncated_before, page.next_seq)


def _watched_board(unit: UnitOfWork, address: Address, after: int, most: Most, keep: int) -> AddressChanges:
    _board(address)
    board = watch_board(unit, address.id, after, most.events, history=keep)
    changes = [{"seq": change.version, **msgspec.to_builtins(change)} for change in board.changes]
    cut = board.truncated_before if after + 1 < board.truncated_before else 0
    return AddressChanges(within(changes, most.bytes), cut, max(after, board.version))


def touched(event: Event) -> Iterator[Address]:
    """The addresses whose content an event changed."""
    run, child = run_of(event), event.stream if event.stream.startswith(AGENT) else None
    if run is not None:
        yield run_events_at(run)
        yield from _touched_graph(event, run)
    elif event.stream.startswith(_BOARD):
        yield board(event.stream.removeprefix(_BOARD))
    elif event.stream.startswith(STREAM):
        yield from _touched_graph(event, event.stream.removeprefix(STREAM))
    elif event.stream.startswith(TX) and isinstance(of := event.data.get("graph_id"), str):
        yield snapshot(of, event.stream)
    if is_line(event):
        actor = event.actor if event.actor.startswith(AGENT) else None
        yield from (child_logs_at(agent) for agent in dict.fromkeys((actor, child)) if agent is not None)


def _touched_graph(event: Event, graph_id: str) -> Iterator[Address]:
    if changes_graph(event):
        yield graph(graph_id)
    if (step := version_step(event)) is not None:
        yield graph_version(graph_id, max(step))
        yield snapshot(graph_id, tx_of_version(max(step)))


_BOARD = board_stream("")


def _every_one(_: Event) -> bool:
    return True


def _made_or_taken_back(unit: UnitOfWork, stream: str, version: int, after: int) -> Iterator[Event]:
    """The events after a number that made a version or undid it. Only the very next event can undo it, so the event
    that the caller already knows is examined too: after that one, there may be nothing more to come."""
    is_made = False
    for event in history(unit, stream, max(0, after - 1)):
        step = version_step(event)
        if is_made and (step is None or step[1] >= version):
            return
        is_made = step is not None and step[1] >= version
        if step is not None and max(step) == version and event.seq > after:
            yield event


def _version(address: Address) -> int:
    return address.version if address.kind == "graph_version" else version_of_tx(address.tx) or 0


def _owner(unit: UnitOfWork, address: Address) -> Owner:
    """The workflow or shared graph that an address names."""
    found = unit.get(Workflow, address.id) or unit.get(SharedGraph, address.id)
    if found is None:
        raise _not_found(address, "graph")
    return found


def _tx(unit: UnitOfWork, address: Address) -> Transaction | None:
    """The transaction that an address names, if it is one on that graph."""
    tx = unit.get(Transaction, address.tx) if address.tx.startswith(TX) else None
    return tx if tx is not None and tx.graph_id == address.id else None


def _stream(unit: UnitOfWork, address: Address) -> tuple[str, bool]:
    """The stream with the events of an address, and whether it is a transaction's."""
    if address.kind == "run_events":
        return address.id, False
    tx = _tx(unit, address) if address.kind == "snapshot" else None
    return (tx.stream, True) if tx is not None else (_owner(unit, address).stream, False)


def _workflow(unit: UnitOfWork, address: Address) -> Workflow:
    workflow = unit.get(Workflow, address.id)
    if workflow is None:
        raise _not_found(address, "workflow")
    return workflow


def _agent(unit: UnitOfWork, address: Address) -> Agent:
    agent = unit.get(Agent, address.id)
    if agent is None:
        raise _not_found(address, "agent")
    return agent


def _not_found(address: Address, what: str) -> ResourceNotFound:
    return ResourceNotFound(
        f"there is no {what} {address.id}", hint="resources_list shows what there is", uri=address.uri
    )


def _board(address: Address) -> None:
    try:
        check_board(address.id)
    except InvalidParams as refusal:
        raise ResourceNotFound(refusal.message, hint=refusal.hint, uri=address.uri) from None
