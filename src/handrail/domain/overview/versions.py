"""The history of a workflow's plan: one row for each version, newest first, from the ledger. Reads only;
`registry/graphs.py` shows a version as a whole graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from handrail.domain.graphs.history import version_step
from handrail.domain.overview.rows import agent_names, task_names
from handrail.domain.work.plan_edit import PLANNED
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Tally, Workflow
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import UnitOfWork, where
from handrail.kernel.wording import shortened

EVENTS = 3000
"""How many of a workflow's newest events that can change a plan are examined."""
SHOWN = 200
NAMED = 12
"""How many tasks each list of a version names."""
REASON = 500
PLANNING = (
    "workflow.",
    "pipeline.",
    "ledger.",
    "task.in_progress",
    "task.planned",
    "task.planning",
    "task.removed",
    "task.replanned",
)
"""Prefixes of the kinds of events that can change a plan; those that only change a task's state are ignored."""


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One version, and what it changed."""

    version: int
    at: int
    by: str
    by_id: str
    kind: str
    summary: str
    """The reason given; else what it did, in words."""
    added: int
    removed: int
    changed: int
    """How many tasks were rewritten or wait for different tasks than before."""
    added_names: list[str]
    removed_names: list[str]
    changed_names: list[str]
    position: int
    """The event that made it."""


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Versions, newest first."""

    versions: list[VersionRow]
    current: int
    more: int


class _Made(msgspec.Struct, kw_only=True):
    """What one event did to a plan: task ids, with the names that the event gives."""

    event: Event
    version: int
    added: dict[str, str]
    removed: dict[str, str]
    changed: dict[str, str]


def versions(unit: UnitOfWork, workflow: Workflow) -> Versions:
    newest = unit.newest(EVENTS, Only(streams=(workflow.id,), kinds=PLANNING))
    made = [_made(event, step[1]) for event in reversed(newest) if (step := version_step(event)) is not None]
    tally = unit.get(Tally, workflow.id)
    current = tally.version if tally is not None else int(unit.count(Task, where(workflow_id=workflow.id)) > 0)
    shown = made[:SHOWN]
    names = agent_names(unit, (one.event.actor for one in shown))
    wanted = (key for one in shown for key in _first({**one.changed, **one.added}))
    tasks = task_names(unit, wanted)
    rows = [_row(one, names, tasks) for one in shown]
    oldest = min((row.version for row in rows), default=current + 1)
    return Versions(versions=rows, current=current, more=max(0, oldest - 1))


def _row(one: _Made, names: Mapping[str, str], tasks: Mapping[str, str]) -> VersionRow:
    return VersionRow(
        version=one.version,
        at=one.event.at_ms,
        by=names[one.event.actor],
        by_id=one.event.actor,
        kind=one.event.kind,
        summary=_summary(one),
        added=len(one.added),
        removed=len(one.removed),
        changed=len(one.changed),
        added_names=_names(one.added, tasks),
        removed_names=_names(one.removed, tasks),
        changed_names=_names(one.changed, tasks),
        position=one.event.position,
    )


def _made(event: Event, version: int) -> _Made:
    made = _Made(event=event, version=version, added={}, removed={}, changed={})
    linked: set[str] = set()
    for change in event.changes:
        if change.table == "dependency":
            row = change.after if change.before is None else change.before
            linked |= {str(row["task_id"])} if row is not None and "task_id" in row else set()
        elif change.table == "task":
            before, after = change.before, change.after
            if before is None and after is not None:
                made.added[change.key] = str(after.get("name", ""))
            elif after is None and before is not None:
                made.removed[change.key] = str(before.get("name", ""))
            elif after is not None and not after.keys().isdisjoint(PLANNED):
                made.changed[change.key] = str(after.get("name", ""))
    for key in linked - made.added.keys() - made.removed.keys():
        made.changed.setdefault(key, "")
    return made


def _summary(one: _Made) -> str:
    reason = one.event.data.get("reason")
    if isinstance(reason, str) and reason.strip():
        return shortened(reason, REASON)
    if one.event.kind == "ledger.undo":
        return "a change was taken back"
    counted = (("added", one.added), ("removed", one.removed), ("changed", one.changed))
    parts = [f"{len(tasks)} {'task' if len(tasks) == 1 else 'tasks'} {word}" for word, tasks in counted if tasks]
    return ", ".join(parts) or "the plan changed"


def _first(tasks: Mapping[str, Any]) -> Iterable[str]:
    return list(tasks)[:NAMED]


def _names(tasks: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    """The names of the first of these tasks: as they were then, or else as they are now."""
    return [tasks[key] or known.get(key, key) for key in _first(tasks)]
