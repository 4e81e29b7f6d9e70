"""The ledger as a list for people: the newest page first, older pages by position, filtered by what events are about.
Reads only.

It contains nothing secret: the ledger has only hashes of secrets, and these are left out here, as are the texts of
messages, which are private to their two correspondents. Long values are cut.

An event in a few words, with things named as people know them: `completed “Wrap the fetch”`. Reads names.

`registry/envelopes.py` makes lines with every detail; this is for places that a person only glances at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from handrail.domain.gates.gate import Gate
from handrail.domain.overview.messages import people
from handrail.domain.overview.rows import agent_names, task_names
from handrail.domain.registry.envelopes import ABOUT_TASKS, RUN, bounded, category_of, level_of, task_of
from handrail.domain.registry.event_kinds import KINDS
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams
from handrail.kernel.ledger import EVERYTHING, Change, Event, Only
from handrail.kernel.records import UnitOfWork, found_by
from handrail.kernel.wording import on_one_line, shortened

QUOTED = 120
"""The most characters quoted from somebody."""
_OWN_NAME = ("agent.", "repository.", "template.", "graph.", "ledger.")
"""Kinds of events about something with a name of its own that is neither a task nor a workflow."""


def told(unit: UnitOfWork, events: Iterable[Event]) -> dict[int, str]:
    """The words for each event, by position. Things deleted since are named as the events themselves name them."""
    given = list(events)
    found = [_taken_back(event) or event for event in given]
    undone = {event.position for event in given if event.kind == "ledger.undo"}
    about = {event.position: task_of(event) for event in found}
    runs = (event.stream for event in found if event.stream.startswith(RUN))
    live = {one.id: one.name for one in found_by(unit, Workflow, "id", runs)}
    names = {**_names_within(found), **task_names(unit, about.values()), **live}
    written = {event.position: _recipients(event) for event in found if event.kind == "message.sent"}
    called = people(unit, (key for keys in written.values() for key in keys))
    gates = _questions(unit, found)
    words = {}
    for event in found:
        task = about[event.position]
        if event.kind == "message.sent":
            thing = ", ".join(called[key] for key in written[event.position][:3])
        elif event.kind.startswith("bb."):
            thing = ", ".join(change.key for change in event.changes if change.table == "board")
        elif task is not None and event.kind.startswith(("task.", "checkpoint.")):
            thing = f"“{names.get(task, task)}”"
        elif event.stream.startswith(RUN):
            thing = f"“{names.get(event.stream, event.stream)}”"
        else:
            thing = _own_name(event)
        did = "took back: " if event.position in undone else ""
        said = _own_words(event) or _asked(event, gates)
        words[event.position] = shortened(f"{did}{_verb(event)} {thing}".strip() + said, 2 * QUOTED)
    return words


def _taken_back(event: Event) -> Event | None:
    """For an undo, the event it undid, as far as it says so; None for any other event."""
    kind = event.data.get("kind")
    if event.kind != "ledger.undo" or not isinstance(kind, str):
        return None
    back = [Change(change.table, change.key, change.before, change.after) for change in reversed(event.changes)]
    return event._replace(kind=kind, changes=back, data={})


def _names_within(events: Iterable[Event]) -> dict[str, str]:
    """The names of tasks and workflows in these events, by id: the only source for those since deleted."""
    names: dict[str, str] = {}
    for event in events:
        for change in event.changes:
            name = _name_in(change) if change.table in ("task", "workflow") else None
            if name is not None:
                names[change.key] = name
    return names


def _name_in(change: Change) -> str | None:
    for row in (change.after, change.before):
        if row is not None and row.get("name"):
            return str(row["name"])
    return None


def _own_name(event: Event) -> str:
    """The name of the thing that an event made or changed; empty if it does not say."""
    if not event.kind.startswith(_OWN_NAME) or event.actor == event.stream:
        return ""
    name = next(filter(None, map(_name_in, event.changes)), None)
    return "" if name is None else f"“{on_one_line(name)}”"


def _questions(unit: UnitOfWork, events: Iterable[Event]) -> dict[str, Gate]:
    """The questions that these events are about."""
    keys = (change.key for event in events for change in event.changes if change.table == "gate")
    return {gate.id: gate for gate in found_by(unit, Gate, "id", keys)}


def _asked(event: Event, gates: Mapping[str, Gate]) -> str:
    """For an event about a question, what was asked and answered; for a run that moved, the phase it reached."""
    if event.kind == "pipeline.moved":
        return f", now at {event.data['phase']}" if event.data.get("phase") else ""
    if not event.kind.startswith(("gate.", "review.")):
        return ""
    gate = next((gates[change.key] for change in event.changes if change.key in gates), None)
    if gate is None:
        return ""
    answer = f": {gate.answer}" if gate.answer is not None and event.kind in ("gate.answered", "review.closed") else ""
    return f", {shortened(on_one_line(gate.question), QUOTED)}{answer}"


def _verb(event: Event) -> str:
    kind = KINDS.get(event.kind)
    if kind is not None and kind.of_another and event.actor != event.stream:
        return kind.of_another
    thing, _, word = event.kind.partition(".")
    return (kind.verb if kind is not None else "") or f"{thing}: {word.replace('_', ' ')}"


def _recipients(event: Event) -> list[str]:
    return [str(row["recipient_id"]) for row in event.rows("message") if "recipient_id" in row]


def _own_words(event: Event) -> str:
    """The text that came with it: a note's summary, a task's error."""
    for table, column in (("checkpoint", "summary"), ("task", "error")):
        for row in event.rows(table):
            if event.kind in ("checkpoint.added", "task.failed") and row.get(column):
                return f": {shortened(on_one_line(str(row[column])), QUOTED)}"
    reason = event.data.get("reason")
    return f": {shortened(on_one_line(reason), QUOTED)}" if isinstance(reason, str) and reason.strip() else ""


SHOWN = 100
MOST = 500
CHANGES = 50
"""How many row changes are shown with one event."""
PAGE = 500
GROWS = 8
"""The factor by which the search goes further back each time too little was found."""
OF_TASK = 5000
"""How many of a workflow's newest events are searched for those about one of its tasks."""
_LEFT_OUT = {"agent": ("secret_hash",), "token": ("secret_hash",), "message": ("subject", "body")}


