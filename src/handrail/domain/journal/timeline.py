"""What happened in a workflow or a task, moment by moment, from its records. Reads a bounded number of them.

Every note and every end is a moment, whichever toolset made it, and so are a task's first and last start; the starts of
attempts in between are only in the ledger. The surfaces decide how moments are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from handrail.domain.gates.gate import Gate, gates_of
from handrail.domain.journal.decision_log import superseded_in
from handrail.domain.journal.entry import JournalEntry
from handrail.domain.work.checkpoint import CHECKPOINT_TYPES, Checkpoint
from handrail.domain.work.task import TASK_MACHINE, Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.records import CHUNK, Query, UnitOfWork, found_by

MomentKind = Literal[
    "created", "began", "milestone", "note", "decision", "issue", "ended", "asked", "answered", "closed"
]
PARTS = 400
"""How many subtasks of a task, at any depth, its timeline includes."""
_BEGUN = tuple(state for state in TASK_MACHINE.states if state != "pending")
_SAME_TEXT = 200
"""How many characters are compared to tell that a task's end and a note describe the same thing."""


class TimelineMoment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened."""

    at: int
    kind: MomentKind
    text: str
    task_id: str | None = None
    task: str | None = None
    """The task's name."""
    id: str | None = None
    """The note's or question's own id."""
    status: str | None = None
    """For an end: success, partial_success, failed, completed, skipped. For a note: its type."""
    progress: float | None = None
    category: str | None = None
    """The category of a decision, the type of an issue."""
    superseded_by: str | None = None
    """The id of the decision that replaced this one."""
    duration_ms: int | None = None
    by: str | None = None
    detail: dict[str, Any] = {}
    """The note's structured parts."""
    files: list[dict[str, Any]] = []
    """For an end: what the task changed, if known."""
    unexpected: list[str] = []
    """Those of the files that lie outside the areas the task declared."""
    warnings: list[str] = []


class Timeline(NamedTuple):
    """Moments, oldest first; `earlier` when there were more before them."""

    moments: list[TimelineMoment]
    earlier: bool


class _Records(NamedTuple):
    """What a timeline is made from."""

    tasks: dict[str, Task]
    entries: dict[str, JournalEntry]
    checkpoints: list[Checkpoint]
    gates: list[Gate]
    superseded: Mapping[str, Checkpoint]
    """By decision that no longer holds, the one that replaced it."""


def workflow_timeline(unit: UnitOfWork, workflow: Workflow, limit: int) -> Timeline:
    """The newest `limit` moments of a workflow."""
    own = ("workflow_id", workflow.id)
    newest = [
        note
        for kind in CHECKPOINT_TYPES
        for note in unit.select(Checkpoint, Query((own, ("type", kind)), ("-created_at", "-id"), limit))
    ]
    moved = [
        task
        for state in _BEGUN
        for task in unit.select(Task, Query((own, ("status", state)), ("-updated_at", "-id"), limit))
    ]
    entries = unit.select(JournalEntry, Query((own,), ("-started_at", "-id"), limit))
    found = _with_related(unit, moved, entries, newest, gates_of(unit, workflow.id, ("-created_at", "-id"), limit))
    moments = [*_of_workflow(workflow), *_moments(found)]
    return _newest(moments, limit)


def task_timeline(unit: UnitOfWork, task: Task, limit: int) -> Timeline:
    """The newest `limit` moments of a task and of the tasks that are part of it."""
    family = [task, *_parts(unit, task)]
    keys = tuple(one.id for one in family)
    notes = unit.select(Checkpoint, Query((("task_id", keys),), ("-created_at", "-id"), limit))
    workflow = unit.get(Workflow, task.workflow_id)
    assert workflow is not None, "a task belongs to a workflow"
    gates = [gate for gate in gates_of(unit, workflow.id, ("-created_at", "-id"), limit) if gate.task_id in keys]
    return _newest(_moments(_with_related(unit, family, [], notes, gates)), limit)


def _parts(unit: UnitOfWork, task: Task) -> list[Task]:
    found: list[Task] = []
    level = [task.id]
    while level and len(found) < PARTS:
        chunk = tuple(level[:CHUNK])
        parts = unit.select(Task, Query((("parent_task_id", chunk),), ("sequence",), PARTS - len(found)))
        found += parts
        level = [part.id for part in parts]
    return found


def _with_related(
    unit: UnitOfWork,
    tasks: Iterable[Task],
    entries: Iterable[JournalEntry],
    checkpoints: list[Checkpoint],
    gates: list[Gate],
) -> _Records:
    """These records, together with the tasks and entries they refer to."""
    known = {task.id: task for task in tasks}
    found = {entry.id: entry for entry in entries}
    named = {note.task_id for note in checkpoints} | {gate.task_id for gate in gates if gate.task_id} | set(found)
    for key in sorted(named - set(known)):
        task = unit.get(Task, key)
        if task is not None:
            known[key] = task
    missing = sorted(set(known) - set(found))
    found |= {entry.id: entry for entry in found_by(unit, JournalEntry, "id", missing)}
    deciding = {note.workflow_id for note in checkpoints if note.type == "decision"}
    return _Records(known, found, checkpoints, gates, superseded_in(unit, deciding))


