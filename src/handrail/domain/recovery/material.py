"""Everything a recovery may say about a task, read with a fixed number of small queries.

No query grows with the workflow: each uses an index and has a limit, and counts come from the tally. `pieces.py`
decides what is included, and at which length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from handrail.domain.journal.decision_log import replaced_by
from handrail.domain.journal.plan_steps import PlanStep, steps_left
from handrail.domain.recovery.options import ALL_CHECKPOINTS, Include
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.plan_edit import tally_of
from handrail.domain.work.task import FINISHED, RUNNING, UNFINISHED, Dependency, Task, task_name
from handrail.domain.work.transitions import workflow_of
from handrail.domain.work.workflow import Tally, Workflow
from handrail.kernel.records import Query, UnitOfWork

OWN_CHECKPOINTS = 50
"""How many of the task's newest checkpoints are read, at least, to tell how far it is, even if fewer are shown."""
DECISIONS = 40
NEEDS = 30
PRIOR = 50
PARTS = 20
SIBLINGS = 12
RUNNING_SHOWN = 8
ERRORS = 20
REPLANS = 5
FILES = 200
SOLVING = ("recovery", "complete", "replan")
"""Types of checkpoints that settle an earlier error."""


class KnownDecision(NamedTuple):
    """A decision, and the name of the task it was made in."""

    checkpoint: Checkpoint
    task: str


class OpenIssue(NamedTuple):
    """Something unsolved: an error nobody recovered from, or a task that failed."""

    task: Task
    text: str
    error: Checkpoint | None


class Sibling(NamedTuple):
    """A task alongside this one, and the latest news of it."""

    task: Task
    news: str


class RecoveryMaterial(NamedTuple):
    """What is known about a task and its surroundings."""

    workflow: Workflow
    task: Task
    tally: Tally
    checkpoints: Sequence[Checkpoint]
    """The task's own, newest first; at least as many as are to be shown."""
    shown: int
    """How many of them are to be shown."""
    decisions: Sequence[KnownDecision]
    """Those in force, newest first."""
    replaced: frozenset[str]
    more_decisions: bool
    issues: Sequence[OpenIssue]
    replans: Sequence[Checkpoint]
    """The task's own, newest first: each stands for a plan that was abandoned."""
    needs: Sequence[Task]
    prior: Sequence[Task]
    """Finished tasks that are in no other list, the most relevant first."""
    siblings: Sequence[Sibling]
    parent: Task | None
    parts: Sequence[Task]
    files: Sequence[str]
    changed: int = 0
    """How many files the task has been found to have changed so far."""
    steps_left: Sequence[PlanStep] = ()
    """Steps of the workflow's written plan that nobody has begun."""


def gather(unit: UnitOfWork, task: Task, include: Include, changed: Sequence[str] = ()) -> RecoveryMaterial:
    """Reads what a recovery of this task may need. `changed` lists files it has changed but not reported yet."""
    workflow = workflow_of(unit, task)
    shown = ALL_CHECKPOINTS if include.all_checkpoints else include.recent_checkpoints
    checkpoints = newest_of_task(unit, task.id, max(shown, OWN_CHECKPOINTS))
    decisions, replaced, more = decisions_in_force(unit, workflow.id, checkpoints)
    needs = _needs(unit, task)
    parts = _parts(unit, task)
    issues = open_issues(unit, workflow.id, task)
    siblings = _siblings(unit, task, {issue.text for issue in issues}) if include.sibling_status else []
    told = {task.id, *(part.id for part in parts), *(sibling.task.id for sibling in siblings)}
    if include.dependency_outcomes:
        told |= {need.id for need in needs}
        siblings = [sibling for sibling in siblings if sibling.task.id not in {need.id for need in needs}]
    return RecoveryMaterial(
        workflow=workflow,
        task=task,
        tally=tally_of(unit, workflow.id),
        checkpoints=checkpoints,
        shown=min(shown, len(checkpoints)),
        decisions=decisions,
        replaced=frozenset(replaced),
        more_decisions=more,
        issues=issues,
        replans=newest_of_task(unit, task.id, REPLANS, "replan") if task.checkpoints else [],
        needs=needs,
        prior=_prior(unit, task, needs, told) if include.prior_task_outcomes else [],
        siblings=siblings,
        parent=unit.get(Task, task.parent_task_id) if task.parent_task_id is not None else None,
        parts=parts,
        files=list(dict.fromkeys((*changed, *_files(unit, task, checkpoints, needs))))[:FILES],
        changed=len(changed),
        steps_left=steps_left(unit, workflow),
    )