class EventQuery(NamedTuple):
    """Which events are wanted."""

    only: Only = Only()
    before: int | None = None
    """Only events before this position."""
    after: int | None = None
    """Only events after this position, starting with the first."""
    limit: int = SHOWN
    changes: bool = False
    """True to include what each did to rows."""
    task: Task | None = None
    """Only events about this task, from its workflow's stream."""


class RowChange(msgspec.Struct, frozen=True, kw_only=True):
    """What an event did to one row: the columns that changed. Null for a deleted row."""

    table: str
    key: str
    after: dict[str, Any] | None


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """One event."""

    position: int
    stream: str
    seq: int
    kind: str
    category: str
    level: str
    actor: str
    actor_name: str
    channel: str
    at: int
    text: str
    """What was done, and to what, in one line with names; `actor_name` says who did it."""
    data: dict[str, Any]
    changes: list[RowChange] | UnsetType = UNSET
    changed: int | UnsetType = UNSET
    """How many rows it changed."""


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """Events, newest first."""

    events: list[EventRow]
    oldest: int | None
    """The position of the oldest event here; the next page comes before it."""
    newest: int | None
    more: int
    """1 if there are more: older events or, when asked for those after a position, later ones."""
    position: int
    """The position of the newest event in the ledger, whether it matches or not."""


