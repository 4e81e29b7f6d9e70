"""Keeping the journal: a task begins with a snapshot, gets its notes, and ends with exactly what it changed.

Looking at the working copy takes time and is done before anything is decided (`look_after`); what is recorded then is
one event. Claims of the agent and evidence are kept apart, and where they disagree the verification says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from handrail.domain.gates.gate import Gate
from handrail.domain.gates.reviews import ask_for_review
from handrail.domain.journal.changes import Changes
from handrail.domain.journal.entry import JournalEntry
from handrail.domain.journal.scope import overlap, verification
from handrail.domain.journal.tracking import OtherTask, Snapshot, Tracker
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.editing import PlanEdit, tally_of, tasks_named
from handrail.domain.work.laying import lay_plan
from handrail.domain.work.moving import blocked, check_parts, move_task
from handrail.domain.work.planning import PlanTask
from handrail.domain.work.task import REPLACEABLE, RUNNING, TASK_MACHINE, Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.errors import IllegalTransition, InvalidPlan, WorkflowClosed
from handrail.kernel.ledger import Actor
from handrail.kernel.query import Query, where
from handrail.kernel.records import Record, UnitOfWork

LOOKING = Actor("handrail", "auto")
"""Who looks before somebody writes; leaves no event."""
PROMISED = {"decision": 3, "error": 3, "progress": 5}
"""Notes of a kind that a task may have before the reply says that there are many."""
NOTE_NAMES = {"decision": "decisions", "error": "issues", "progress": "milestones"}
SUMMARY = 4000
NEIGHBOURS = 20
"""Other tasks in the same working copy that are looked at."""
SHOWN_FILES = 100
KEPT_FILES = 500
"""Paths that a checkpoint and a task's outcome carry; the journal entry has all of them."""


class Beginning(NamedTuple):
    """The working copy as a task finds it."""

    snapshot: Snapshot


class Intent(NamedTuple):
    """What a task is to do, and where."""

    name: str
    goal: str
    areas: list[str]
    plan_step: str | None


class Standing(NamedTuple):
    """A task that is about to end: its entry, and the other tasks whose work fell into its time."""

    directory: str | None
    entry: JournalEntry | None
    neighbours: list[JournalEntry]


class Ending(NamedTuple):
    """What was found when the work was looked at again; nothing where it never was before."""

    after: Snapshot | None
    changes: Changes | None
    checks: list[dict[str, Any]] | None


class Claims(NamedTuple):
    """What the agent says of its work."""

    status: str
    outcome: dict[str, Any]
    metadata: dict[str, Any]
    checks: list[dict[str, Any]]


class Completed(NamedTuple):
    """What was recorded."""

    report: dict[str, Any]
    verification: dict[str, Any]
    duration_s: int
    review_id: str | None


class ShownFiles(NamedTuple):
    """Changed files by kind, as many as a reply carries."""

    files: dict[str, list[str]]
    left_out: int


# -- beginning --------------------------------------------------------------------------------------------------------


def check_start(workflow: Workflow) -> None:
    if workflow.status in CLOSED:
        raise WorkflowClosed(
            f"workflow {workflow.id} is {workflow.status}; no task is started in it any more",
            hint="start_workflow begins a new one",
            status=workflow.status,
        )


def begin(
    unit: UnitOfWork, workflow: Workflow, beginning: Beginning, work: Intent, parent: Task | None
) -> tuple[Task, list[str]]:
    """A task in progress, with what was found; one that the plan has under this name is taken up."""
    check_start(workflow)
    edit = PlanEdit(unit, workflow)
    task, warnings = _taken_up(unit, edit, work, parent)
    started = edit.change(
        task,
        status="in_progress",
        error=None,
        outcome=None,
        outcome_detail=None,
        attempts=task.attempts + (task.status != "in_progress"),
        started_at=task.started_at or edit.now,
    )
    warnings += _crowding(unit, beginning.snapshot.root, started, work.areas)
    if workflow.status == "paused":
        warnings.append(f"workflow {workflow.id} is paused: ask before you go on")
    entry = _entry(unit, started, beginning.snapshot, work)
    notes: list[Record] = []
    if unit.get(JournalEntry, started.id) is not None:
        again = _checkpoint(unit, started, "progress", f"Taken up again: {work.goal}", {"taken_up": True}, [])
        edit.change(started, checkpoints=again.sequence)
        notes.append(again)
    if entry.started_at != edit.now and entry.directory != beginning.snapshot.root:
        warnings.append(f"its work began in {entry.directory}; what it changed is looked for there")
    status = workflow.status if workflow.status == "paused" else "in_progress"
    edit.record("task.in_progress", entry, *notes, status=status)
    return started, warnings


