"""Which snapshots are still worth their space: those of open tasks, and of the newest finished ones.

Pruning only deletes what patches need; journal entries and their reports stay. The caller decides when to prune.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from handrail.domain.journal.entry import JournalEntry
from handrail.domain.journal.journal import snapshot_of
from handrail.domain.journal.ports import Snapshot, Tracker
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.clock import DAY_MS
from handrail.kernel.records import CHUNK, Query, UnitOfWork


class Keeping(NamedTuple):
    """How long patches stay available."""

    days: int
    tasks: int
    """The most finished tasks whose snapshots are kept; the newest ones."""


class Worth(NamedTuple):
    """What is kept and what is not."""

    oldest_ms: int
    """Older snapshots are deleted, regardless of who took them, unless they are in `kept`."""
    kept: frozenset[str]
    open_tasks: int
    finished_tasks: int
    """How many finished tasks keep their snapshots."""
    beyond: tuple[Snapshot, ...]
    """Snapshots of finished tasks that are recent enough but exceed the number kept."""


class Pruned(NamedTuple):
    """The result of pruning."""

    freed: int
    left: int
    """Both in bytes."""


def worth_keeping(unit: UnitOfWork, rule: Keeping) -> Worth:
    """Which snapshots the journal still needs."""
    oldest = unit.now_ms() - rule.days * DAY_MS
    unfinished = Query((("completed_at", None),))
    under_way = [entry for entry in _pages(unit, unfinished, 0) if _is_open(unit, entry)]
    young = Query((("completed_at >", oldest),), ("-completed_at", "-id"))
    finished = unit.select(JournalEntry, young._replace(limit=rule.tasks)) if rule.tasks else []
    kept = frozenset(snapshot.id for snapshot in _snapshots((*under_way, *finished)))
    beyond = tuple(_snapshots(_pages(unit, young, rule.tasks)))
    return Worth(oldest, kept, len(under_way), len(finished), beyond)


def prune(tracker: Tracker, worth: Worth) -> Pruned:
    """Deletes what is not worth keeping."""
    before = tracker.disk_use()
    for snapshot in worth.beyond:
        tracker.forget(snapshot)
    tracker.prune(worth.oldest_ms, worth.kept)
    left = tracker.disk_use()
    return Pruned(max(0, before - left), left)


def _pages(unit: UnitOfWork, query: Query, offset: int) -> Iterable[JournalEntry]:
    while page := unit.select(JournalEntry, query._replace(limit=CHUNK, offset=offset)):
        yield from page
        offset += len(page)


def _is_open(unit: UnitOfWork, entry: JournalEntry) -> bool:
    """Whether its task can still end. An entry without an end is not enough: its task may have ended outside the
    journal."""
    task, workflow = unit.get(Task, entry.id), unit.get(Workflow, entry.workflow_id)
    return task is not None and not task.is_finished and workflow is not None and workflow.status not in CLOSED


def _snapshots(entries: Iterable[JournalEntry]) -> Iterable[Snapshot]:
    for entry in entries:
        yield snapshot_of(entry.before)
        if entry.after is not None:
            yield snapshot_of(entry.after)
