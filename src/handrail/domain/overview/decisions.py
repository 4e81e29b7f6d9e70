"""The decisions of a workflow: what was decided, why, what else was considered, what replaced it. Reads only.

`journal/decision_log.py` defines what a decision is; `recovery/position.py` says which one replaces another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from handrail.domain.journal.decision_log import LoggedDecision, replaced_by
from handrail.domain.overview.rows import agent_names
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Only
from handrail.kernel.records import Query, UnitOfWork, found_by

LOOKED_AT = 2000
"""How many of a workflow's newest decisions are examined."""
SHOWN = 300


class DecisionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One decision."""

    id: str
    title: str
    """What was to be decided, in one line."""
    chosen: str
    reason: str
    alternatives: list[str]
    consequences: str
    status: str
    """accepted or superseded."""
    superseded_by: str | None
    supersedes: str | None
    """The decision that this one replaces; of several, the newest."""
    superseded: list[str]
    """All decisions that this one replaces."""
    tags: list[str]
    task_id: str
    task_name: str
    by: str | None
    by_id: str | None
    at: int


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions, newest first."""

    decisions: list[DecisionRow]
    more: int


def decisions(unit: UnitOfWork, workflow: Workflow, search: str = "") -> Decisions:
    """The decisions of a workflow that contain these words; all of them if none are given."""
    made_in = (("workflow_id", workflow.id), ("type", "decision"))
    notes = unit.select(Checkpoint, Query(made_in, ("-created_at", "-id"), LOOKED_AT))
    found = _fitting(decision_rows(unit, workflow, notes), search)
    unseen = unit.count(Checkpoint, Query(made_in)) - len(notes)
    return Decisions(decisions=found[:SHOWN], more=max(0, len(found) - SHOWN) + unseen)


def task_decisions(unit: UnitOfWork, workflow: Workflow, task_id: str, limit: int = SHOWN) -> list[DecisionRow]:
    """The decisions made in one task, newest first; also finds decisions elsewhere that replaced them."""
    made_in = (("workflow_id", workflow.id), ("type", "decision"))
    notes = unit.select(Checkpoint, Query(made_in, ("-created_at", "-id"), LOOKED_AT))
    if not any(note.task_id == task_id for note in notes):
        return []
    return [row for row in decision_rows(unit, workflow, notes) if row.task_id == task_id][:limit]


def decision_rows(unit: UnitOfWork, workflow: Workflow, notes: Sequence[Checkpoint]) -> list[DecisionRow]:
    """A row for each, in the same order."""
    if not notes:
        return []
    later = replaced_by(notes)
    earlier: dict[str, list[str]] = {}
    for key, note in later.items():
        earlier.setdefault(note.id, []).append(key)
    tasks = {task.id: task for task in found_by(unit, Task, "id", (note.task_id for note in notes))}
    authors = authors_of(unit, workflow.id, {note.id for note in notes})
    names = agent_names(unit, authors.values())
    rows = []
    for note in notes:
        task = tasks.get(note.task_id)
        name = task.name if task is not None else note.task_id
        one = LoggedDecision(note, name, task.description if task is not None else "", workflow, later.get(note.id))
        by = authors.get(note.id)
        rows.append(
            DecisionRow(
                id=note.id,
                title=one.title,
                chosen=one.chosen,
                reason=one.reasoning,
                alternatives=one.options,
                consequences=one.trade_offs,
                status="accepted" if one.replaced_by is None else "superseded",
                superseded_by=one.replaced_by.id if one.replaced_by is not None else None,
                supersedes=next(reversed(earlier.get(note.id, [])), None),
                superseded=earlier.get(note.id, []),
                tags=_tags(one),
                task_id=note.task_id,
                task_name=name,
                by=names.get(by) if by is not None else None,
                by_id=by,
                at=note.created_at,
            )
        )
    return rows


def authors_of(unit: UnitOfWork, workflow_id: str, keys: Iterable[str]) -> dict[str, str]:
    """Who wrote these notes, by note id, as far as the workflow's newest events show."""
    wanted = set(keys)
    found: dict[str, str] = {}
    for event in unit.newest(LOOKED_AT, Only(streams=(workflow_id,), kinds=("checkpoint.", "task."))):
        for change in event.changes:
            if change.table == "checkpoint" and change.key in wanted:
                found[change.key] = event.actor
    return found


def _tags(one: LoggedDecision) -> list[str]:
    given = one.note.detail.get("tags")
    tags = [tag for tag in given if isinstance(tag, str)] if isinstance(given, list) else []
    return [one.category, *tags] if one.category else tags


def _fitting(rows: Sequence[DecisionRow], search: str) -> list[DecisionRow]:
    words = search.casefold().split()
    return [row for row in rows if all(word in _searched(row) for word in words)]


def _searched(row: DecisionRow) -> str:
    parts: list[Any] = [row.title, row.chosen, row.reason, row.consequences, row.task_name]
    return "\n".join([*parts, *row.alternatives, *row.tags]).casefold()