def _entry(unit: UnitOfWork, task: Task, found: Snapshot, work: Intent) -> JournalEntry:
    """The entry of a task that is begun. One that was begun before goes on from how it was first found: what it has
    changed since is its work too."""
    before = unit.get(JournalEntry, task.id)
    if before is not None:
        return msgspec.structs.replace(
            before,
            areas=work.areas or before.areas,
            plan_step=work.plan_step or before.plan_step,
            after=None,
            completed_at=None,
        )
    return JournalEntry(
        id=task.id,
        workflow_id=task.workflow_id,
        directory=found.root,
        areas=work.areas,
        plan_step=work.plan_step,
        before=msgspec.to_builtins(found),
        after=None,
        report=None,
        started_at=unit.now_ms(),
        completed_at=None,
    )


def to_take_up(unit: UnitOfWork, workflow_id: str, name: str) -> Task | None:
    """The task of this name that starting one by it means: there already, and not over, nor under way with a journal of
    its own. One that was begun by its claim has none yet."""
    known = tasks_named(unit, workflow_id, [name]).get(name)
    if known is None or known.status in (*REPLACEABLE, "planning", "paused"):
        return known
    return known if known.status == "in_progress" and unit.get(JournalEntry, known.id) is None else None


def _taken_up(unit: UnitOfWork, edit: PlanEdit, work: Intent, parent: Task | None) -> tuple[Task, list[str]]:
    name, goal = work.name, work.goal
    waiting = to_take_up(unit, edit.workflow.id, name)
    if waiting is not None:
        if waiting.unmet:
            raise blocked(unit, waiting)
        is_new = goal != waiting.description and unit.get(JournalEntry, waiting.id) is None
        return edit.change(waiting, context={**waiting.context, "goal": goal} if is_new else waiting.context), []
    warnings = []
    if (known := tasks_named(unit, edit.workflow.id, [name]).get(name)) is not None:
        warnings.append(f'a task "{name}" is already there ({known.id}, {known.status}); this one has a number')
        name = _free_name(unit, edit.workflow.id, name)
    if parent is not None and parent.workflow_id != edit.workflow.id:
        raise InvalidPlan(
            f"task {parent.id} belongs to workflow {parent.workflow_id}", hint="name a parent of the same workflow"
        )
    if parent is not None and parent.unmet and not parent.is_finished:
        raise blocked(unit, parent)
    sequence = tally_of(unit, edit.workflow.id).total + 1
    draft = PlanTask(name, goal, sequence, parent=parent.name if parent is not None else None)
    return lay_plan(unit, edit, [draft])[0], warnings


def _free_name(unit: UnitOfWork, workflow_id: str, name: str) -> str:
    number = 2
    while tasks_named(unit, workflow_id, [f"{name} ({number})"]):
        number += 1
    return f"{name} ({number})"


def _crowding(unit: UnitOfWork, directory: str, started: Task, areas: list[str]) -> list[str]:
    """A word on every other open task in this working copy that means to touch the same areas."""
    found = []
    for other in _open_in(unit, directory):
        shared = list(dict.fromkeys(met.area for met in overlap(areas, other.areas)))
        task = unit.get(Task, other.id)
        if shared and task is not None and not task.is_finished and not _is_kin(unit, started, other.id):
            found.append(f'"{task.name}" ({task.id}) is open in the same tree and touches {", ".join(shared)} too')
    return found


def _open_in(unit: UnitOfWork, directory: str) -> list[JournalEntry]:
    conditions = (("directory", directory), ("completed_at", None))
    return unit.select(JournalEntry, Query(conditions, ("id",), NEIGHBOURS))


# -- notes ------------------------------------------------------------------------------------------------------------


