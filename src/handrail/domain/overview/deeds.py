"""What an event was, in a few words that name things as people know them: `completed “Wrap the fetch”`. Reads names.

A line with every detail is `registry/envelopes.py`'s; this is for places where a person looks for a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from handrail.domain.gates.gate import Gate
from handrail.domain.overview.messages import people
from handrail.domain.overview.rows import cut, found_by
from handrail.domain.registry.envelopes import RUN, task_of
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Event
from handrail.kernel.records import UnitOfWork

QUOTED = 120
"""Characters of somebody's own words."""
_VERBS = {
    "agent.registered": "came",
    "agent.returned": "came back",
    "agent.updated": "said something new about itself",
    "agent.left": "took its leave",
    "agent.unproven": "was spoken for without its secret",
    "task.pending": "opened again",
    "task.planning": "began to plan",
    "task.in_progress": "began",
    "task.paused": "paused",
    "task.completed": "completed",
    "task.failed": "failed at",
    "task.skipped": "skipped",
    "task.planned": "planned",
    "task.replanned": "planned anew",
    "task.removed": "took out",
    "task.placed": "gave a workspace to",
    "task.claimed": "claimed",
    "task.claim_resumed": "took up again",
    "task.claim_ended": "ended the claim on",
    "task.released": "gave back",
    "workflow.created": "created",
    "workflow.planned": "laid the plan of",
    "workflow.replanned": "laid a new plan of",
    "workflow.extended": "added tasks to",
    "workflow.parallelism": "set how many run at once in",
    "pipeline.begun": "began the run",
    "pipeline.moved": "took the next turn of",
    "pipeline.paused": "paused the run",
    "pipeline.imported": "took over the run",
    "gate.opened": "asked in",
    "gate.answered": "answered in",
    "gate.withdrawn": "took back a question in",
    "review.closed": "closed a review in",
    "checkpoint.added": "wrote a note on",
    "message.sent": "wrote to",
    "message.read": "read a message",
    "message.acknowledged": "acknowledged a message",
    "message.archived": "put a message away",
    "bb.set": "set on the board",
    "bb.deleted": "removed from the board",
    "bb.expired": "expired on the board",
    "workspace.created": "made a workspace",
    "workspace.merged": "merged a workspace",
    "workspace.abandoned": "gave up a workspace",
    "workspace.active": "took up a workspace",
    "paths.reserved": "reserved paths",
    "paths.renewed": "renewed a reservation",
    "paths.released": "released paths",
}


def told(unit: UnitOfWork, events: Iterable[Event]) -> dict[int, str]:
    """The words for each event, by its position."""
    found = list(events)
    about = {event.position: task_of(event) for event in found}
    tasks = {task.id: task.name for task in found_by(unit, Task, "id", (key for key in about.values() if key))}
    runs = (event.stream for event in found if event.stream.startswith(RUN))
    workflows = {one.id: one.name for one in found_by(unit, Workflow, "id", runs)}
    written = {event.position: _recipients(event) for event in found if event.kind == "message.sent"}
    names = people(unit, (key for keys in written.values() for key in keys))
    gates = _questions(unit, found)
    words = {}
    for event in found:
        task = about[event.position]
        if event.kind == "message.sent":
            thing = ", ".join(names[key] for key in written[event.position][:3])
        elif event.kind.startswith("bb."):
            thing = ", ".join(change.key for change in event.changes if change.table == "board")
        elif task is not None and event.kind.startswith(("task.", "checkpoint.")):
            thing = f"“{tasks.get(task, task)}”"
        else:
            thing = f"“{workflows[event.stream]}”" if event.stream in workflows else ""
        said = _own_words(event) or _asked(event, gates)
        words[event.position] = cut(f"{_verb(event.kind)} {thing}".strip() + said, 2 * QUOTED) or ""
    return words


def _questions(unit: UnitOfWork, events: Iterable[Event]) -> dict[str, Gate]:
    """The questions that these events are about."""
    keys = (change.key for event in events for change in event.changes if change.table == "gate")
    return {gate.id: gate for gate in found_by(unit, Gate, "id", keys)}


def _asked(event: Event, gates: Mapping[str, Gate]) -> str:
    """What was asked, and what was answered, where an event is about a question; the phase that a run came to."""
    if event.kind == "pipeline.moved":
        return f", now at {event.data['phase']}" if event.data.get("phase") else ""
    if not event.kind.startswith(("gate.", "review.")):
        return ""
    gate = next((gates[change.key] for change in event.changes if change.key in gates), None)
    if gate is None:
        return ""
    answer = f": {gate.answer}" if gate.answer is not None and event.kind in ("gate.answered", "review.closed") else ""
    return f", {cut(' '.join(gate.question.split()), QUOTED)}{answer}"


def _verb(kind: str) -> str:
    thing, _, word = kind.partition(".")
    return _VERBS.get(kind) or f"{thing}: {word.replace('_', ' ')}"


def _recipients(event: Event) -> list[str]:
    return [str(row["recipient_id"]) for row in _rows(event, "message") if "recipient_id" in row]


def _own_words(event: Event) -> str:
    """What was said with it: a note's summary, a task's error."""
    for table, column in (("checkpoint", "summary"), ("task", "error")):
        for row in _rows(event, table):
            if event.kind in ("checkpoint.added", "task.failed") and row.get(column):
                return f": {cut(' '.join(str(row[column]).split()), QUOTED)}"
    reason = event.data.get("reason")
    return f": {cut(' '.join(reason.split()), QUOTED)}" if isinstance(reason, str) and reason.strip() else ""


def _rows(event: Event, table: str) -> Iterable[Mapping[str, Any]]:
    return (change.after for change in event.changes if change.table == table and change.after is not None)
