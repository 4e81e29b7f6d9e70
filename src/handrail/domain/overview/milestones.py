"""How far the work of a workflow is, in its agents' own words: milestones and progress notes, newest first. Reads only;
`journal/timeline.py` has everything that happened, moment by moment."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.overview.decisions import authors_of
from handrail.domain.overview.rows import agent_names
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.plan_edit import tally_of
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import Query, UnitOfWork, found_by

SHOWN = 300
TOLD = ("progress", "complete", "recovery")
"""Kinds of notes that report progress."""


class MilestoneRow(msgspec.Struct, frozen=True, kw_only=True):
    """One note."""

    id: str
    title: str
    """The task's name."""
    text: str
    task_id: str
    progress: float | None
    """How far the task is, 0 to 1, if its agent says so."""
    at: int
    by: str | None
    """Who wrote it; for a very old note, the agent that has or had the task."""
    status: str
    """milestone, or the kind of the note: progress, complete, recovery."""


class PlanProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the plan is done."""

    done: int
    total: int


class Milestones(msgspec.Struct, frozen=True, kw_only=True):
    """Notes, newest first."""

    milestones: list[MilestoneRow]
    progress: PlanProgress
    more: int


def milestones(unit: UnitOfWork, workflow: Workflow) -> Milestones:
    notes: list[Checkpoint] = []
    total = 0
    for kind in TOLD:
        own = (("workflow_id", workflow.id), ("type", kind))
        notes += unit.select(Checkpoint, Query(own, ("-created_at", "-id"), SHOWN))
        total += unit.count(Checkpoint, Query(own))
    notes = sorted(notes, key=lambda note: (note.created_at, note.sequence, note.id), reverse=True)[:SHOWN]
    tasks = {task.id: task for task in found_by(unit, Task, "id", (note.task_id for note in notes))}
    authors = authors_of(unit, workflow.id, {note.id for note in notes}) if notes else {}
    names = agent_names(unit, (*authors.values(), *(task.assigned_agent_id for task in tasks.values())))
    tally = tally_of(unit, workflow.id)
    return Milestones(
        milestones=[
            MilestoneRow(
                id=note.id,
                title=tasks[note.task_id].name if note.task_id in tasks else note.task_id,
                text=note.summary,
                task_id=note.task_id,
                progress=_share(note.detail.get("progress")),
                at=note.created_at,
                by=names.get(authors.get(note.id) or _holder(tasks.get(note.task_id)) or ""),
                status="milestone" if note.detail.get("milestone") else note.type,
            )
            for note in notes
        ],
        progress=PlanProgress(done=tally.finished, total=tally.total),
        more=total - len(notes),
    )


def _holder(task: Task | None) -> str | None:
    return task.assigned_agent_id if task is not None else None


def _share(percent: Any) -> float | None:
    """An agent's figure from 0 to 100, as a fraction."""
    if not isinstance(percent, int | float) or isinstance(percent, bool):
        return None
    return min(max(percent / 100, 0.0), 1.0)