def note(
    unit: UnitOfWork, task: Task, kind: str, summary: str, detail: dict[str, Any], *, review: str | None = None
) -> tuple[Checkpoint, list[str]]:
    """A checkpoint on an open task, with a question to a person beside it where one is asked for."""
    if task.is_finished:
        raise IllegalTransition(
            f'task "{task.name}" is {task.status}; notes belong to open tasks',
            hint="start_task begins the next one",
            status=task.status,
        )
    checkpoint = _checkpoint(unit, task, kind, summary, detail, [])
    counted = msgspec.structs.replace(task, checkpoints=checkpoint.sequence, updated_at=checkpoint.created_at)
    gates = [ask_for_review(unit, task, review)] if review is not None else []
    unit.record("checkpoint.added", checkpoint, counted, *gates)
    return checkpoint, _many(unit, task, kind)


def _many(unit: UnitOfWork, task: Task, kind: str) -> list[str]:
    """A warning once a task has more notes of a kind than was promised to its reader."""
    count = unit.count(Checkpoint, where(task_id=task.id, type=kind)) + 1
    if count <= PROMISED[kind]:
        return []
    return [f"this task has {count} {NOTE_NAMES[kind]}; {PROMISED[kind]} are enough for most: kept all the same"]


def _checkpoint(
    unit: UnitOfWork, task: Task, kind: str, summary: str, detail: dict[str, Any], files: list[str]
) -> Checkpoint:
    return Checkpoint(
        id=unit.new_id("cp"),
        workflow_id=task.workflow_id,
        task_id=task.id,
        sequence=task.checkpoints + 1,
        type=kind,
        summary=summary[:SUMMARY],
        detail=detail,
        files_changed=files,
        created_at=unit.now_ms(),
    )


# -- ending -----------------------------------------------------------------------------------------------------------


def check_completion(unit: UnitOfWork, task: Task) -> Standing:
    """What is known of a task that is about to end; refused where it cannot."""
    TASK_MACHINE.check(f'task "{task.name}"', task.status, "completed")
    check_parts(unit, task)
    entry = unit.get(JournalEntry, task.id)
    if entry is None:
        return Standing(None, None, [])
    ended = (("directory", entry.directory), ("completed_at >", entry.started_at))
    recent = unit.select(JournalEntry, Query(ended, ("-completed_at", "-id"), NEIGHBOURS))
    others = [other for other in (*_open_in(unit, entry.directory), *recent) if not _is_kin(unit, task, other.id)]
    return Standing(entry.directory, entry, others)


def _is_kin(unit: UnitOfWork, task: Task, other_id: str) -> bool:
    """True for the task itself, what it is part of and what is part of it: their work is one work."""
    return other_id in _line(unit, task) or task.id in _line(unit, unit.get(Task, other_id))


def _line(unit: UnitOfWork, task: Task | None) -> list[str]:
    """A task and the tasks it is part of."""
    found = []
    while task is not None:
        found.append(task.id)
        task = unit.get(Task, task.parent_task_id) if task.parent_task_id is not None else None
    return found


def look_after(tracker: Tracker, standing: Standing, checks: list[dict[str, Any]] | None) -> Ending:
    """Looks at the working copy again and compares. `checks` is None where nobody asked for them."""
    if standing.entry is None:
        return Ending(None, None, checks)
    before = snapshot_of(standing.entry.before)
    after = tracker.snapshot(standing.entry.directory, like=before)
    others = [
        OtherTask(
            task_id=other.id,
            started=snapshot_of(other.before),
            ended=snapshot_of(other.after) if other.after is not None else None,
        )
        for other in standing.neighbours
    ]
    return Ending(after, tracker.changes(before, after, others=others), checks)


def open_entry(unit: UnitOfWork, task: Task) -> JournalEntry | None:
    """The entry of a task whose work goes on."""
    entry = unit.get(JournalEntry, task.id)
    return entry if entry is not None and entry.completed_at is None and task.status in RUNNING else None


def changed_so_far(tracker: Tracker, entry: JournalEntry) -> list[str]:
    """What a task that is not at its end has changed until now."""
    before = snapshot_of(entry.before)
    now = tracker.snapshot(entry.directory, like=before)
    try:
        return [change.path for change in tracker.changes(before, now).own]
    finally:
        tracker.forget(now)


