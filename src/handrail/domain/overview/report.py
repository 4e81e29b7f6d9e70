"""A workflow told from its beginning: what it took, what each task came to, what was decided and answered, and what
changed outside of what was meant to. Bounded, and pure reading; how a report looks is `surfaces/report`'s.

What agents claim and what was found out stand apart, as they do in the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from handrail.domain.gates.gate import GATE_MACHINE
from handrail.domain.gates.reviews import REVIEW
from handrail.domain.journal.entry import JournalEntry
from handrail.domain.journal.file_changes import FileTotals, totals
from handrail.domain.overview.decisions import DecisionRow, decisions
from handrail.domain.overview.gates import GateRow, workflow_gates
from handrail.domain.overview.pipeline import PipelineView, pipeline_view
from handrail.domain.overview.rows import TaskRow, WorkflowRow, cut, found_by, task_rows, workflow_rows
from handrail.domain.overview.timeline import Bar, Timeline, timeline
from handrail.domain.pipeline.gatekeeping import DECISION
from handrail.domain.pipeline.running import Rules
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

TASKS = 2000
"""Tasks that a report tells of, in the plan's order."""
FILES = 100
"""Files that are listed of one task."""
STRAYS = 500
"""Files outside their task's areas that are listed of all tasks together."""
ISSUES = 300
TEXT = 4000
"""Characters of a text that a report has room for; a goal may be as long as a book."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What it took, in numbers."""

    wall_ms: int
    """From the beginning until its end, or until now."""
    agent_ms: int
    """Time at work of all agents, added up."""
    busy_ms: int
    """Time in which at least one of them was at work."""
    parallelism: float | None
    """How many were at work at once, on average of the time in which anybody was."""
    queue_ms: int
    """Time that tasks could have been begun and nobody did, added up."""
    attempts: int
    retries: int
    """Attempts after a task's first."""
    asked: int
    """How often work waited for a person."""
    person_ms: int
    """How long that was, added up."""
    reviews: int
    """Looks that people were asked for; nothing waited for those."""
    unanswered: int
    """Questions of both kinds that are still open."""
    critical_ms: int
    """Time at work on the tasks of the critical path."""
    tokens: int | None
    """As agents reported it; None where nobody did."""
    money: float | None
    files: int
    lines_added: int
    lines_removed: int
    distinct_files: int
    out_of_scope: int
    """Files that a task changed outside of the areas it was begun with."""
    checks_run: int
    checks_failed: int


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file that a task changed."""

    path: str
    change: str
    """added, modified or deleted."""
    lines_added: int | None
    """None where nobody counted."""
    lines_removed: int | None
    binary: bool
    in_scope: bool | None
    """None where the task was begun without areas."""


class CheckRun(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was run when a task ended."""

    command: str
    exit_code: int | None


