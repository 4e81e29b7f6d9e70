"""Looking at an address: is anything there, what is it, and what has happened to it since. One door for all six kinds,
so that tools and native resources see the same. No store.

Watching a board also writes off what has run out on it (`board/watching.py`); nothing else here writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from handrail.domain.board.entry import board_stream
from handrail.domain.board.keys import check_board
from handrail.domain.board.watching import watch as watch_board
from handrail.domain.crew.agent import Agent
from handrail.domain.registry.addresses import Address, board, graph, graph_version, snapshot
from handrail.domain.registry.addresses import child_logs as child_logs_at
from handrail.domain.registry.addresses import run_events as run_events_at
from handrail.domain.registry.envelopes import AGENT, run_of
from handrail.domain.registry.graphs import (
    at_version,
    changes_graph,
    history,
    latest,
    snapshot_of,
    tx_of_version,
    version_of_tx,
    version_step,
    versions_of,
)
from handrail.domain.registry.payloads import (
    board_entries,
    child_logs,
    is_line,
    log_entry,
    run_event,
    run_events,
    within,
)
from handrail.domain.registry.tailing import OneStream, Shown, bus_of_agent, first_kept, page_after
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams, ResourceNotFound
from handrail.kernel.ledger import Event
from handrail.kernel.records import UnitOfWork


class Watched(NamedTuple):
    """What happened at an address after a number."""

    events: list[dict[str, Any]]
    truncated_before: int = 0
    """The first event that is still shown, where some that were asked for are not."""
    looked_to: int = 0
    """The last number that was looked at. Where nothing was found, the next look can begin there."""


class Most(NamedTuple):
    """How much is shown at once. Of what is too long one is shown all the same, so that whoever goes on gets on."""

    events: int
    bytes: int


def read(unit: UnitOfWork, address: Address, *, keep: int) -> dict[str, Any]:
    """What lies there, in its document's shape. `keep`: events of one run or child that are shown at all; 0 is every
    one."""
    shown: dict[str, Any] = msgspec.to_builtins(_payload(unit, address, keep))
    return shown


def _payload(unit: UnitOfWork, address: Address, keep: int) -> Any:
    match address.kind:
        case "graph":
            return latest(unit, _workflow(unit, address))
        case "graph_version":
            return at_version(unit, _workflow(unit, address), address.version)
        case "snapshot":
            return snapshot_of(unit, _workflow(unit, address), address.tx)
        case "run_events":
            return run_events(unit, _workflow(unit, address).id, keep)
        case "child_logs":
            return child_logs(unit, _agent(unit, address).id, keep)
        case "blackboard_namespace":
            return board_entries(unit, address.id)


def check(unit: UnitOfWork, address: Address) -> None:
    """Refuses an address where nothing can ever happen. A board may be waited for before anything stands on it."""
    match address.kind:
        case "child_logs":
            _agent(unit, address)
        case "blackboard_namespace":
            _board(address)
        case "graph" | "run_events":
            _workflow(unit, address)
        case "graph_version" | "snapshot":
            workflow = _workflow(unit, address)
            if _version(address) not in versions_of(unit, workflow.id):
                _payload(unit, address, 0)  # which is refused, and says why


def watch(unit: UnitOfWork, address: Address, after: int, most: Most, *, keep: int) -> Watched:
    """What happened there after a number, as much of it as fits."""
    if address.kind == "blackboard_namespace":
        return _watched_board(unit, address, after, most, keep)
    check(unit, address)
    if address.kind in ("graph_version", "snapshot"):
        end = unit.head_seq(address.id)
        cut = first_kept(OneStream(unit, address.id), after, keep)
        made = _made_or_taken_back(unit, address.id, _version(address), max(after, cut - 1))
        return Watched([run_event(event) for event in islice(made, most.events)], cut, max(after, end))
    if address.kind == "child_logs":
        log = bus_of_agent(unit, address.id)
        page = page_after(log, is_line, after, Shown(log_entry, *most), first_kept(log, after, keep))
    else:
        run = OneStream(unit, address.id)
        fits = changes_graph if address.kind == "graph" else _every_one
        page = page_after(run, fits, after, Shown(run_event, *most), first_kept(run, after, keep))
    return Watched(list(page.entries), page.truncated_before, page.next_seq)


def _watched_board(unit: UnitOfWork, address: Address, after: int, most: Most, keep: int) -> Watched:
    _board(address)
    board = watch_board(unit, address.id, after, most.events, history=keep)
    changes = [{"seq": change.version, **msgspec.to_builtins(change)} for change in board.changes]
    cut = board.truncated_before if after + 1 < board.truncated_before else 0
    return Watched(within(changes, most.bytes), cut, max(after, board.version))


def touched(event: Event) -> Iterator[Address]:
    """The addresses at which something is different after an event."""
    run, child = run_of(event), event.stream if event.stream.startswith(AGENT) else None
    if run is not None:
        yield run_events_at(run)
        if changes_graph(event):
            yield graph(run)
        if (step := version_step(event)) is not None:
            yield graph_version(run, max(step))
            yield snapshot(run, tx_of_version(max(step)))
    elif event.stream.startswith(_BOARD):
        yield board(event.stream.removeprefix(_BOARD))
    if is_line(event):
        actor = event.actor if event.actor.startswith(AGENT) else None
        yield from (child_logs_at(agent) for agent in dict.fromkeys((actor, child)) if agent is not None)


_BOARD = board_stream("")


def _every_one(_: Event) -> bool:
    return True


def _made_or_taken_back(unit: UnitOfWork, graph_id: str, version: int, after: int) -> Iterator[Event]:
    """The events after a number that made a version or took it back. Only the very next event can do that, so the one
    that the caller knows already is looked at too: from there on nothing more may be to come."""
    is_made = False
    for event in history(unit, graph_id, max(0, after - 1)):
        step = version_step(event)
        if is_made and (step is None or step[1] >= version):
            return
        is_made = step is not None and step[1] >= version
        if step is not None and max(step) == version and event.seq > after:
            yield event


def _version(address: Address) -> int:
    return address.version if address.kind == "graph_version" else version_of_tx(address.tx) or 0


def _workflow(unit: UnitOfWork, address: Address) -> Workflow:
    workflow = unit.get(Workflow, address.id)
    if workflow is None:
        raise _nobody(address, "workflow")
    return workflow


def _agent(unit: UnitOfWork, address: Address) -> Agent:
    agent = unit.get(Agent, address.id)
    if agent is None:
        raise _nobody(address, "agent")
    return agent


def _nobody(address: Address, what: str) -> ResourceNotFound:
    return ResourceNotFound(
        f"there is no {what} {address.id}", hint="resources_list shows what there is", uri=address.uri
    )


def _board(address: Address) -> None:
    try:
        check_board(address.id)
    except InvalidParams as refusal:
        raise ResourceNotFound(refusal.message, hint=refusal.hint, uri=address.uri) from None
