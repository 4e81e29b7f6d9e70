"""Keeping the journal: a task begins with a snapshot, gets its notes, and ends with exactly what it changed.

Looking at the working copy takes time and happens before anything is decided (`look_after`); after that a single event
is recorded. The agent's claims and the evidence are kept apart, and where they disagree the verification says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.gates.gate import Gate, ask_for_review
from handrail.domain.journal.entry import Changes, JournalEntry
from handrail.domain.journal.ports import OtherTask, Snapshot, Tracker
from handrail.domain.journal.scope import overlap, verification
from handrail.domain.work.apply_plan import lay_plan
from handrail.domain.work.checkpoint import Checkpoint, next_checkpoint
from handrail.domain.work.plan import PlanTask
from handrail.domain.work.plan_edit import PlanEdit, tally_of, tasks_named
from handrail.domain.work.task import REPLACEABLE, RUNNING, TASK_MACHINE, Task
from handrail.domain.work.transitions import MayFinish, blocked, check_open, check_parts, move_task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.errors import IllegalTransition, InvalidPlan
from handrail.kernel.ledger import HANDRAIL
from handrail.kernel.records import Query, Record, UnitOfWork, where

LOOKING = HANDRAIL
"""The actor for looking at the working copy before the real caller writes; it records no event."""
PROMISED = {"decision": 3, "error": 3, "progress": 5}
"""How many notes of a kind a task may have before the reply remarks that there are many."""
NOTE_NAMES = {"decision": "decisions", "error": "issues", "progress": "milestones"}
SUMMARY = 4000
ISSUES = 200
"""How many of a task's newest issues are searched for the one that a review is about."""
NEIGHBOURS = 20
"""How many other tasks in the same working copy are considered."""
WITHOUT_END = 200
"""How many of the newest entries without an end are searched for them."""
SHOWN_FILES = 100
KEPT_FILES = 500
"""How many paths a checkpoint and a task's outcome carry; the journal entry has all of them."""


class Beginning(NamedTuple):
    """The working copy as it is when a task begins."""

    snapshot: Snapshot


class Intent(NamedTuple):
    """What a task is to do, and where."""

    name: str
    goal: str
    areas: list[str]
    plan_step: str | None


class EndingTask(NamedTuple):
    """A task that is about to end: its entry, and the other tasks that were open at the same time."""

    directory: str | None
    entry: JournalEntry | None
    neighbours: list[JournalEntry]


class Ending(NamedTuple):
    """What a second look at the working copy found; empty if there was no first one."""

    after: Snapshot | None
    changes: Changes | None
    checks: list[dict[str, Any]] | None


class OutcomeClaims(NamedTuple):
    """What the agent says about its work."""

    status: str
    outcome: dict[str, Any]
    metadata: dict[str, Any]
    checks: list[dict[str, Any]]


class RecordedEnd(NamedTuple):
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


def begin(
    unit: UnitOfWork, workflow: Workflow, beginning: Beginning, work: Intent, parent: Task | None
) -> tuple[Task, list[str]]:
    """Starts a task and records the snapshot it begins with. Takes up the plan's task of this name if there is one."""
    check_open(workflow, starting=False)  # a paused workflow only gives a warning
    edit = PlanEdit(unit, workflow)
    task, warnings = _task_to_start(unit, edit, work, parent)
    started = edit.change(
        task,
        status="in_progress",
        error=None,
        outcome=None,
        outcome_detail=None,
        attempts=task.attempts + (task.status != "in_progress"),
        started_at=task.started_at or edit.now,
    )
    warnings += _overlap_warnings(unit, beginning.snapshot.root, started, work.areas)
    if workflow.status == "paused":
        warnings.append(f"workflow {workflow.id} is paused: ask before you go on")
    entry = _entry(unit, started, beginning.snapshot, work)
    notes: list[Record] = []
    if unit.get(JournalEntry, started.id) is not None:
        again = next_checkpoint(unit, started, "progress", f"Taken up again: {work.goal}"[:SUMMARY], {"taken_up": True})
        edit.change(started, checkpoints=again.sequence)
        notes.append(again)
    if entry.started_at != edit.now and entry.directory != beginning.snapshot.root:
        warnings.append(f"its work began in {entry.directory}; what it changed is looked for there")
    status = workflow.status if workflow.status == "paused" else "in_progress"
    edit.record("task.in_progress", entry, *notes, status=status)
    return started, warnings