class ReportTask(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one task."""

    row: TaskRow
    worked_ms: int
    on_critical: bool
    ended: str | None
    """How its agent says it ended: success, partial_success, failed."""
    text: str | None
    """What came of it, in its agent's words, or why it failed."""
    areas: list[str]
    files: list[FileChange]
    files_more: int
    lines_added: int
    lines_removed: int
    checks: list[CheckRun]
    warnings: list[str]


class Stray(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a task changed though it lies outside of its areas."""

    path: str
    task_id: str
    task_name: str


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that was met, and what was done about it."""

    task_id: str
    task_name: str
    text: str
    resolution: str | None
    for_review: bool
    at: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. Lists are in the order in which things happened; tasks in the plan's."""

    workflow: WorkflowRow
    goal: str
    approach: str | None
    made_at: int
    ended_at: int | None
    totals: Totals
    critical: list[str]
    """The ids of the tasks of the critical path, first to last."""
    tasks: list[ReportTask]
    tasks_more: int
    decisions: list[DecisionRow]
    decisions_more: int
    gates: list[GateRow]
    gates_more: int
    strays: list[Stray]
    strays_more: int
    issues: list[Issue]
    timeline: Timeline
    pipeline: PipelineView | None


def report(unit: UnitOfWork, workflow: Workflow, critical: Sequence[str], rules: Rules) -> Report:
    """The report of a workflow. `critical` is its critical path, as its drawing has it."""
    (row,) = workflow_rows(unit, [workflow])
    records = unit.select(Task, Query((("workflow_id", workflow.id),), ("sequence",), TASKS))
    entries = {entry.id: entry for entry in found_by(unit, JournalEntry, "id", (task.id for task in records))}
    line = timeline(unit, workflow)
    worked = _worked(line)
    asked, decided = workflow_gates(unit, workflow), decisions(unit, workflow)
    run = pipeline_view(unit, workflow.id, rules)
    rows = task_rows(unit, records)
    tasks = [
        _task(record, one, entries.get(record.id), worked.get(record.id, 0), record.id in critical)
        for record, one in zip(records, rows, strict=True)
    ]
    strays = _strays(records, entries)
    return Report(
        workflow=row,
        goal=cut(workflow.source_content, TEXT) or "",
        approach=_approach(workflow),
        made_at=unit.now_ms(),
        ended_at=workflow.updated_at if workflow.status in CLOSED else None,
        totals=_totals(line, asked.gates, tasks, entries.values(), critical, run, len(strays)),
        critical=list(critical),
        tasks=tasks,
        tasks_more=max(0, row.total - len(tasks)),
        decisions=decided.decisions[::-1],
        decisions_more=decided.more,
        gates=asked.gates[::-1],
        gates_more=asked.more,
        strays=strays[:STRAYS],
        strays_more=max(0, len(strays) - STRAYS),
        issues=_issues(unit, workflow, {task.id: task.name for task in records}),
        timeline=line,
        pipeline=run,
    )


def _approach(workflow: Workflow) -> str | None:
    approach = (workflow.plan or {}).get("approach")
    return cut(approach, TEXT) if isinstance(approach, str) and approach.strip() else None


# -- time -------------------------------------------------------------------------------------------------------------


def _lasted(bar: Bar, line: Timeline) -> int:
    return max(0, (bar.until if bar.until is not None else line.until) - bar.since)


def _worked(line: Timeline) -> dict[str, int]:
    """Time at work, by task."""
    found: dict[str, int] = {}
    for bar in line.bars:
        if bar.kind == "work" and bar.task_id is not None:
            found[bar.task_id] = found.get(bar.task_id, 0) + _lasted(bar, line)
    return found


def covered(spans: Iterable[tuple[int, int]]) -> int:
    """How much time these cover together; what lies in several of them counts once."""
    total, end = 0, None
    for begins, ends in sorted(spans):
        if end is None or begins > end:
            total += ends - begins
            end = ends
        elif ends > end:
            total += ends - end
            end = ends
    return total


def _totals(
    line: Timeline,
    gates: Sequence[GateRow],
    tasks: Sequence[ReportTask],
    entries: Iterable[JournalEntry],
    critical: Sequence[str],
    run: PipelineView | None,
    strays: int,
) -> Totals:
    work = [bar for bar in line.bars if bar.kind == "work"]
    agent_ms = sum(_lasted(bar, line) for bar in work)
    busy_ms = covered((bar.since, bar.since + _lasted(bar, line)) for bar in work)
    waits = [gate for gate in gates if gate.kind == DECISION and gate.status != "withdrawn"]
    files = list(chain.from_iterable((entry.report or {}).get("files", ()) for entry in entries))
    changed: FileTotals = totals(files)
    checks = [check for task in tasks for check in task.checks]
    on_path = set(critical)
    attempts = [task.row.attempts for task in tasks]
    return Totals(
        wall_ms=max(0, line.until - line.since),
        agent_ms=agent_ms,
        busy_ms=busy_ms,
        parallelism=round(agent_ms / busy_ms, 2) if busy_ms else None,
        queue_ms=sum(_lasted(bar, line) for bar in line.bars if bar.kind == "queue"),
        attempts=sum(attempts),
        retries=sum(max(0, count - 1) for count in attempts),
        asked=len(waits),
        person_ms=sum(gate.waited_ms for gate in waits),
        reviews=sum(gate.kind == REVIEW and gate.status != "withdrawn" for gate in gates),
        unanswered=sum(gate.status == GATE_MACHINE.initial for gate in gates),
        critical_ms=sum(task.worked_ms for task in tasks if task.row.id in on_path),
        tokens=run.spent.tokens if run is not None and run.spent is not None else None,
        money=run.spent.money if run is not None and run.spent is not None else None,
        files=changed.files,
        lines_added=changed.lines_added,
        lines_removed=changed.lines_removed,
        distinct_files=len({change["path"] for change in files}),
        out_of_scope=strays,
        checks_run=len(checks),
        checks_failed=sum(check.exit_code not in (0, None) for check in checks),
    )


# -- tasks ------------------------------------------------------------------------------------------------------------


def _task(task: Task, row: TaskRow, entry: JournalEntry | None, worked_ms: int, on_critical: bool) -> ReportTask:
    found = (entry.report if entry is not None else None) or {}
    files = found.get("files") or []
    counted = totals(files)
    said = (task.outcome_detail or {}).get("status")
    areas = entry.areas if entry is not None else []
    outside = set(found.get("verification", {}).get("unexpected_files", ()))
    return ReportTask(
        row=row,
        worked_ms=worked_ms,
        on_critical=on_critical,
        ended=said if isinstance(said, str) else None,
        text=cut(task.error if task.status == "failed" else task.outcome, TEXT),
        areas=areas,
        files=[
            FileChange(
                path=change["path"],
                change=change["change"],
                lines_added=change.get("lines_added"),
                lines_removed=change.get("lines_removed"),
                binary=bool(change.get("binary")),
                in_scope=change["path"] not in outside if areas else None,
            )
            for change in files[:FILES]
        ],
        files_more=max(0, len(files) - FILES),
        lines_added=counted.lines_added,
        lines_removed=counted.lines_removed,
        checks=[
            CheckRun(command=str(check.get("command", "")), exit_code=check.get("exit_code"))
            for check in found.get("checks") or ()
        ],
        warnings=[str(warning) for warning in found.get("verification", {}).get("warnings", ())],
    )


def _strays(tasks: Sequence[Task], entries: Mapping[str, JournalEntry]) -> list[Stray]:
    return [
        Stray(path=str(path), task_id=task.id, task_name=task.name)
        for task in tasks
        if (entry := entries.get(task.id)) is not None and entry.report is not None
        for path in entry.report.get("verification", {}).get("unexpected_files", ())
    ]


def _issues(unit: UnitOfWork, workflow: Workflow, names: Mapping[str, str]) -> list[Issue]:
    met = (("workflow_id", workflow.id), ("type", "error"))
    notes = unit.select(Checkpoint, Query(met, ("created_at",), ISSUES))
    return [
        Issue(
            task_id=note.task_id,
            task_name=names.get(note.task_id, note.task_id),
            text=cut(str(note.detail.get("description") or note.summary), TEXT) or "",
            resolution=cut(str(note.detail["resolution"]), TEXT) if note.detail.get("resolution") else None,
            for_review=bool(note.detail.get("requires_human_review")),
            at=note.created_at,
        )
        for note in notes
        if set(note.detail) != {"status"}  # the end of a task that failed is told with the task
    ]