def events(unit: UnitOfWork, wanted: EventQuery) -> Events:
    limit = min(max(1, wanted.limit), MOST)
    if wanted.task is not None:
        found = _of_task(unit, wanted, wanted.task)
    elif wanted.after is not None:
        found = unit.feed(wanted.after, limit + 1, wanted.only)
    elif wanted.before is not None or wanted.only.kinds:
        before = wanted.before if wanted.before is not None else unit.position() + 1
        found = _before(unit, before, limit + 1, wanted.only)
    else:
        found = unit.newest(limit + 1, wanted.only)
    shown = found[:limit] if wanted.after is not None else found[-limit:]
    return Events(
        events=_rows(unit, shown[::-1], changes=wanted.changes),
        oldest=shown[0].position if shown else None,
        newest=shown[-1].position if shown else None,
        more=int(len(found) > limit),
        position=unit.position(),
    )


def kinds_meant(given: Sequence[str]) -> tuple[str, ...]:
    """The prefixes of kinds that somebody means who may have typed only a part: `task` or `tas` means `task.`. Refuses
    what matches no kind, because the whole ledger would be searched for nothing."""
    meant: list[str] = []
    for part in given:
        word = part.casefold()
        fitting = [kind for kind in KINDS if kind.startswith(word)]
        if not fitting:
            families = dict.fromkeys(kind.partition(".")[0] for kind in KINDS)
            raise InvalidParams(f"there is no event kind {part[:100]}", hint=f"kinds begin with {', '.join(families)}")
        meant += [word] if "." in word else dict.fromkeys(f"{kind.partition('.')[0]}." for kind in fitting)
    return tuple(dict.fromkeys(meant))


def _of_task(unit: UnitOfWork, wanted: EventQuery, task: Task) -> list[Event]:
    before = wanted.before if wanted.before is not None else unit.position() + 1
    after = wanted.after or 0
    return [event for event in events_about(unit, task, wanted.only) if after < event.position < before]


def events_about(unit: UnitOfWork, task: Task, only: Only = EVERYTHING) -> list[Event]:
    """The events about a task among the newest of its workflow, oldest first."""
    within = Only((task.workflow_id,), only.actors, only.kinds or ABOUT_TASKS)
    return [event for event in unit.newest(OF_TASK, within) if task_of(event) == task.id]


def _before(unit: UnitOfWork, position: int, count: int, only: Only) -> list[Event]:
    """The newest `count` events before a position. The ledger can only be read forwards, so ever larger ranges before
    the position are searched until one holds enough. Only the start of the ledger ends this: the gaps between positions
    depend on the database engine, and kinds are whole families, which have an index."""
    span, position = count, min(position, unit.position() + 1)
    while True:
        low = max(0, position - 1 - span)
        found: list[Event] = []
        last = low
        while last < position - 1:
            page = unit.feed(last, PAGE, only)
            fitting = [event for event in page if event.position < position]
            found = [*found, *fitting][-count:]
            if len(fitting) < PAGE:
                break
            last = page[-1].position
        if len(found) >= count or low == 0:
            return found
        span *= GROWS


def _rows(unit: UnitOfWork, shown: Sequence[Event], *, changes: bool) -> list[EventRow]:
    names = agent_names(unit, (event.actor for event in shown))
    texts = told(unit, shown)
    return [
        EventRow(
            position=event.position,
            stream=event.stream,
            seq=event.seq,
            kind=event.kind,
            category=category_of(event),
            level=level_of(event),
            actor=event.actor,
            actor_name=names[event.actor],
            channel=event.channel,
            at=event.at_ms,
            text=texts[event.position],
            data=bounded(event.data),
            changes=[_change(change) for change in list(event.changes)[:CHANGES]] if changes else UNSET,
            changed=len(event.changes) if changes else UNSET,
        )
        for event in shown
    ]


def _change(change: Change) -> RowChange:
    hidden = _LEFT_OUT.get(change.table, ())
    after = change.after
    shown = bounded({name: after[name] for name in after if name not in hidden}) if after is not None else None
    return RowChange(table=change.table, key=change.key, after=shown)