def newest_of_task(unit: UnitOfWork, task_id: str, limit: int, kind: str | None = None) -> list[Checkpoint]:
    """The newest checkpoints of a task, newest first; of one type if `kind` is given."""
    conditions = (("task_id", task_id), *((("type", kind),) if kind is not None else ()))
    return unit.select(Checkpoint, Query(conditions, ("-sequence", "-id"), limit))


def newest_of_type(unit: UnitOfWork, workflow_id: str, kind: str, limit: int) -> list[Checkpoint]:
    """The newest checkpoints of one type in a workflow, newest first."""
    conditions = (("workflow_id", workflow_id), ("type", kind))
    return unit.select(Checkpoint, Query(conditions, ("-created_at", "-id"), limit))


def newest_tasks(unit: UnitOfWork, workflow_id: str, statuses: Iterable[str], limit: int) -> list[Task]:
    """The tasks in these states that changed most recently, newest first. One indexed query per state."""
    found: list[Task] = []
    for status in statuses:
        conditions = (("workflow_id", workflow_id), ("status", status))
        found += unit.select(Task, Query(conditions, ("-updated_at", "-id"), limit))
    return sorted(found, key=lambda task: (task.updated_at, task.id), reverse=True)[:limit]


def decisions_in_force(
    unit: UnitOfWork, workflow_id: str, own: Sequence[Checkpoint]
) -> tuple[list[KnownDecision], set[str], bool]:
    """The decisions in force, newest first; the ids of those replaced since; whether there are older ones."""
    newest = newest_of_type(unit, workflow_id, "decision", DECISIONS + 1)
    known = {cp.id: cp for cp in (*newest[:DECISIONS], *(cp for cp in own if cp.type == "decision"))}
    ordered = sorted(known.values(), key=lambda cp: (cp.created_at, cp.id), reverse=True)
    replaced = set(replaced_by(ordered))
    in_force = [KnownDecision(cp, task_name(unit, cp.task_id)) for cp in ordered if cp.id not in replaced]
    return in_force, replaced, len(newest) > DECISIONS


def open_issues(unit: UnitOfWork, workflow_id: str, task: Task | None = None) -> list[OpenIssue]:
    """Unsolved issues: this task's own first, then the newest."""
    failed = newest_tasks(unit, workflow_id, ("failed",), RUNNING_SHOWN)
    running = newest_tasks(unit, workflow_id, RUNNING, RUNNING_SHOWN)
    erring = {error.task_id for error in newest_of_type(unit, workflow_id, "error", ERRORS)}
    others = [found for found in (unit.get(Task, key) for key in sorted(erring)) if found is not None]
    looked_at = {known.id: known for known in (*([task] if task else ()), *failed, *running, *others)}
    found = [issue for known in looked_at.values() if not known.is_finished for issue in _issues_of(unit, known)]
    own = task.id if task is not None else ""
    return sorted(found, key=lambda issue: (issue.task.id != own, -issue.task.updated_at))


def _issues_of(unit: UnitOfWork, task: Task) -> list[OpenIssue]:
    """Its failure, or else the errors that nothing after them settled: no recovery, no completion, no new plan."""
    if task.status == "failed" and task.error:
        return [OpenIssue(task, task.error, None)]
    errors = newest_of_task(unit, task.id, 3, "error") if task.checkpoints else []
    if not errors:
        return []
    dealt_with = [cp.sequence for kind in SOLVING for cp in newest_of_task(unit, task.id, 1, kind)]
    since = max(dealt_with, default=0)
    return [
        OpenIssue(task, error.summary, error) for error in errors if error.sequence > since and not error.is_settled
    ]


