"""A workflow's report: what was asked for and planned, what it took, what each task did and changed, what was decided
and answered, and what is left. The one reader behind every form of it: `handrail report`, `handrail export`, the page.

Bounded, and pure reading; how a report looks is `surfaces/report`'s. What agents claim and what was found out stand
apart, as they do in the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from handrail.domain.gates.gate import GATE_MACHINE, REVIEW
from handrail.domain.journal.entry import FileTotals, JournalEntry, totals
from handrail.domain.journal.plan_steps import plan_steps
from handrail.domain.overview.decisions import DecisionRow, decision_rows
from handrail.domain.overview.gates import GateRow, workflow_gates
from handrail.domain.overview.pipeline import PipelineView, pipeline_view
from handrail.domain.overview.report_tasks import TEXT, ReportTask, report_task, texts
from handrail.domain.overview.rows import WorkflowRow, task_rows, workflow_rows
from handrail.domain.overview.timeline import Bar, WorkflowTimeline, timeline
from handrail.domain.pipeline.run_gates import DECISION
from handrail.domain.pipeline.turns import RunRules
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.plan_edit import tally_of
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.records import Query, UnitOfWork, found_by
from handrail.kernel.wording import shortened

TASKS = 2000
"""Tasks that a report has: the first, in the plan's order."""
STRAYS = 500
"""Files outside their task's areas that are listed for all tasks together."""
NOTES = 2000
"""Decisions and questions, the newest of each, and issues."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What it took, in numbers."""

    states: dict[str, int]
    """How many tasks are in which state, without those that no task is in."""
    wall_ms: int
    """From its start to its end, or until now."""
    agent_ms: int
    """The total time that agents were at work."""
    busy_ms: int
    """The time during which at least one agent was at work."""
    parallelism: float | None
    """How many agents were at work at once, on average over `busy_ms`."""
    queue_ms: int
    """The total time that tasks were ready and nobody began them."""
    attempts: int
    retries: int
    """Attempts after a task's first."""
    asked: int
    """How often work waited for a person."""
    person_ms: int
    """The total time it waited."""
    reviews: int
    """Reviews that people were asked for; no work waited for them."""
    unanswered: int
    """Decisions and reviews that are still open."""
    critical_ms: int
    """The time spent working on tasks of the critical path."""
    tokens: int | None
    """As reported by agents; None if nobody did."""
    money: float | None
    files: int
    lines_added: int
    lines_removed: int
    uncounted: int
    """Changes whose lines nobody counted: binary files, and those too large to keep."""
    distinct_files: int
    out_of_scope: int
    """Files that tasks changed outside the areas they declared."""
    checks_run: int
    checks_failed: int
    superseded: int
    """Decisions that a later one replaced."""


class Stray(msgspec.Struct, frozen=True, kw_only=True):
    """A file outside its areas that a task changed."""

    path: str
    task_id: str
    task_name: str