def _newest(moments: Iterable[TimelineMoment], limit: int) -> Timeline:
    ordered = sorted(moments, key=lambda moment: (moment.at, _ORDER[moment.kind], moment.id or moment.task_id or ""))
    return Timeline(ordered[-limit:], len(ordered) > limit)


_ORDER = {kind: number for number, kind in enumerate(get_args(MomentKind))}
"""The order of moments within the same millisecond."""


# -- moments ----------------------------------------------------------------------------------------------------------


def _of_workflow(workflow: Workflow) -> Iterator[TimelineMoment]:
    yield TimelineMoment(at=workflow.created_at, kind="created", text=workflow.source_content)
    if workflow.status in CLOSED:
        yield TimelineMoment(at=workflow.updated_at, kind="closed", text="", status=workflow.status)


def _moments(found: _Records) -> Iterator[TimelineMoment]:
    ends: dict[str, list[Checkpoint]] = {}
    for note in sorted(found.checkpoints, key=lambda one: (one.created_at, one.sequence)):
        if note.is_end:
            ends.setdefault(note.task_id, []).append(note)
        else:
            yield _note(found, note)
    for task in found.tasks.values():
        entry = found.entries.get(task.id)
        yield from _beginnings(task, entry)
        yield from _ends(task, entry, ends.get(task.id, []))
    for gate in found.gates:
        yield from _question(found, gate)


def _beginnings(task: Task, entry: JournalEntry | None) -> Iterator[TimelineMoment]:
    first = task.started_at
    goal = str(task.context.get("goal") or task.description)
    if entry is None:
        if first is not None:
            yield TimelineMoment(at=first, kind="began", text=goal, task_id=task.id, task=task.name)
        return
    if first is not None and first < entry.started_at:
        yield TimelineMoment(at=first, kind="began", text=task.description, task_id=task.id, task=task.name)
    yield TimelineMoment(
        at=entry.started_at,
        kind="began",
        text=goal,
        task_id=task.id,
        task=task.name,
        detail={"areas": entry.areas, "plan_step": entry.plan_step, "directory": entry.directory},
    )


def _ends(task: Task, entry: JournalEntry | None, notes: Sequence[Checkpoint]) -> Iterator[TimelineMoment]:
    """The ends of its attempts that have notes, and the last end if it has none."""
    ended = entry if entry is not None and entry.completed_at is not None else None
    for number, note in enumerate(notes, start=1):
        of_it = ended if number == len(notes) else None
        began = of_it.started_at if of_it is not None else task.started_at if number == 1 else None
        yield _end(task, of_it, began, note.created_at, note.summary, str(note.detail["status"]))
    last = task.outcome if task.is_finished else task.error if task.status == "failed" else None
    if last is None and task.status != "skipped":
        return
    text = last or ""
    if any(note.summary[:_SAME_TEXT] == text[:_SAME_TEXT] for note in notes):
        return
    at = task.finished_at if task.finished_at is not None else task.updated_at
    yield _end(task, None, task.started_at, at, text, task.status)


def _end(task: Task, entry: JournalEntry | None, began: int | None, at: int, text: str, status: str) -> TimelineMoment:
    report = entry.report if entry is not None and entry.report is not None else {}
    found = report.get("verification", {})
    detail = {name: value for name, value in (task.outcome_detail or {}).items() if name in _OUTCOME and value}
    return TimelineMoment(
        at=at,
        kind="ended",
        text=text,
        task_id=task.id,
        task=task.name,
        status=status,
        duration_ms=max(0, at - began) if began is not None else None,
        detail=detail if report else {},
        files=report.get("files", []),
        unexpected=found.get("unexpected_files", []),
        warnings=found.get("warnings", []),
    )


_OUTCOME = ("achievements", "limitations", "next_steps", "metadata")


def _note(found: _Records, note: Checkpoint) -> TimelineMoment:
    task = found.tasks.get(note.task_id)
    detail = note.detail
    kind: MomentKind = "note"
    category: str | None = None
    if note.type == "decision":
        kind, category = "decision", _text(detail.get("category"))
    elif note.type == "error":
        kind, category = "issue", _text(detail.get("type"))
    elif detail.get("milestone"):
        kind = "milestone"
    progress = detail.get("progress")
    later = found.superseded.get(note.id)
    return TimelineMoment(
        at=note.created_at,
        kind=kind,
        text=note.summary,
        task_id=note.task_id,
        task=task.name if task is not None else None,
        id=note.id,
        status=note.type,
        progress=float(progress) if isinstance(progress, int | float) else None,
        category=category,
        superseded_by=later.id if later is not None else None,
        detail=detail,
    )


def _question(found: _Records, gate: Gate) -> Iterator[TimelineMoment]:
    task = found.tasks.get(gate.task_id) if gate.task_id is not None else None
    name = task.name if task is not None else None
    yield TimelineMoment(
        at=gate.created_at,
        kind="asked",
        text=gate.question,
        task_id=gate.task_id,
        task=name,
        id=gate.id,
        status=gate.kind,
    )
    if gate.answered_at is not None:
        text = ": ".join(filter(None, (gate.answer, gate.feedback)))
        yield TimelineMoment(
            at=gate.answered_at,
            kind="answered",
            text=text,
            task_id=gate.task_id,
            task=name,
            id=gate.id,
            status=gate.kind,
            by=gate.answered_by,
        )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
