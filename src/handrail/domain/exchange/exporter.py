"""Turns rows into a document: a workflow's plan with its results, complete and in a well-defined order.

It contains no ids: names are the keys, so that the same plan in another store gives the same document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handrail.domain.exchange.plan_document import (
    PlanDocument,
    PlannedTask,
    PlanNote,
    attempts_assumed,
    context_beside,
    origin_in,
    status_there,
)
from handrail.domain.journal.decision_log import SUPERSEDES
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.plan import entry_fields
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import Query, UnitOfWork, where


def document_of(unit: UnitOfWork, workflow: Workflow) -> PlanDocument:
    """The workflow in its current state."""
    tasks = unit.select(Task, where(workflow_id=workflow.id))
    names = {task.id: task.name for task in tasks}
    known = set(names.values())
    notes: dict[str, list[Checkpoint]] = {}
    for checkpoint in unit.select(Checkpoint, Query((("workflow_id", workflow.id),))):
        notes.setdefault(checkpoint.task_id, []).append(checkpoint)
    ordered = sorted(tasks, key=lambda task: (task.sequence, task.name))
    for written in notes.values():
        written.sort(key=lambda note: note.sequence)
    keys = _keys([note for task in ordered for note in notes.get(task.id, ())])
    found = [
        _planned(
            task, names.get(task.parent_task_id or ""), [_note(note, keys) for note in notes.get(task.id, ())], known
        )
        for task in ordered
    ]
    return PlanDocument(
        name=workflow.name,
        source_type=workflow.source_type,
        source_ref=workflow.source_ref,
        description=workflow.source_content,
        status=workflow.status,
        plan=workflow.plan,
        max_parallel_tasks=workflow.max_parallel_tasks,
        auto_create_workspaces=workflow.auto_create_workspaces,
        created_at=workflow.created_at,
        tasks=found,
    )


def _keys(notes: Sequence[Checkpoint]) -> dict[str, str]:
    """Document keys for the notes that others replace, by their ids."""
    named = {name for note in notes for name in superseded(note.detail)}
    replaced = [note.id for note in notes if note.id in named]
    return {key: f"note:{number}" for number, key in enumerate(replaced, 1)}


def _note(note: Checkpoint, keys: Mapping[str, str]) -> PlanNote:
    return PlanNote(
        type=note.type,
        summary=note.summary,
        detail=with_superseded(note.detail, keys),
        files_changed=list(note.files_changed),
        at=note.created_at,
        key=keys.get(note.id),
    )


def superseded(detail: Mapping[str, Any]) -> list[str]:
    """What a note says it replaces: ids, keys or words."""
    said = detail.get(SUPERSEDES)
    return [name for name in (said if isinstance(said, list) else [said]) if isinstance(name, str)]


def with_superseded(detail: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A note's detail with the names of what it replaces translated."""
    if not any(name in names for name in superseded(detail)):
        return detail
    said = detail[SUPERSEDES]
    other = (
        [names.get(name, name) if isinstance(name, str) else name for name in said] if isinstance(said, list) else None
    )
    return {**detail, SUPERSEDES: other if other is not None else names[said]}


def _planned(task: Task, parent: str | None, notes: list[PlanNote], known: set[str]) -> PlannedTask:
    origin = origin_in(task.context)
    status = status_there(task.status, task.context)
    assumed = attempts_assumed(status, task.started_at)
    return PlannedTask(
        **entry_fields(task, depends_on=[name for name in task.depends_on if name in known]),
        parent=parent,
        status=status,
        plan=task.plan,
        context=context_beside(task.context, origin),
        outcome=task.outcome,
        outcome_detail=task.outcome_detail,
        error=task.error,
        attempts=task.attempts if task.attempts != assumed else None,
        created_at=task.created_at,
        started_at=task.started_at,
        finished_at=task.finished_at,
        notes=notes,
        origin=origin,
    )