class ReportedIssue(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that came up, and what was done about it."""

    task_id: str
    task_name: str
    kind: str | None
    """What its agent called it, such as `documentation_gap`."""
    text: str
    resolution: str | None
    for_review: bool
    at: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The whole report. Lists are in chronological order, tasks in plan order."""

    workflow: WorkflowRow
    goal: str
    summary: str | None
    """The plan in short, where it says."""
    approach: str | None
    steps: list[str]
    """The steps in words that it was begun with, in order."""
    risks: list[str]
    assumptions: list[str]
    made_at: int
    ended_at: int | None
    totals: Totals
    critical: list[str]
    """The ids of the tasks on the critical path, first to last."""
    tasks: list[ReportTask]
    tasks_more: int
    decisions: list[DecisionRow]
    decisions_more: int
    gates: list[GateRow]
    gates_more: int
    strays: list[Stray]
    strays_more: int
    issues: list[ReportedIssue]
    timeline: WorkflowTimeline
    pipeline: PipelineView | None


def report(unit: UnitOfWork, workflow: Workflow, critical: Sequence[str], rules: RunRules) -> Report:
    """The report of a workflow. `critical` is its critical path, as in its drawing."""
    (row,) = workflow_rows(unit, [workflow])
    records = unit.select(Task, Query((("workflow_id", workflow.id),), ("sequence",), TASKS))
    entries = {entry.id: entry for entry in found_by(unit, JournalEntry, "id", (task.id for task in records))}
    line = timeline(unit, workflow)
    worked, on_path = _worked(line), set(critical)
    names = {task.id: task.name for task in records}
    tasks = [
        report_task(record, one, entries.get(record.id), names, worked.get(record.id, 0), record.id in on_path)
        for record, one in zip(records, task_rows(unit, records), strict=True)
    ]
    asked = workflow_gates(unit, workflow, NOTES)
    made_in = (("workflow_id", workflow.id), ("type", "decision"))
    newest = unit.select(Checkpoint, Query(made_in, ("-created_at", "-id"), NOTES))
    made = decision_rows(unit, workflow, newest[::-1])
    run = pipeline_view(unit, workflow.id, rules)
    strays = _strays(records, entries)
    counts = tally_of(unit, workflow.id).counts
    told = {"ready": row.ready, **counts, "pending": counts["pending"] - row.ready}  # in the words of the rows
    states = {state: count for state, count in told.items() if count}
    plan = workflow.plan or {}
    return Report(
        workflow=row,
        goal=shortened(workflow.source_content, TEXT),
        summary=_said(plan, "summary"),
        approach=_said(plan, "approach"),
        steps=[shortened(step.text, TEXT) for step in plan_steps(plan)],
        risks=texts(plan, "risks"),
        assumptions=texts(plan, "assumptions"),
        made_at=unit.now_ms(),
        ended_at=workflow.updated_at if workflow.status in CLOSED else None,
        totals=_totals(_Found(line, asked.gates, tasks, list(entries.values()), made, run, len(strays)), states),
        critical=list(critical),
        tasks=tasks,
        tasks_more=max(0, row.total - len(tasks)),
        decisions=made,
        decisions_more=unit.count(Checkpoint, Query(made_in)) - len(made),
        gates=asked.gates[::-1],
        gates_more=asked.more,
        strays=strays[:STRAYS],
        strays_more=max(0, len(strays) - STRAYS),
        issues=_issues(unit, workflow, names),
        timeline=line,
        pipeline=run,
    )


def _said(plan: Mapping[str, Any], name: str) -> str | None:
    text = plan.get(name)
    return shortened(text, TEXT) if isinstance(text, str) and text.strip() else None


# -- time -------------------------------------------------------------------------------------------------------------


def _lasted(bar: Bar, line: WorkflowTimeline) -> int:
    return max(0, (bar.until if bar.until is not None else line.until) - bar.since)


def _worked(line: WorkflowTimeline) -> dict[str, int]:
    """Time at work, by task."""
    found: dict[str, int] = {}
    for bar in line.bars:
        if bar.kind == "work" and bar.task_id is not None:
            found[bar.task_id] = found.get(bar.task_id, 0) + _lasted(bar, line)
    return found


def covered(spans: Iterable[tuple[int, int]]) -> int:
    """The total time that these spans cover; overlaps count once."""
    total, end = 0, None
    for begins, ends in sorted(spans):
        if end is None or begins > end:
            total += ends - begins
            end = ends
        elif ends > end:
            total += ends - end
            end = ends
    return total


class _Found(NamedTuple):
    """What the totals are counted from."""

    line: WorkflowTimeline
    gates: Sequence[GateRow]
    tasks: Sequence[ReportTask]
    entries: Sequence[JournalEntry]
    decisions: Sequence[DecisionRow]
    run: PipelineView | None
    strays: int


def _totals(found: _Found, states: dict[str, int]) -> Totals:
    line, tasks = found.line, found.tasks
    work = [bar for bar in line.bars if bar.kind == "work"]
    agent_ms = sum(_lasted(bar, line) for bar in work)
    busy_ms = covered((bar.since, bar.since + _lasted(bar, line)) for bar in work)
    waits = [gate for gate in found.gates if gate.kind == DECISION and gate.status != "withdrawn"]
    files = list(chain.from_iterable((entry.report or {}).get("files", ()) for entry in found.entries))
    changed: FileTotals = totals(files)
    checks = [check for task in tasks for check in task.checks]
    spent = found.run.spent if found.run is not None else None
    attempts = [task.row.attempts for task in tasks]
    return Totals(
        states=states,
        wall_ms=max(0, line.until - line.since),
        agent_ms=agent_ms,
        busy_ms=busy_ms,
        parallelism=round(agent_ms / busy_ms, 2) if busy_ms else None,
        queue_ms=sum(_lasted(bar, line) for bar in line.bars if bar.kind == "queue"),
        attempts=sum(attempts),
        retries=sum(max(0, count - 1) for count in attempts),
        asked=len(waits),
        person_ms=sum(gate.waited_ms for gate in waits),
        reviews=sum(gate.kind == REVIEW and gate.status != "withdrawn" for gate in found.gates),
        unanswered=sum(gate.status == GATE_MACHINE.initial for gate in found.gates),
        critical_ms=sum(task.worked_ms for task in tasks if task.on_critical),
        tokens=spent.tokens if spent is not None else None,
        money=spent.money if spent is not None else None,
        files=changed.files,
        lines_added=changed.lines_added,
        lines_removed=changed.lines_removed,
        uncounted=changed.uncounted,
        distinct_files=len({change["path"] for change in files}),
        out_of_scope=found.strays,
        checks_run=len(checks),
        checks_failed=sum(check.exit_code not in (0, None) for check in checks),
        superseded=sum(one.superseded_by is not None for one in found.decisions),
    )


# -- what went wrong --------------------------------------------------------------------------------------------------


def _strays(tasks: Sequence[Task], entries: Mapping[str, JournalEntry]) -> list[Stray]:
    return [
        Stray(path=str(path), task_id=task.id, task_name=task.name)
        for task in tasks
        if (entry := entries.get(task.id)) is not None and entry.report is not None
        for path in entry.report.get("verification", {}).get("unexpected_files", ())
    ]


def _issues(unit: UnitOfWork, workflow: Workflow, names: Mapping[str, str]) -> list[ReportedIssue]:
    met = (("workflow_id", workflow.id), ("type", "error"))
    notes = unit.select(Checkpoint, Query(met, ("created_at",), NOTES))
    return [
        ReportedIssue(
            task_id=note.task_id,
            task_name=names.get(note.task_id, note.task_id),
            kind=str(note.detail["type"]) if note.detail.get("type") else None,
            text=shortened(str(note.detail.get("description") or note.summary), TEXT),
            resolution=shortened(str(note.detail["resolution"]), TEXT) if note.detail.get("resolution") else None,
            for_review=bool(note.detail.get("requires_human_review")),
            at=note.created_at,
        )
        for note in notes
        if not note.is_end  # the end of a failed task is reported with the task
    ]
