"""A ledger event as a subscriber sees it: its category, how much it matters, which task and which agent it is about,
and one line to read. Pure functions of one event.

Categories follow from the prefix of an event's kind, so that a store can filter by them. `event_kinds.py` lists every
kind there is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec

from handrail.domain.board.board import SAME
from handrail.domain.graphs.records import STREAM
from handrail.domain.registry.cancellation import call_stream
from handrail.domain.registry.event_kinds import EVENT_KINDS, KINDS
from handrail.kernel.ledger import Change, Event
from handrail.kernel.wording import on_one_line, shortened

CATEGORIES: dict[str, tuple[str, ...]] = {
    "child": ("agent.", "message."),
    "scheduler": ("task.",),
    "graph": ("workflow.", "template.", "graph.", "tx."),
    "bb": ("bb.",),
    "op": ("op.",),
    "journal": ("checkpoint.",),
    "gate": ("gate.", "review."),
    "pipeline": ("pipeline.",),
    "workspace": ("workspace.", "paths.", "repository."),
    "store": ("ledger.", "token."),
    "values": ("values.", "facts."),
}
"""Every category, and the prefixes of its kinds."""
OTHER = "other"
"""The category of a kind that only a newer Handrail knows about."""
LEVELS = ("info", "warn", "error")
ROUTINE = ("op.started", "op.done")
"""Calls starting and ending: reported only to subscribers that ask for `op`. Otherwise a subscriber with an `op_id`
would be woken by its own calls."""

ABOUT_TASKS = ("checkpoint.", "gate.", "message.", "op.", "paths.", "review.", "task.")
"""Prefixes of the kinds that can be about a task."""

MAY_WARN = tuple(kind.name for kind in EVENT_KINDS if kind.may_warn)

AGENT = "ag_"
RUN = "wf_"
OPERATION = call_stream("")
TX = "tx_"
BOARDS = "bb."
VALUE_CHARS = 1000
"""The most characters of one value in an envelope's data, as JSON."""
DATA_MEMBERS = 20
LINE_CHARS = 300
TEXT_CHARS = 160
"""The most characters that a line quotes from somebody's text."""
_COUNTERS = {"unmet", "unblocks", "open_children", "updated_at"}
"""Columns of a task that change only because something else did."""


def category_of(event: Event) -> str:
    """One of `CATEGORIES`; `OTHER` for an unknown kind."""
    return next((name for name, starts in CATEGORIES.items() if event.kind.startswith(starts)), OTHER)


def level_of(event: Event) -> str:
    """One of `LEVELS`: error for what failed, warn for what was lost, taken over, abandoned or not proven."""
    known = KINDS.get(event.kind)
    level = known.level if known is not None else "info"
    return "warn" if level == "info" and _is_warning(event) else level


def kinds_at(levels: Collection[str]) -> tuple[str, ...]:
    """The kinds of all events that can have one of these levels; empty if any kind can."""
    if "info" in levels:
        return ()
    certain = tuple(kind.name for kind in EVENT_KINDS if kind.level in levels)
    return (*certain, *MAY_WARN) if "warn" in levels else certain


def task_of(event: Event) -> str | None:
    """The id of the task that an event is about, as far as the event itself says."""
    if not event.kind.startswith(ABOUT_TASKS):
        return None
    if isinstance(told := event.data.get("task_id"), str):
        return told
    if event.kind.startswith("task."):
        return _moved_task(event)
    about = {row.get("task_id") for change in event.changes if (row := _created_or_deleted_row(change)) is not None}
    about.discard(None)
    return str(about.pop()) if len(about) == 1 else None


def child_of(event: Event) -> str | None:
    """The agent that did it, or else the agent it was done to."""
    if event.actor.startswith(AGENT):
        return event.actor
    return event.stream if event.stream.startswith(AGENT) else None


def run_of(event: Event) -> str | None:
    """The workflow it belongs to: everything that happens to a workflow is in its own stream."""
    return event.stream if event.stream.startswith(RUN) else None


def graph_of(event: Event) -> str | None:
    """The graph it belongs to, if that is a shared graph, or any graph that a transaction works on."""
    if event.stream.startswith(STREAM):
        return event.stream.removeprefix(STREAM)
    told = event.data.get("graph_id") if event.stream.startswith(TX) else None
    return told if isinstance(told, str) else None


def operation_of(event: Event) -> str | None:
    """The call it belongs to, if that gave an `op_id`."""
    return event.stream.removeprefix(OPERATION) if event.stream.startswith(OPERATION) else None


def line_of(event: Event) -> str:
    """What happened, to what, by whom, in one line."""
    thing, _, verb = event.kind.partition(".")
    subject = _subject(event)
    said = f"{thing} {subject}" if subject else thing
    line = f"{said}: {verb.replace('_', ' ')} by {event.actor}"
    more = ", ".join(part for part in _details(event) if part)
    return shortened(on_one_line(f"{line}; {more}" if more else line), LINE_CHARS)