def _entry(unit: UnitOfWork, task: Task, found: Snapshot, work: Intent) -> JournalEntry:
    """The entry of a task that begins. One that was begun before keeps its first snapshot: what it has changed since is
    its work too."""
    before = unit.get(JournalEntry, task.id)
    if before is not None:
        return msgspec.structs.replace(
            before,
            areas=work.areas or before.areas,
            plan_step=work.plan_step or before.plan_step,
            after=None,
            report=None,
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
    """The existing task that `start_task` with this name means: not finished, and not already under way with a journal
    entry. A task that was begun by claiming it has no entry yet."""
    known = tasks_named(unit, workflow_id, [name]).get(name)
    if known is None or known.status in (*REPLACEABLE, "planning", "paused"):
        return known
    return known if known.status == "in_progress" and unit.get(JournalEntry, known.id) is None else None


def _task_to_start(unit: UnitOfWork, edit: PlanEdit, work: Intent, parent: Task | None) -> tuple[Task, list[str]]:
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


def _overlap_warnings(unit: UnitOfWork, directory: str, started: Task, areas: list[str]) -> list[str]:
    """A warning for every other open task in this working copy that declares the same areas."""
    found = []
    for other in _open_in(unit, directory):
        shared = list(dict.fromkeys(met.area for met in overlap(areas, other.areas)))
        task = unit.get(Task, other.id)
        if shared and task is not None and not _is_kin(unit, started, other.id):
            found.append(f'"{task.name}" ({task.id}) is open in the same tree and touches {", ".join(shared)} too')
    return found


def _open_in(unit: UnitOfWork, directory: str, since: int | None = None) -> list[JournalEntry]:
    """The newest tasks at work in a working copy, and those that stopped after `since`. An entry without an end is not
    enough: its task may have ended outside the journal, and then takes no part in what others change later."""
    conditions = (("directory", directory), ("completed_at", None))
    entries = unit.select(JournalEntry, Query(conditions, ("-id",), WITHOUT_END))
    return [entry for entry in entries if _was_at_work(unit, entry, since)][:NEIGHBOURS]


def _was_at_work(unit: UnitOfWork, entry: JournalEntry, since: int | None) -> bool:
    """Whether a task is at work or, as far as its last change tells, was so after `since`."""
    task, workflow = unit.get(Task, entry.id), unit.get(Workflow, entry.workflow_id)
    if task is None or workflow is None:
        return False
    if workflow.status in CLOSED:
        return since is not None and workflow.updated_at > since
    return task.status in RUNNING or (since is not None and (task.finished_at or task.updated_at) > since)


# -- notes ------------------------------------------------------------------------------------------------------------


def note(
    unit: UnitOfWork, task: Task, kind: str, summary: str, detail: dict[str, Any], *, review: str | None = None
) -> tuple[Checkpoint, list[str]]:
    """Records a checkpoint on an open task and, with `review`, a question to a person."""
    if task.is_finished:
        raise IllegalTransition(
            f'task "{task.name}" is {task.status}; notes belong to open tasks',
            hint="start_task begins the next one",
            status=task.status,
        )
    checkpoint = next_checkpoint(unit, task, kind, summary[:SUMMARY], detail)
    counted = msgspec.structs.replace(task, checkpoints=checkpoint.sequence, updated_at=checkpoint.created_at)
    gates = [ask_for_review(unit, task, review)] if review is not None else []
    unit.record("checkpoint.added", checkpoint, counted, *gates)
    return checkpoint, _many_notes_warning(unit, task, kind)


def resolutions(unit: UnitOfWork, reviews: Sequence[Gate]) -> dict[str, str]:
    """What an agent did about the issue that a review asks a person to look at, by the review's id. A review of
    something else, as the end of a task, has none."""
    found: dict[str, str] = {}
    for task_id in dict.fromkeys(review.task_id for review in reviews if review.task_id is not None):
        of_task = (("task_id", task_id), ("type", "error"))
        issues = unit.select(Checkpoint, Query(of_task, ("-sequence", "-id"), ISSUES))
        told = [issue.detail for issue in issues if issue.detail.get("requires_human_review")]
        for review in reviews:
            if review.task_id == task_id and (resolution := _resolution(review.question, told)):
                found[review.id] = resolution
    return found


def _resolution(question: str, issues: Sequence[Mapping[str, Any]]) -> str:
    for issue in issues:
        if issue.get("description") and question.endswith(f": {issue['description']}"):
            return str(issue.get("resolution") or "")
    return ""


def _many_notes_warning(unit: UnitOfWork, task: Task, kind: str) -> list[str]:
    """A warning once a task has more notes of a kind than its readers were promised."""
    count = unit.count(Checkpoint, where(task_id=task.id, type=kind)) + 1
    if count <= PROMISED[kind]:
        return []
    return [f"this task has {count} {NOTE_NAMES[kind]}; {PROMISED[kind]} are enough for most: kept all the same"]


# -- ending -----------------------------------------------------------------------------------------------------------


def ends_as(claimed: str) -> str:
    """The task state for what the agent claims: success, partial_success or failed."""
    return "failed" if claimed == "failed" else "completed"


def check_ending(unit: UnitOfWork, task: Task, status: str) -> EndingTask:
    """What is known about a task that is about to complete or fail; refuses if it cannot."""
    TASK_MACHINE.check(f'task "{task.name}"', task.status, status)
    check_parts(unit, task)
    entry = unit.get(JournalEntry, task.id)
    if entry is None:
        return EndingTask(None, None, [])
    ended = (("directory", entry.directory), ("completed_at >", entry.started_at))
    recent = unit.select(JournalEntry, Query(ended, ("-completed_at", "-id"), NEIGHBOURS))
    unended = _open_in(unit, entry.directory, since=entry.started_at)
    others = [other for other in (*unended, *recent) if not _is_kin(unit, task, other.id)]
    return EndingTask(entry.directory, entry, others)


def _is_kin(unit: UnitOfWork, task: Task, other_id: str) -> bool:
    """True for the task itself, its ancestors and its subtasks: their work counts as one."""
    return other_id in _with_ancestors(unit, task) or task.id in _with_ancestors(unit, unit.get(Task, other_id))


def _with_ancestors(unit: UnitOfWork, task: Task | None) -> list[str]:
    """A task and the tasks it is part of."""
    found = []
    while task is not None:
        found.append(task.id)
        task = unit.get(Task, task.parent_task_id) if task.parent_task_id is not None else None
    return found


def look_after(tracker: Tracker, standing: EndingTask, checks: list[dict[str, Any]] | None) -> Ending:
    """Looks at the working copy again and compares. `checks` is None if none were requested."""
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
    """The entry of a task that is still under way."""
    entry = unit.get(JournalEntry, task.id)
    return entry if entry is not None and entry.completed_at is None and task.status in RUNNING else None


def changed_so_far(tracker: Tracker, entry: JournalEntry) -> list[str]:
    """What a task that is still under way has changed so far."""
    before = snapshot_of(entry.before)
    now = tracker.snapshot(entry.directory, like=before)
    try:
        return [change.path for change in tracker.changes(before, now).own]
    finally:
        tracker.forget(now)


def complete(unit: UnitOfWork, task: Task, ending: Ending, claims: OutcomeClaims, may_finish: MayFinish) -> RecordedEnd:
    """Records the task's final state and its report."""
    status = ends_as(claims.status)
    standing = check_ending(unit, task, status)
    entry, now = standing.entry, unit.now_ms()
    report = _report(ending, claims)
    paths = [change["path"] for change in report["files"]]
    packages = bool(claims.metadata.get("packages_added") or claims.metadata.get("packages_removed"))
    found = msgspec.to_builtins(verification(paths, entry.areas if entry is not None else [], packages))
    found["warnings"] = [*found["warnings"], *_doubts(ending, claims, journalled=entry is not None)]
    report["verification"] = found
    summary = claims.outcome["summary"]
    failed = status == "failed"
    detail = {"status": claims.status, **claims.outcome, "metadata": claims.metadata}
    detail |= {"files_changed": shown_files(report, KEPT_FILES).files, "verification": found}
    detail |= {"checks": report["checks"]} if report["checks"] else {}
    kind = "error" if failed else "complete"
    checkpoint = next_checkpoint(unit, task, kind, summary[:SUMMARY], {"status": claims.status}, paths[:KEPT_FILES])
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
        may_finish=may_finish,
        checkpoints=checkpoint.sequence,
    )
    began = entry.started_at if entry is not None else task.started_at or now
    return RecordedEnd(report, found, max(0, now - began) // 1000, gate.id if gate is not None else None)


def _review_of(unit: UnitOfWork, task: Task, claims: OutcomeClaims) -> Gate | None:
    if not claims.outcome.get("manual_review_needed"):
        return None
    reason = claims.outcome.get("manual_review_reason") or claims.outcome["summary"]
    return ask_for_review(unit, task, f"{task.name}: {reason}")


def _report(ending: Ending, claims: OutcomeClaims) -> dict[str, Any]:
    changes: dict[str, Any] = msgspec.to_builtins(ending.changes) if ending.changes is not None else {}
    return {
        "files": changes.get("own", []),
        "renamed": changes.get("renamed", []),
        "external": changes.get("external", []),
        "dirty_before": changes.get("dirty_before", []),
        "partial": changes.get("partial", False),
        "overlaps": changes.get("overlaps", []),
        "commits": changes.get("commits", []),
        "checks": [*claims.checks, *(ending.checks or ())],
    }


def _doubts(ending: Ending, claims: OutcomeClaims, *, journalled: bool) -> list[str]:
    """Reasons for doubt: no snapshot, a partial look, claims that the evidence contradicts."""
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
    """The changed files by kind, at most `most` in all."""
    files: dict[str, list[str]] = {"added": [], "modified": [], "deleted": []}
    for change in report["files"][:most]:
        files[change["change"]].append(change["path"])
    return ShownFiles(files, max(0, len(report["files"]) - most))


def snapshot_of(document: dict[str, Any]) -> Snapshot:
    return msgspec.convert(document, Snapshot)
