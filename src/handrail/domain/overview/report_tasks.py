"""One task of a report: what it was for, what its agent says came of it, and what it changed. The records are
handed in; a whole report is `report.py`'s.

What an agent or another tool's file says of a task may have any shape; what is not as expected is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.domain.journal.entry import JournalEntry, totals
from handrail.domain.overview.rows import TaskRow, cut
from handrail.domain.work.task import Task
from handrail.kernel.wording import shortened

FILES = 200
"""Files that are listed for one task."""
TEXT = 100_000
"""Characters of one text. A goal may be as long as a book."""


class ReportedChange(msgspec.Struct, frozen=True, kw_only=True):
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


class ReportedClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent says of its work. Nobody checked it."""

    achievements: list[str]
    limitations: list[str]
    next_steps: list[str]
    packages_added: list[str]
    packages_removed: list[str]
    commands: list[str]
    tests: str | None
    """How the tests went."""


class ReportTask(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one task."""

    row: TaskRow
    worked_ms: int
    on_critical: bool
    ended: str | None
    """How its agent says it ended: success, partial_success, failed."""
    goal: str
    """What it is for; empty where its name says it all."""
    text: str | None
    """What came of it, in its agent's words, or why it failed."""
    claims: ReportedClaims
    part_of: str | None
    """The name of the task that it is a part of."""
    plan_step: str | None
    """The step of the plan in words that it was begun for."""
    areas: list[str]
    files: list[ReportedChange]
    files_more: int
    lines_added: int
    lines_removed: int
    uncounted: int
    outside: list[str]
    """Files that it changed outside of its areas."""
    outside_more: int
    external: int
    """Files that changed meanwhile, not by this task."""
    overlaps: int
    """Its files that changed while other tasks were open in the same tree."""
    checks: list[CheckRun]
    warnings: list[str]


def report_task(
    task: Task, row: TaskRow, entry: JournalEntry | None, names: Mapping[str, str], worked_ms: int, on_critical: bool
) -> ReportTask:
    """A task with its journal entry, if it has one; `names` are those of the tasks it may be a part of."""
    found = (entry.report if entry is not None else None) or {}
    files = found.get("files") or []
    counted = totals(files)
    said = (task.outcome_detail or {}).get("status")
    areas = entry.areas if entry is not None else []
    verified = found.get("verification", {})
    outside = verified.get("unexpected_files", [])
    goal = str(task.context.get("goal") or task.description)
    return ReportTask(
        row=row,
        worked_ms=worked_ms,
        on_critical=on_critical,
        ended=said if isinstance(said, str) else None,
        goal="" if goal.strip() == task.name.strip() else shortened(goal, TEXT),
        text=cut(task.error if task.status == "failed" else task.outcome, TEXT),
        claims=_claims(task.outcome_detail or {}),
        part_of=names.get(task.parent_task_id, task.parent_task_id) if task.parent_task_id is not None else None,
        plan_step=entry.plan_step if entry is not None else None,
        areas=areas,
        files=_files(files[:FILES], set(outside) if areas else None),
        files_more=max(0, len(files) - FILES),
        lines_added=counted.lines_added,
        lines_removed=counted.lines_removed,
        uncounted=counted.uncounted,
        outside=outside[:FILES],
        outside_more=max(0, len(outside) - FILES),
        external=len(found.get("external") or ()),
        overlaps=len(found.get("overlaps") or ()),
        checks=[
            CheckRun(command=str(check.get("command", "")), exit_code=check.get("exit_code"))
            for check in found.get("checks") or ()
        ],
        warnings=[str(warning) for warning in verified.get("warnings", ())],
    )


def texts(said: Mapping[str, Any], name: str) -> list[str]:
    """The texts of a list that an agent, or another tool's file, may have filled with anything."""
    found = said.get(name)
    return [shortened(str(text), TEXT) for text in found] if isinstance(found, list) else []


def _claims(detail: Mapping[str, Any]) -> ReportedClaims:
    beside = detail.get("metadata")
    metadata: Mapping[str, Any] = beside if isinstance(beside, dict) else {}
    return ReportedClaims(
        achievements=texts(detail, "achievements"),
        limitations=texts(detail, "limitations"),
        next_steps=texts(detail, "next_steps"),
        packages_added=texts(metadata, "packages_added"),
        packages_removed=texts(metadata, "packages_removed"),
        commands=texts(metadata, "commands_executed"),
        tests=str(metadata["tests_status"]) if metadata.get("tests_status") else None,
    )


def _files(files: list[dict[str, Any]], outside: set[str] | None) -> list[ReportedChange]:
    """The changes; `outside` has those outside of the task's areas, None where it has no areas."""
    return [
        ReportedChange(
            path=change["path"],
            change=change["change"],
            lines_added=change.get("lines_added"),
            lines_removed=change.get("lines_removed"),
            binary=bool(change.get("binary")),
            in_scope=change["path"] not in outside if outside is not None else None,
        )
        for change in files
    ]
