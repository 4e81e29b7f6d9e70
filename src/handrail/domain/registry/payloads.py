"""What is at an address, as registry.md shows it: the events of a run, the log of a child, the entries of a board.
Graphs are in `graphs.py`. No store.

If a retention is set, only the newest events are shown. Nothing is left out silently, whether hidden by the retention
or by the size of one reply: `truncated_before` is the first event shown.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from handrail.domain.board.entry import EntrySnapshot, board_stream
from handrail.domain.board.entry import snapshot as shown_entry
from handrail.domain.board.queries import EntryQuery, search
from handrail.domain.registry.envelopes import AGENT, ROUTINE, level_of, line_of, task_of
from handrail.domain.registry.tail import EventForm, bus_of_agent, first_kept, newest_page
from handrail.domain.reply_size import within
from handrail.kernel.errors import ResourceNotFound
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
        "payload": _payload(event),
    }


def _payload(event: Event) -> dict[str, Any]:
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