def complete(unit: UnitOfWork, task: Task, ending: Ending, claims: Claims) -> Completed:
    """The task in its last state, with its report, recorded."""
    standing = check_completion(unit, task)
    entry, now = standing.entry, unit.now_ms()
    report = _report(ending, claims)
    paths = [change["path"] for change in report["files"]]
    packages = bool(claims.metadata.get("packages_added") or claims.metadata.get("packages_removed"))
    found = msgspec.to_builtins(verification(paths, entry.areas if entry is not None else [], packages))
    found["warnings"] = [*found["warnings"], *_doubts(ending, claims, journalled=entry is not None)]
    report["verification"] = found
    summary = claims.outcome["summary"]
    failed = claims.status == "failed"
    detail = {"status": claims.status, **claims.outcome, "metadata": claims.metadata}
    detail |= {"files_changed": shown_files(report, KEPT_FILES).files, "verification": found}
    detail |= {"checks": report["checks"]} if report["checks"] else {}
    kind, status = ("error", "failed") if failed else ("complete", "completed")
    checkpoint = _checkpoint(unit, task, kind, summary, {"status": claims.status}, paths[:KEPT_FILES])
    beside: list[Record] = [checkpoint]
    if entry is not None:
        after = msgspec.to_builtins(ending.after) if ending.after is not None else None
        beside.append(msgspec.structs.replace(entry, after=after, report=report, completed_at=now))
    gate = _review_of(unit, task, claims)
    beside += [gate] if gate is not None else []
    move_task(
        unit,
        task,
        status,
        outcome=summary,
        outcome_detail=detail,
        error=summary if failed else None,
        beside=beside,
        checkpoints=checkpoint.sequence,
    )
    began = entry.started_at if entry is not None else task.started_at or now
    return Completed(report, found, max(0, now - began) // 1000, gate.id if gate is not None else None)


def _review_of(unit: UnitOfWork, task: Task, claims: Claims) -> Gate | None:
    if not claims.outcome.get("manual_review_needed"):
        return None
    reason = claims.outcome.get("manual_review_reason") or claims.outcome["summary"]
    return ask_for_review(unit, task, f"{task.name}: {reason}")


def _report(ending: Ending, claims: Claims) -> dict[str, Any]:
    changes: dict[str, Any] = msgspec.to_builtins(ending.changes) if ending.changes is not None else {}
    return {
        "files": changes.get("own", []),
        "renamed": changes.get("renamed", []),
        "external": changes.get("external", []),
        "dirty_before": changes.get("dirty_before", []),
        "partial": changes.get("partial", False),
        "overlaps": changes.get("overlaps", []),
        "commits": changes.get("commits", []),
        "basis": changes.get("basis"),
        "checks": [*claims.checks, *(ending.checks or ())],
    }


def _doubts(ending: Ending, claims: Claims, *, journalled: bool) -> list[str]:
    """What a reader should know before believing: no snapshot, a partial look, claims that the evidence denies."""
    found = list(ending.changes.warnings) if ending.changes is not None else []
    if not journalled:
        found.append("no snapshot was taken when this task began, so its changes are not known; start_task takes one")
    if ending.checks == []:
        found.append("nothing was verified: the project has no checks (setting `checks` in .handrail/config.toml)")
    claimed = "the tests are" if claims.metadata.get("tests_status") == "passed" else "the task is"
    if claims.metadata.get("tests_status") == "passed" or claims.status == "success":
        found += [
            f"⚠️ {claimed} said to have succeeded, but `{check['command']}` ended with {check['exit_code']}"
            for check in (*claims.checks, *(ending.checks or ()))
            if check["exit_code"] != 0
        ]
    return found


def shown_files(report: dict[str, Any], most: int = SHOWN_FILES) -> ShownFiles:
    """The changed files by kind, `most` of them in all."""
    files: dict[str, list[str]] = {"added": [], "modified": [], "deleted": []}
    for change in report["files"][:most]:
        files[change["change"]].append(change["path"])
    return ShownFiles(files, max(0, len(report["files"]) - most))


def snapshot_of(document: dict[str, Any]) -> Snapshot:
    return msgspec.convert(document, Snapshot)
