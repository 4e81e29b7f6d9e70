"""One task with everything that is known of it: why it stands where it stands, what it waits for and what waits for it,
who tried it, what was found, said and decided about it. Reads only, and every list has an end.

Who attempted a task, when, and how each attempt ended: folded from the newest events of its workflow. Pure.

An attempt begins when the task's own counter goes up, whichever toolset caused that, and ends when the task leaves the
states in which somebody works on it. Attempts older than the given events are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.crew.message import Message
from handrail.domain.gates.gate import Gate
from handrail.domain.journal.entry import JournalEntry, moves_once, totals
from handrail.domain.overview.decisions import DecisionRow, task_decisions
from handrail.domain.overview.explanations import explain_task
from handrail.domain.overview.gates import GateRow, gate_rows
from handrail.domain.overview.messages import MessageRow, message_rows, people
from handrail.domain.overview.rows import TaskRow, cut, task_rows
from handrail.domain.work.blockers import status_or_ready
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.lease import Lease
from handrail.domain.work.task import RUNNING, Dependency, Task
from handrail.domain.work.transitions import workflow_of
from handrail.domain.workspaces.records import Workspace
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import Query, UnitOfWork, found_by
from handrail.kernel.wording import shortened

ERROR = 2000
"""The most characters of an attempt's error."""
RELEASED = "released"
REPLACED = "taken over"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. Without an end it is under way."""

    number: int
    agent: str | None
    """The agent's id; the page shows its name."""
    started_at: int
    ended_at: int | None = None
    outcome: str | None = None
    """completed, failed, skipped, released or taken over."""
    error: str | None = None


def attempts_in(task: Task, events: Iterable[Event]) -> list[Attempt]:
    """The attempts recorded in these events, oldest first; if there are none, the last one as the task itself records
    it."""
    found: list[Attempt] = []
    for event in events:
        for change in event.changes:
            if change.table == "task" and change.key == task.id and change.after is not None:
                _go_on(found, event, change.after)
    if not found and task.attempts and task.started_at is not None:
        over = task.is_finished or task.status == "failed"
        ended = (task.finished_at or task.updated_at) if over else None
        error = cut(task.error, ERROR)
        return [
            Attempt(
                number=task.attempts,
                agent=task.assigned_agent_id,
                started_at=task.started_at,
                ended_at=ended,
                outcome=task.status if over else None,
                error=error,
            )
        ]
    return found


def _go_on(found: list[Attempt], event: Event, after: Mapping[str, Any]) -> None:
    """Folds in one change of the task."""
    number, status, agent = after.get("attempts"), after.get("status"), after.get("assigned_agent_id")
    if number:
        if found and found[-1].ended_at is None:
            found[-1] = _ended(found[-1], event, REPLACED)
        found.append(Attempt(number=number, agent=agent or event.actor, started_at=event.at_ms))
        return
    if not found or found[-1].ended_at is not None:
        return
    if agent is not None:
        found[-1] = msgspec.structs.replace(found[-1], agent=agent)
    if status is not None and status not in RUNNING:
        outcome = RELEASED if status == "pending" else status
        found[-1] = _ended(found[-1], event, outcome, cut(after.get("error"), ERROR))


def _ended(attempt: Attempt, event: Event, outcome: str, error: str | None = None) -> Attempt:
    return msgspec.structs.replace(attempt, ended_at=event.at_ms, outcome=outcome, error=error)


LINKED = 200
"""Tasks of one kind around a task that are named."""
EVENTS = 2000
"""The newest events of its workflow that are looked through for its attempts, and who wrote its notes."""
SENT = 1000
"""The newest messages of all that are looked through for those about it."""
NOTES, DECISIONS, MESSAGES, GATES, ATTEMPTS, CHECKS, PATHS = 100, 50, 50, 50, 50, 20, 100
TEXT = 20_000
"""Characters of an agent's text; of a check's output, message or note a part of that."""
OUTPUT, SUMMARY, BODY = 8000, 2000, 4000
_NOT_TOLD = {"status", "summary", "metadata", "files_changed", "verification", "checks"}
"""Parts of an outcome that are shown elsewhere, or to nobody."""


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """Another task, by name."""

    id: str
    name: str
    status: str


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One check, and how it ended."""

    name: str
    ok: bool
    text: str


class CheckpointNote(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint."""

    id: str
    sequence: int
    type: str
    summary: str
    created_at: int
    by: str | None


class LeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """Who has it, and until when."""

    agent: str
    agent_id: str
    expires_at: int
    fence: int
    heard_at: int | None


class JournalView(msgspec.Struct, frozen=True, kw_only=True):
    """What its journal says."""

    directory: str
    areas: list[str]
    started_at: int
    completed_at: int | None
    files: int | None
    """A moved one counts once. None while nobody has looked at the end."""
    added: int
    removed: int
    out_of_scope: list[str]
    warnings: list[str]


class WorkspaceView(msgspec.Struct, frozen=True, kw_only=True):
    """The worktree it is done in."""

    id: str
    branch: str
    path: str
    status: str


class TaskDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one task."""

    task: TaskRow
    workflow_name: str
    description: str
    acceptance: list[str]
    files: list[str]
    """Those it was expected to change."""
    complexity: str | None
    why: str
    needs: list[Linked]
    unlocks: list[Linked]
    subtasks: list[Linked]
    parent: Linked | None
    attempts: list[Attempt]
    """The last first."""
    outcome: str | None
    detail: str | None
    """What its end says beside its outcome, as light Markdown."""
    evidence: list[Evidence]
    checkpoints: list[CheckpointNote]
    """The newest first."""
    decisions: list[DecisionRow]
    messages: list[MessageRow]
    gates: list[GateRow]
    lease: LeaseView | None
    journal: JournalView | None
    workspace: WorkspaceView | None
    changes: bool
    """Whether what it changed can be looked at: false where no snapshot was taken when it began."""


def task_document(unit: UnitOfWork, task: Task) -> TaskDocument:
    workflow = workflow_of(unit, task)
    (row,) = task_rows(unit, [task])
    notes = unit.select(Checkpoint, Query((("task_id", task.id),), ("-sequence", "-id"), NOTES))
    events = unit.newest(EVENTS, Only(streams=(task.workflow_id,))) if task.attempts or notes else []
    tries = attempts_in(task, events)
    authors = _authors(events, {note.id for note in notes})
    lease = unit.get(Lease, task.id)
    holder = lease.holder if lease is not None else None
    names = people(unit, [*(one.agent for one in tries), *authors.values(), holder])
    entry = unit.get(JournalEntry, task.id)
    parent = unit.get(Task, task.parent_task_id) if task.parent_task_id is not None else None
    workspace = unit.get(Workspace, task.workspace_id) if task.workspace_id is not None else None
    gates = unit.select(Gate, Query((("workflow_id", task.workflow_id), ("task_id", task.id)), ("-created_at",), GATES))
    return TaskDocument(
        task=row,
        workflow_name=workflow.name,
        description=shortened(task.description, TEXT),
        acceptance=task.acceptance[:PATHS],
        files=task.files_likely_affected[:PATHS],
        complexity=task.estimated_complexity,
        why=explain_task(unit, task).sentence,
        needs=_linked(found_by(unit, Task, "id", _needs(unit, task))),
        unlocks=_linked(found_by(unit, Task, "id", _unlocks(unit, task))),
        subtasks=_linked(unit.select(Task, Query((("parent_task_id", task.id),), ("sequence",), LINKED))),
        parent=_linked([parent])[0] if parent is not None else None,
        attempts=[_named(one, names) for one in reversed(tries[-ATTEMPTS:])],
        outcome=cut(task.outcome, TEXT),
        detail=cut(_detail(task.outcome_detail or {}), TEXT),
        evidence=_evidence(entry, task),
        checkpoints=[_note(note, names.get(authors.get(note.id, ""))) for note in notes],
        decisions=task_decisions(unit, workflow, task.id, DECISIONS),
        messages=message_rows(unit, _messages(unit, task), most=BODY),
        gates=gate_rows(unit, gates),
        lease=_lease(lease, names) if lease is not None and not task.is_finished else None,
        journal=_journal(entry) if entry is not None else None,
        workspace=_workspace(workspace) if workspace is not None else None,
        changes=entry is not None,
    )


# -- around it --------------------------------------------------------------------------------------------------------


def _needs(unit: UnitOfWork, task: Task) -> list[str]:
    links = unit.select(Dependency, Query((("task_id", task.id),), ("id",), LINKED))
    return [link.needs_id for link in links]


def _unlocks(unit: UnitOfWork, task: Task) -> list[str]:
    links = unit.select(Dependency, Query((("needs_id", task.id),), ("id",), LINKED))
    return [link.task_id for link in links if not link.inherited]


def _linked(tasks: Iterable[Task]) -> list[Linked]:
    ordered = sorted(tasks, key=lambda task: (task.sequence, task.id))
    return [Linked(id=task.id, name=task.name, status=status_or_ready(task)) for task in ordered]


# -- what was done ----------------------------------------------------------------------------------------------------


def _authors(events: Iterable[Event], notes: set[str]) -> dict[str, str]:
    """Who wrote these notes, as far as the events tell."""
    if not notes:
        return {}
    return {
        change.key: event.actor
        for event in events
        for change in event.changes
        if change.table == "checkpoint" and change.key in notes
    }


def _named(attempt: Attempt, names: Mapping[str, str]) -> Attempt:
    return msgspec.structs.replace(attempt, agent=names.get(attempt.agent or ""))


def _note(note: Checkpoint, by: str | None) -> CheckpointNote:
    return CheckpointNote(
        id=note.id,
        sequence=note.sequence,
        type=note.type,
        summary=shortened(note.summary, SUMMARY),
        created_at=note.created_at,
        by=by,
    )


def _lease(lease: Lease, names: Mapping[str, str]) -> LeaseView | None:
    if lease.holder is None:
        return None
    return LeaseView(
        agent=names[lease.holder],
        agent_id=lease.holder,
        expires_at=lease.expires_ms,
        fence=lease.fence,
        heard_at=lease.renewed_ms or None,
    )


def _workspace(workspace: Workspace) -> WorkspaceView:
    return WorkspaceView(id=workspace.id, branch=workspace.branch, path=workspace.path, status=workspace.status)


def _journal(entry: JournalEntry) -> JournalView:
    report = entry.report or {}
    counted = totals(moves_once(report))
    found = report.get("verification", {})
    return JournalView(
        directory=entry.directory,
        areas=entry.areas,
        started_at=entry.started_at,
        completed_at=entry.completed_at,
        files=counted.files if entry.report is not None else None,
        added=counted.lines_added,
        removed=counted.lines_removed,
        out_of_scope=[str(path) for path in found.get("unexpected_files", ())][:PATHS],
        warnings=[str(warning) for warning in found.get("warnings", ())][:CHECKS],
    )


def _evidence(entry: JournalEntry | None, task: Task) -> list[Evidence]:
    """The checks that ran or were told of when it ended."""
    report: Mapping[str, Any] = entry.report or {} if entry is not None else {}
    checks = report.get("checks") or (task.outcome_detail or {}).get("checks") or ()
    told = checks if isinstance(checks, list) else ()
    return [_check(check) for check in told if isinstance(check, dict)][:CHECKS]


def _check(check: Mapping[str, Any]) -> Evidence:
    command = str(check.get("command") or "")
    said = shortened(str(check.get("output") or ""), OUTPUT)
    told = " ".join(part for part in (f"$ {command}" if command else "", _by(check)) if part)
    return Evidence(
        name=str(check.get("name") or command or "check"),
        ok=check.get("exit_code") == 0,
        text="\n".join(part for part in (told, said) if part),
    )


def _by(check: Mapping[str, Any]) -> str:
    """Whether it was run here, or somebody says that it was."""
    return "" if check.get("ran_by") == "handrail" else "(as the agent reports it)"


def _detail(detail: Mapping[str, Any]) -> str | None:
    """The parts of an outcome that are texts or lists of texts, each under its name."""
    lines: list[str] = []
    for name, value in detail.items():
        title = name.replace("_", " ").capitalize()
        if name in _NOT_TOLD or not value:
            continue
        if isinstance(value, str):
            lines.append(f"**{title}**: {value}")
        elif isinstance(value, list) and all(isinstance(part, str) for part in value):
            lines += [f"**{title}**", *(f"- {part}" for part in value)]
    return "\n".join(lines) or None


def _messages(unit: UnitOfWork, task: Task) -> Sequence[Message]:
    """The newest messages about it, in the order of writing. Rows have no index by task, so events name them."""
    sent = unit.newest(SENT, Only(kinds=("message.sent",)))
    about = (
        change.key
        for event in sent
        for change in event.changes
        if change.table == "message" and (change.after or {}).get("task_id") == task.id
    )
    found = sorted(found_by(unit, Message, "id", about), key=lambda message: (message.created_at, message.id))
    return found[-MESSAGES:]