def _needs(unit: UnitOfWork, task: Task) -> list[Task]:
    """What the task waits or waited for: the unfinished first, and among those its own dependencies first."""
    found: list[Task] = []
    for inherited in (False, True):
        conditions = (("task_id", task.id), ("inherited", inherited))
        links = unit.select(Dependency, Query(conditions, ("id",), NEEDS - len(found)))
        needs = [unit.get(Task, link.needs_id) for link in links]
        found += sorted((need for need in needs if need is not None), key=lambda need: need.sequence)
    return sorted(found, key=lambda need: need.is_finished)


def _parts(unit: UnitOfWork, task: Task) -> list[Task]:
    found: list[Task] = []
    for status in (*UNFINISHED, *FINISHED):
        room = PARTS - len(found)
        if room > 0:
            conditions = (("parent_task_id", task.id), ("status", status))
            found += unit.select(Task, Query(conditions, ("id",), room))
    return found


def _siblings(unit: UnitOfWork, task: Task, told: set[str]) -> list[Sibling]:
    """The tasks alongside this one: its parallel group, other parts of its parent, and whatever else is running."""
    beside: list[tuple[tuple[str, str | None], ...]] = []
    if task.parallel_group is not None:
        beside.append((("workflow_id", task.workflow_id), ("parallel_group", task.parallel_group)))
    if task.parent_task_id is not None:
        beside.append((("parent_task_id", task.parent_task_id),))
    found = {other.id: other for other in newest_tasks(unit, task.workflow_id, RUNNING, RUNNING_SHOWN)}
    for status in ("in_progress", "planning", "paused", "failed", "pending", "completed"):
        for conditions in beside:
            if len(found) <= SIBLINGS:
                page = Query((*conditions, ("status", status)), ("id",), SIBLINGS)
                found |= {other.id: other for other in unit.select(Task, page)}
    above = _above(unit, task)
    others = [other for other in found.values() if other.id != task.id and other.id not in above]
    heard = [(other, _news_of(unit, other)) for other in others[:SIBLINGS]]
    return [Sibling(other, "" if news in told else news) for other, news in heard]


def _above(unit: UnitOfWork, task: Task) -> set[str]:
    """The tasks this one is part of. They are not siblings: the parent is reported separately, and those above it only
    run because a part of them does."""
    found: set[str] = set()
    above: Task | None = task
    while above is not None and above.parent_task_id is not None and above.parent_task_id not in found:
        found.add(above.parent_task_id)
        above = unit.get(Task, above.parent_task_id)
    return found


def _news_of(unit: UnitOfWork, task: Task) -> str:
    if task.outcome or task.error:
        return task.outcome or task.error or ""
    last = newest_of_task(unit, task.id, 1) if task.checkpoints else []
    return last[0].summary if last else ""


def _prior(unit: UnitOfWork, task: Task, needs: Sequence[Task], told: set[str]) -> list[Task]:
    """Finished tasks: dependencies not listed elsewhere, then tasks that touched the same files, then the newest."""
    newest = newest_tasks(unit, task.workflow_id, FINISHED, PRIOR + len(told))
    known = {done.id: done for done in (*(need for need in needs if need.is_finished), *newest)}
    files = {*task.files_likely_affected}
    close = {need.id for need in needs}
    chosen = [done for done in known.values() if done.id not in told]
    chosen.sort(key=lambda done: (done.id not in close, files.isdisjoint(done.files_likely_affected)))
    return chosen[:PRIOR]


def _files(unit: UnitOfWork, task: Task, own: Sequence[Checkpoint], needs: Sequence[Task]) -> list[str]:
    """Changed files: this task's own, newest first, then those of its dependencies and its parent."""
    base = {need.id for need in needs} | {task.parent_task_id}
    others = [
        cp for kind in ("progress", "complete") for cp in newest_of_type(unit, task.workflow_id, kind, OWN_CHECKPOINTS)
    ]
    others = [cp for cp in others if cp.task_id in base] or (others if not own else [])
    others.sort(key=lambda cp: (cp.created_at, cp.id), reverse=True)
    return list(dict.fromkeys(path for cp in (*own, *others) for path in cp.files_changed))[:FILES]
