"""Which snapshots are still worth their room: those of open tasks, and of the newest finished ones.

Only what patches need is given up; journal entries and their reports stay. When to prune is the caller's to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from handrail.domain.journal.entry import JournalEntry
from handrail.domain.journal.keeping import snapshot_of
from handrail.domain.journal.tracking import Snapshot, Tracker
from handrail.domain.work.editing import CHUNK
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

DAY_MS = 86_400_000


class Keeping(NamedTuple):
    """How long patches can be had."""

    days: int
    tasks: int
    """Finished tasks, the newest, whose snapshots are kept at most."""


class Worth(NamedTuple):
    """What is kept and what is not."""

    oldest_ms: int
    """Snapshots from before are given up, whoever took them, unless they are kept."""
    kept: frozenset[str]
    open_tasks: int
    finished_tasks: int
    """Those whose snapshots are kept."""
    beyond: tuple[Snapshot, ...]
    """Of finished tasks that are young enough but too many."""


class Pruned(NamedTuple):
    """What came of it."""

    freed: int
    left: int
    """Bytes, both."""


def worth_keeping(unit: UnitOfWork, rule: Keeping) -> Worth:
    """What the journal still needs of its snapshots."""
    oldest = unit.now_ms() - rule.days * DAY_MS
    unfinished = Query((("completed_at", None),))
    under_way = [entry for entry in _pages(unit, unfinished, 0) if _is_open(unit, entry)]
    young = Query((("completed_at >", oldest),), ("-completed_at", "-id"))
    finished = unit.select(JournalEntry, young._replace(limit=rule.tasks)) if rule.tasks else []
    kept = frozenset(snapshot.id for snapshot in _snapshots((*under_way, *finished)))
    beyond = tuple(_snapshots(_pages(unit, young, rule.tasks)))
    return Worth(oldest, kept, len(under_way), len(finished), beyond)


def prune(tracker: Tracker, worth: Worth) -> Pruned:
    """Gives up what is not worth keeping."""
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
    """Whether its end may still come: it may have been ended by other means than the journal's."""
    task, workflow = unit.get(Task, entry.id), unit.get(Workflow, entry.workflow_id)
    return task is not None and not task.is_finished and workflow is not None and workflow.status not in CLOSED


def _snapshots(entries: Iterable[JournalEntry]) -> Iterable[Snapshot]:
    for entry in entries:
        yield snapshot_of(entry.before)
        if entry.after is not None:
            yield snapshot_of(entry.after)