def envelope(event: Event) -> dict[str, Any]:
    """The event as a subscriber gets it. Members without a value are null, except `data`, which is left out."""
    task, run = task_of(event), run_of(event)
    shown: dict[str, Any] = {
        "seq": event.position,
        "ts": event.at_ms,
        "cat": category_of(event),
        "level": level_of(event),
        "jobId": task,
        "runId": run,
        "opId": operation_of(event),
        "graphId": run or graph_of(event),
        "nodeId": task if run is not None else None,
        "childId": child_of(event),
        "component": event.channel,
        "stage": event.kind.partition(".")[2] or None,
        "elapsedMs": event.data.get("elapsed_ms"),
        "kind": event.kind.upper(),
        "msg": line_of(event),
    }
    if told := data_without_boards(event):
        shown["data"] = bounded(told)
    return shown


def data_without_boards(event: Event) -> Mapping[str, Any]:
    """An event's data, without the contents of boards."""
    if not event.kind.startswith(BOARDS):
        return event.data
    return {name: value for name, value in event.data.items() if name != SAME}


def bounded(data: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an event's data, with long ones cut. A reader that needs everything reads what the event is
    about."""
    return {name: _short(value) for name, value in list(data.items())[:DATA_MEMBERS]}


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return shortened(value, VALUE_CHARS)
    text = msgspec.json.encode(value)
    return value if len(text) <= VALUE_CHARS else shortened(text.decode(), VALUE_CHARS)


# -- how much it matters ----------------------------------------------------------------------------------------------


def _is_warning(event: Event) -> bool:
    if event.kind not in MAY_WARN:
        return False
    data = event.data
    if event.kind == "task.claimed":
        return "taken_from" in data
    if event.kind == "task.released":
        return event.actor != data.get("agent_id")
    if event.kind in ("paths.reserved", "paths.renewed"):
        return "taken_over" in data
    if event.kind == "checkpoint.added":
        return any(row.get("type") == "error" for row in event.rows("checkpoint"))
    if event.kind == "message.sent":
        return any(_tells_of_loss(row.get("body")) for row in event.rows("message"))
    if event.kind == "pipeline.moved":
        return any(_state_of(row).get("ended") == "abandoned" for row in event.rows("pipeline"))
    return False


def _tells_of_loss(body: Any) -> bool:
    return isinstance(body, dict) and str(body.get("event", "")).endswith("_lost")


def _state_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    state = row.get("state")
    return state if isinstance(state, dict) else {}


# -- what it is about -------------------------------------------------------------------------------------------------


def _created_or_deleted_row(change: Change) -> Mapping[str, Any] | None:
    """The row that a change created or deleted."""
    if change.before is None:
        return change.after
    return change.before if change.after is None else None


def _moved_task(event: Event) -> str | None:
    """Of the tasks that an event changes, the one it is about: the others only had their counters updated."""
    claim = next((change.key for change in event.changes if change.table == "lease"), None)
    if claim is not None:
        return claim
    status = event.kind.partition(".")[2]
    tasks = [change for change in event.changes if change.table == "task"]
    ranks: tuple[Callable[[Change], bool], ...] = (
        lambda change: (change.after or {}).get("status") == status,
        lambda change: change.after is None,
        lambda change: bool((change.after or {}).keys() - _COUNTERS),
    )
    return next((change.key for fits in ranks for change in tasks if fits(change)), None)


def _subject(event: Event) -> str:
    """The id of the thing it happened to."""
    task = task_of(event)
    if event.kind.startswith(("task.", "checkpoint.")):
        return task or event.stream
    thing = _TABLES.get(event.kind.partition(".")[0])
    if thing is None:
        return event.stream.removeprefix(OPERATION).removeprefix(STREAM)
    keys = [change.key for change in event.changes if change.table == thing]
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")


_TABLES = {
    "message": "message",
    "gate": "gate",
    "review": "gate",
    "workspace": "workspace",
    "paths": "reservation",
    "bb": "board",
}
"""Events whose subject is a row in their stream rather than the stream itself, with the table of that row."""
_TOLD = {
    "reason": "reason",
    "fence": "fence",
    "taken_from": "taken from",
    "agent_id": "agent",
    "tool": "tool",
    "phase": "phase",
    "key": "key",
    "kind": "of",
    "task": "task",
    "template_id": "template",
    "workspace_id": "workspace",
    "forked_from": "forked from",
    "holder": "holder",
    "graph_id": "graph",
    "tx_id": "transaction",
}
"""Members of an event's data that its line repeats, and the label of each."""


def _details(event: Event) -> Iterator[str]:
    for change in event.changes:
        row = _created_or_deleted_row(change)
        if row is not None:
            yield _quoted(change.table, row)
    for name, words in _TOLD.items():
        told = event.data.get(name)
        if isinstance(told, str | int | float) and not isinstance(told, bool) and told != event.actor:
            yield f"{words} {shortened(str(told), TEXT_CHARS)}"


def _quoted(table: str, row: Mapping[str, Any]) -> str:
    """The author's own words about a new row."""
    if table == "checkpoint":
        return f"{row.get('type')}: {shortened(str(row.get('summary')), TEXT_CHARS)}"
    if table == "gate":
        return shortened(str(row.get("question")), TEXT_CHARS)
    if table == "message":  # its text is private to the two
        return f"{row.get('message_type')} to {row.get('recipient_id')}"
    if table in ("workflow", "agent", "template", "repository"):
        return shortened(str(row.get("name")), TEXT_CHARS)
    if table == "running":
        return str(row.get("tool"))
    return ""
