"""An event in a few words, with things named as people know them: `completed “Wrap the fetch”`. Reads names.

`registry/envelopes.py` makes lines with every detail; this is for places that a person only glances at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from handrail.domain.gates.gate import Gate
from handrail.domain.overview.messages import people
from handrail.domain.overview.rows import task_names
from handrail.domain.registry.envelopes import RUN, task_of
from handrail.domain.registry.event_kinds import KINDS
from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Change, Event
from handrail.kernel.records import UnitOfWork, found_by
from handrail.kernel.shorten import on_one_line, shortened

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
