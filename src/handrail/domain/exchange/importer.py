"""Turns a document into rows: a new workflow, or the new tasks of an existing one.

States and times are taken from the source; the counters follow, because every row goes through `PlanEdit`. A unit of
work lays at most `MOST_TASKS` tasks and says how many are left. Laying again continues, even after an interruption,
because tasks already present are recognised and left as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from handrail.domain.exchange.exporter import with_superseded
from handrail.domain.exchange.foreign_tasks import counted, remark_on, several
from handrail.domain.exchange.plan_document import (
    PlanDocument,
    PlannedTask,
    attempts_assumed,
    context_with,
    status_here,
    status_there,
)
from handrail.domain.exchange.task_matching import KnownTasks, another_name
from handrail.domain.exchange.validate import check_ends, check_references, first_batch, oddities
from handrail.domain.pipeline.ownership import run_under_way
from handrail.domain.work.apply_plan import lay_checked
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.plan import MOST_SEQUENCE, MOST_TASKS, PlanTask, entry_fields
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import check_open
from handrail.domain.work.workflow import OPEN, WORKFLOW_MACHINE, Workflow
from handrail.kernel.errors import InvalidPlan
from handrail.kernel.records import Query, UnitOfWork, where

Names: TypeAlias = Mapping[str, str]

IMPORTED = "workflow.imported"
SHOWN = 10
"""Workflows from the same source that are named."""


class ImportSource(NamedTuple):
    """What the event records about where it all came from."""

    file: str
    format: str


class _Telling(NamedTuple):
    """What a unit of work needs to know besides its own tasks."""

    source: ImportSource
    replaced: Names
    """What notes laid before are called here, by their keys in the document: their ids, or their texts."""


class ImportedPlan(NamedTuple):
    """What one unit of work laid."""

    workflow: Workflow
    added: int
    known: int
    """Tasks of the document that already existed."""
    left: int
    """Tasks still to be laid."""


class New(NamedTuple):
    """The part of a document that does not exist here yet, using the names used here."""

    tasks: list[PlannedTask]
    known: dict[str, Task]
    """The stored tasks that the document refers to, by their names in the document."""
    renamed: list[str]
    """New names of tasks whose own name belongs to a different task here."""
    stored: list[Task]
    remarks: list[str]
    """Tasks that were matched to one here but might be a different one, or that have another state in the file."""


def check_document(document: PlanDocument) -> None:
    """Raises InvalidPlan for a document that cannot be laid at all."""
    check_references(document.tasks)
    check_ends(document.tasks)


def same_source(unit: UnitOfWork, document: PlanDocument, repository: str | None) -> list[Workflow]:
    """The open workflows from the same source as this document. Without a source, name and creation time must match."""
    conditions: list[tuple[str, object]] = [
        ("status", OPEN),
        ("source_type", document.source_type),
        ("source_ref", document.source_ref),
    ]
    if repository is not None:
        conditions.append(("repository_path", repository))
    if document.source_ref is None:
        conditions += [("name", document.name), ("created_at", document.created_at)]
    return unit.select(Workflow, Query(tuple(conditions), ("-updated_at", "-id"), SHOWN))


def what_is_new(unit: UnitOfWork, workflow: Workflow, document: PlanDocument) -> New:
    """Which tasks to add to a workflow. `task_matching.py` decides which ones already exist."""
    stored = unit.select(Task, where(workflow_id=workflow.id))
    is_same = _is_from(workflow, document)
    there = KnownTasks(stored, same_source=is_same)
    taken = {*(task.name for task in stored), *(task.name for task in document.tasks)}
    names: dict[str, str] = {}
    known: dict[str, Task] = {}
    fresh: list[PlannedTask] = []
    renamed: list[str] = []
    for task in document.tasks:
        same = there.find(task)
        if same is not None:
            known[task.name] = same
            names[task.name] = same.name
            continue
        if there.has(task.name) and task.origin is not None:
            names[task.name] = another_name(task.name, task.origin.id, taken)
            taken.add(names[task.name])
            renamed.append(names[task.name])
        fresh.append(task)
    remarks = [*there.remarks(), *_other_states(document, known)]
    tasks = [_renamed(task, names) for task in fresh]
    if not is_same:
        tasks = _behind_others(tasks, document, stored, known)
    return New(tasks, known, renamed, stored, remarks)


def _behind_others(
    tasks: list[PlannedTask], document: PlanDocument, stored: Sequence[Task], known: Mapping[str, Task]
) -> list[PlannedTask]:
    """Another plan's tasks come after those here, in their own order. What an earlier batch of the same document laid
    does not count, so every batch is moved by the same number."""
    own = {task.id for task in known.values()}
    others = [task.sequence for task in stored if task.id not in own]
    if not others:
        return tasks
    moved = max(others) + 1 - min((task.sequence for task in document.tasks), default=0)
    return [msgspec.structs.replace(task, sequence=min(task.sequence + moved, MOST_SEQUENCE)) for task in tasks]


def _other_states(document: PlanDocument, known: Mapping[str, Task]) -> list[str]:
    """A remark on the tasks whose state in the file is not the one here."""
    differing = [
        task.name
        for task in document.tasks
        if (here := known.get(task.name)) is not None and status_there(here.status, here.context) != task.status
    ]
    number = counted(len(differing), "task")
    return remark_on(f"in another state in the file, and left as they are here ({number})", differing)


def _renamed(task: PlannedTask, names: Mapping[str, str]) -> PlannedTask:
    if not names:
        return task
    return msgspec.structs.replace(
        task,
        name=names.get(task.name, task.name),
        parent=names.get(task.parent, task.parent) if task.parent is not None else None,
        depends_on=list(dict.fromkeys(names.get(need, need) for need in task.depends_on)),
    )


# -- rows -------------------------------------------------------------------------------------------------------------


def lay_new(
    unit: UnitOfWork, document: PlanDocument, source: ImportSource, repository: str | None, most: int = MOST_TASKS
) -> ImportedPlan:
    """Creates a workflow from this document. It stays in planning until the last of possibly several units of work."""
    check_document(document)
    now = unit.now_ms()
    workflow = Workflow(
        id=unit.new_id("wf"),
        name=document.name,
        status=WORKFLOW_MACHINE.initial,
        source_type=document.source_type,
        source_ref=document.source_ref,
        source_content=document.description,
        repository_path=repository,
        plan=document.plan,
        max_parallel_tasks=document.max_parallel_tasks or 1,
        auto_create_workspaces=document.auto_create_workspaces,
        created_at=document.created_at if document.created_at is not None else now,
        updated_at=now,
    )
    batch = first_batch(document.tasks, most)
    left = len(document.tasks) - len(batch)
    status = document.status if not left else None
    return ImportedPlan(_lay(unit, workflow, batch, {}, status, _Telling(source, {})), len(batch), 0, left)


def lay_into(
    unit: UnitOfWork, workflow: Workflow, document: PlanDocument, source: ImportSource, most: int = MOST_TASKS
) -> ImportedPlan:
    """Adds to a workflow what it does not contain. Existing tasks are left as they are."""
    check_open(workflow, starting=False)
    check_document(document)
    new = what_is_new(unit, workflow, document)
    check_addable(unit, workflow, new)
    batch = first_batch(new.tasks, most)
    left = len(new.tasks) - len(batch)
    status = _status_after(workflow, document, new) if not left else None
    if batch or status is not None:
        named = {name for task in batch for name in (*task.depends_on, task.parent or "")}
        known = {task.name: task for task in new.stored if task.name in named}
        replaced = _notes_here(unit, document, new.known)
        workflow = _lay(unit, workflow, batch, known, status, _Telling(source, replaced))
    return ImportedPlan(workflow, len(batch), len(document.tasks) - len(new.tasks), left)


def check_addable(unit: UnitOfWork, workflow: Workflow, new: New) -> None:
    """Raises InvalidPlan if new and existing tasks would wait for each other, or if a run under way would get work it
    did not see done."""
    check_references(new.tasks, [task.name for task in new.stored])
    check_ends([*_as_planned(new.stored), *new.tasks])
    begun = [task.name for task in new.tasks if task.status != "pending"]
    run = run_under_way(unit, workflow.id) if begun else None
    if run is not None:
        raise InvalidPlan(
            f"workflow {workflow.id} is the run of {run.workspace}, whose own reviews say what is done; "
            f"begun or finished in the file: {several(begun)}",
            hint="import it without --into, as a workflow of its own, or leave these out",
            workspace=run.workspace,
        )


def odd_together(new: New) -> list[str]:
    """What no plan would lead to by itself, among the new tasks next to the existing ones."""
    return oddities([*_as_planned(new.stored), *new.tasks], {task.name for task in new.tasks})


def _as_planned(stored: Sequence[Task]) -> list[PlannedTask]:
    names = {task.id: task.name for task in stored}
    return [
        PlannedTask(
            name=task.name,
            status=task.status,
            parent=names.get(task.parent_task_id or ""),
            depends_on=task.depends_on,
        )
        for task in stored
    ]


def _status_after(workflow: Workflow, document: PlanDocument, new: New) -> str | None:
    """The workflow's new status, if it changes. A workflow created from this document gets the document's status; any
    other counts as begun once one of its tasks has. What a file says about itself as a whole does not apply to another
    plan."""
    if workflow.status not in ("planning", "ready") or not document.tasks:
        return None
    if _was_interrupted(workflow, document, new):
        return document.status if document.status != workflow.status else None
    if any(task.status not in ("pending", "skipped") for task in new.tasks):
        return "in_progress"
    return "ready" if workflow.status == "planning" and document.status != "planning" else None


def _was_interrupted(workflow: Workflow, document: PlanDocument, new: New) -> bool:
    """Whether laying this document into this workflow was begun and interrupted."""
    has_others = len(new.stored) + len(new.tasks) > len(document.tasks)
    if workflow.status != WORKFLOW_MACHINE.initial or has_others or not new.stored:
        return False
    return _is_from(workflow, document)


def _is_from(workflow: Workflow, document: PlanDocument) -> bool:
    """Whether a workflow was made from this document, or from an earlier state of the same source."""
    is_same = (workflow.source_type, workflow.source_ref) == (document.source_type, document.source_ref)
    is_named = (workflow.name, workflow.created_at) == (document.name, document.created_at)
    return is_same and (document.source_ref is not None or is_named)


def _lay(
    unit: UnitOfWork,
    workflow: Workflow,
    tasks: Sequence[PlannedTask],
    known: Mapping[str, Task],
    status: str | None,
    telling: _Telling,
) -> Workflow:
    edit = PlanEdit(unit, workflow)
    laid = lay_checked(unit, edit, [_draft(task) for task in tasks], known)
    for task, row in zip(tasks, laid, strict=True):
        edit.change(row, **_fields_beside_plan(task, edit.now))
    notes = _checkpoints(unit, tasks, laid, telling.replaced)
    data = {"file": telling.source.file, "format": telling.source.format, "tasks": len(tasks)}
    edit.record(IMPORTED, *notes, data=data, **({"status": status} if status is not None else {}))
    return edit.workflow


def _draft(task: PlannedTask) -> PlanTask:
    return PlanTask(**entry_fields(task, parent=task.parent))


def _fields_beside_plan(task: PlannedTask, now: int) -> dict[str, Any]:
    """The fields of a task that are not part of the plan."""
    assumed = attempts_assumed(task.status, task.started_at)
    return {
        "status": status_here(task.status),
        "plan": task.plan,
        "context": context_with(task.context, task.origin, task.status),
        "outcome": task.outcome,
        "outcome_detail": task.outcome_detail,
        "error": task.error,
        "checkpoints": len(task.notes),
        "created_at": task.created_at if task.created_at is not None else now,
        "started_at": task.started_at,
        "finished_at": task.finished_at,
        "attempts": task.attempts if task.attempts is not None else assumed,
    }


def _checkpoints(
    unit: UnitOfWork, tasks: Sequence[PlannedTask], rows: Sequence[Task], before: Names
) -> list[Checkpoint]:
    """The notes of these tasks. A note refers to one it replaces by the id that one has here."""
    ids = {note.key: unit.new_id("cp") for task in tasks for note in task.notes if note.key is not None}
    replaced = {**before, **ids}
    return [
        Checkpoint(
            id=ids.pop(note.key) if note.key in ids else unit.new_id("cp"),
            workflow_id=row.workflow_id,
            task_id=row.id,
            sequence=number,
            type=note.type,
            summary=note.summary,
            detail=with_superseded(note.detail, replaced),
            files_changed=note.files_changed,
            created_at=note.at if note.at is not None else unit.now_ms(),
        )
        for task, row in zip(tasks, rows, strict=True)
        for number, note in enumerate(task.notes, 1)
    ]


def _notes_here(unit: UnitOfWork, document: PlanDocument, known: Mapping[str, Task]) -> dict[str, str]:
    """The notes on known tasks that others replace, by their keys: their ids, or their texts if the task here has other
    notes than in the document."""
    found: dict[str, str] = {}
    for task in document.tasks:
        keyed = [(number, note) for number, note in enumerate(task.notes, 1) if note.key is not None]
        if not keyed or task.name not in known:
            continue
        stored = unit.select(Checkpoint, where(task_id=known[task.name].id))
        here = {(row.sequence, row.summary): row.id for row in stored}
        found |= {note.key: here.get((number, note.summary), note.summary) for number, note in keyed if note.key}
    return found
