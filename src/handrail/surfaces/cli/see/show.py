"""`handrail show`: one task with everything about it, or one workflow with its tasks as a tree.

Gathered here, drawn in `show_lines.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from handrail.domain.claims.offers import is_left
from handrail.domain.crew.agent import Agent
from handrail.domain.journal.decision_log import superseded_in
from handrail.domain.overview.explanations import explain_task
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.plan_edit import tally_of
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import needed_tasks, workflow_of
from handrail.domain.work.workflow import Workflow
from handrail.kernel.query import Query, chunks
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import how_it_stands, in_one_look, thing_meant
from handrail.surfaces.cli.columns import columns
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.cli.see.show_lines import TaskShown, WorkflowShown, task_lines, workflow_lines
from handrail.toolsets.shown import brief_task, shown_checkpoint, shown_task, shown_workflow

READ_CHECKPOINTS = 200
"""How many of the newest checkpoints are read for the files they changed."""


@click.command()
@click.argument("thing", metavar="TASK|WORKFLOW", shell_complete=completions.things)
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=100,
    show_default=True,
    help="Show at most N tasks in the tree.",
)
@click.option(
    "--checkpoints",
    type=click.IntRange(0, READ_CHECKPOINTS),
    metavar="N",
    default=5,
    show_default=True,
    help="Show the newest N checkpoints.",
)
@common_options
def show(thing: str, limit: int, checkpoints: int, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show everything about a task, or a workflow with its tasks as a tree.

    Name a task or workflow by id, the beginning of an id, or name; open ones are preferred.
    """
    found = in_one_look(root, options, lambda call: read_shown(call, thing, limit=limit, checkpoints=checkpoints))
    if as_json:
        echo_json(_task_document(found) if isinstance(found, TaskShown) else _workflow_document(found))
        return
    lines = task_lines(found, columns()) if isinstance(found, TaskShown) else workflow_lines(found, columns())
    echo_lines(lines)


def read_shown(call: Call, thing: str, *, limit: int, checkpoints: int) -> TaskShown | WorkflowShown:
    meant = thing_meant(call, thing)
    unit = call.work
    if isinstance(meant, Workflow):
        top = Query((("workflow_id", meant.id), ("parent_task_id", None)), ("sequence",), limit)
        return WorkflowShown(
            workflow=meant,
            tally=tally_of(unit, meant.id),
            why=how_it_stands(unit, meant),
            tasks=_tree(unit, unit.select(Task, top), limit),
            now=unit.now_ms(),
        )
    newest = unit.select(Checkpoint, Query((("task_id", meant.id),), ("-sequence", "-id"), READ_CHECKPOINTS))
    return TaskShown(
        task=meant,
        workflow=workflow_of(unit, meant),
        parent=unit.get(Task, meant.parent_task_id) if meant.parent_task_id is not None else None,
        agent=unit.get(Agent, meant.assigned_agent_id) if meant.assigned_agent_id is not None else None,
        is_left=is_left(unit, meant),
        why=explain_task(unit, meant).sentence,
        needs=sorted(needed_tasks(unit, meant), key=lambda need: (need.is_finished, need.sequence, need.id)),
        subtasks=_tree(unit, _parts(unit, [meant.id], limit), limit),
        checkpoints=newest[:checkpoints],
        superseded=superseded_in(unit, {note.workflow_id for note in newest[:checkpoints] if note.type == "decision"}),
        files_changed=sorted({path for checkpoint in newest for path in checkpoint.files_changed}),
        now=unit.now_ms(),
    )


def _parts(unit: UnitOfWork, above: list[str], most: int) -> list[Task]:
    found: list[Task] = []
    for chunk in chunks(above):
        if len(found) < most:
            found += unit.select(Task, Query((("parent_task_id", chunk),), ("sequence",), most - len(found)))
    return found


def _tree(unit: UnitOfWork, top: list[Task], limit: int) -> list[Task]:
    """These tasks and their parts, level by level up to `limit`, then in tree order."""
    parts: dict[str, list[Task]] = {}
    level, count = top, len(top)
    while level and count < limit:
        level = _parts(unit, [task.id for task in level], limit - count)
        count += len(level)
        for task in level:
            assert task.parent_task_id is not None, "a part is part of something"
            parts.setdefault(task.parent_task_id, []).append(task)
    ordered: list[Task] = []
    pending = list(reversed(top))
    while pending:
        task = pending.pop()
        ordered.append(task)
        pending += reversed(parts.get(task.id, []))
    return ordered


def _task_document(found: TaskShown) -> dict[str, Any]:
    return {
        **shown_task(found.task, full=True),
        "workflow_name": found.workflow.name,
        "why": found.why,
        "needs": [brief_task(need) for need in found.needs],
        "subtasks": [brief_task(part) for part in found.subtasks],
        "checkpoints": [_checkpoint_document(found, checkpoint) for checkpoint in found.checkpoints],
        "files_changed": found.files_changed,
    }


def _checkpoint_document(found: TaskShown, checkpoint: Checkpoint) -> dict[str, Any]:
    later = found.superseded.get(checkpoint.id)
    return shown_checkpoint(checkpoint, full=True) | ({"superseded_by": later.id} if later is not None else {})


def _workflow_document(found: WorkflowShown) -> dict[str, Any]:
    return {
        **shown_workflow(found.workflow, full=True),
        "total_tasks": found.tally.total,
        "completed_tasks": found.tally.finished,
        "by_status": found.tally.counts,
        "why": found.why,
        "tasks": [{**brief_task(task), "parent_task_id": task.parent_task_id} for task in found.tasks],
    }
