"""An event in a few words, with things named as people know them: `completed “Wrap the fetch”`. Reads names.

`registry/envelopes.py` makes lines with every detail; this is for places that a person only glances at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from handrail.domain.gates.gate import Gate
from handrail.domain.overview.messages import people
from handrail.domain.overview.rows import task_names
from handrail.domain.registry.envelopes import RUN, task_of
from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Change, Event
from handrail.kernel.records import UnitOfWork, found_by
from handrail.kernel.shortening import on_one_line, shortened

QUOTED = 120
"""The most characters quoted from somebody."""
_VERBS = {
    "agent.registered": "joined",
    "agent.returned": "came back",
    "agent.updated": "updated its details",
    "agent.left": "left",
    "agent.unproven": "was used without its secret",
    "agent.trusted": "was trusted again",
    "task.pending": "reopened",
    "task.planning": "started planning",
    "task.in_progress": "started",
    "task.paused": "paused",
    "task.completed": "completed",
    "task.failed": "failed at",
    "task.skipped": "skipped",
    "task.planned": "planned",
    "task.replanned": "replanned",
    "task.removed": "removed",
    "task.placed": "gave a workspace to",
    "task.claimed": "claimed",
    "task.claim_resumed": "resumed the claim on",
    "task.claim_ended": "ended the claim on",
    "task.released": "released",
    "workflow.created": "created",
    "workflow.imported": "imported",
    "workflow.planned": "planned",
    "workflow.replanned": "replanned",
    "workflow.extended": "added tasks to",
    "workflow.parallelism": "set how many tasks run at once in",
    "workflow.planning": "started planning",
    "workflow.ready": "made ready",
    "workflow.in_progress": "started",
    "workflow.paused": "paused",
    "workflow.completed": "completed",
    "workflow.failed": "marked as failed",
    "workflow.abandoned": "abandoned",
    "pipeline.begun": "started the run",
    "pipeline.moved": "advanced",
    "pipeline.paused": "paused the run",
    "pipeline.imported": "imported the run",
    "gate.opened": "asked in",
    "gate.answered": "answered in",
    "gate.withdrawn": "withdrew a question in",
    "review.closed": "closed a review in",
    "checkpoint.added": "wrote a note on",
    "message.sent": "wrote to",
    "message.read": "read a message",
    "message.acknowledged": "acknowledged a message",
    "message.archived": "archived a message",
    "bb.set": "set on the board",
    "bb.deleted": "removed from the board",
    "bb.expired": "expired on the board",
    "workspace.created": "created a workspace",
    "workspace.merged": "merged a workspace",
    "workspace.abandoned": "abandoned a workspace",
    "workspace.active": "reactivated a workspace",
    "paths.reserved": "reserved paths",
    "paths.renewed": "renewed a reservation",
    "paths.released": "released paths",
    "op.started": "started a call",
    "op.done": "finished a call",
    "op.cancel_requested": "asked for a call to be cancelled",
    "op.cancelled": "cancelled a call",
    "token.created": "created a token",
    "token.revoked": "revoked a token",
    "token.trusted": "trusted a token",
    "repository.registered": "registered the repository",
    "repository.renamed": "renamed the repository",
    "template.created": "created the template",
    "graph.created": "created the graph",
    "graph.committed": "changed the graph",
    "graph.locked": "locked the graph",
    "graph.unlocked": "unlocked the graph",
    "tx.begun": "started a transaction",
    "tx.applied": "tried a change",
    "tx.committed": "committed a transaction",
    "tx.rolled_back": "rolled a transaction back",
    "values.set": "set values",
    "facts.inserted": "recorded facts",
}


_OF_ANOTHER = {
    "agent.registered": "registered",
    "agent.returned": "registered again",
    "agent.updated": "updated the details of",
    "agent.left": "signed off",
    "agent.unproven": "acted without its secret as",
    "agent.trusted": "trusted the secret of",
}
"""The wording for when it was not the agent itself that did it."""
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
    if event.kind in _OF_ANOTHER and event.actor != event.stream:
        return _OF_ANOTHER[event.kind]
    thing, _, word = event.kind.partition(".")
    return _VERBS.get(event.kind) or f"{thing}: {word.replace('_', ' ')}"


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
