"""`handrail show`: one task with everything about it, or one workflow with its tasks as a tree.

How it is drawn as lines of text comes first, and reads and prints nothing; then what is gathered for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.claims.claim import is_left
from handrail.domain.crew.agent import Agent
from handrail.domain.journal.decision_log import superseded_in
from handrail.domain.overview.explanations import explain_task
from handrail.domain.work.blockers import status_or_ready
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.plan_edit import tally_of
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import needed_tasks, workflow_of
from handrail.domain.work.workflow import Tally, Workflow
from handrail.kernel.clock import spoken_time
from handrail.kernel.records import Query, UnitOfWork, chunks
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import how_it_stands, in_one_look, thing_meant
from handrail.surfaces.cli.columns import (
    as_words,
    bar,
    bold,
    columns,
    counted,
    dim,
    fit,
    hanging,
    headline,
    mark,
    one_line,
    pad,
    paint,
    width,
    wrapped,
)
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.cli.see.journal import issue_words
from handrail.toolsets.shown import brief_task, shown_checkpoint, shown_task, shown_workflow

SHOWN_FILES = 50
SHOWN_NEEDS = 20
INDENT = "  "


class TaskShown(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its surroundings."""

    task: Task
    workflow: Workflow
    parent: Task | None
    agent: Agent | None
    """The agent that has it, or had it."""
    is_left: bool
    """Whether that agent has lost its claim on it, and anybody may take it."""
    why: str
    needs: list[Task]
    """What it waits for or waited for, unfinished ones first."""
    subtasks: list[Task]
    """In tree order, each after the one it is part of."""
    checkpoints: list[Checkpoint]
    """The newest, newest first."""
    superseded: Mapping[str, Checkpoint]
    """By decision that no longer holds, the one that replaced it."""
    files_changed: list[str]
    now: int


class WorkflowShown(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow and its tasks."""

    workflow: Workflow
    tally: Tally
    why: str
    tasks: list[Task]
    """In tree order, each after the one it is part of."""
    now: int


def workflow_lines(found: WorkflowShown, room: int) -> Iterator[str]:
    """A workflow: what it is, its progress, its plan, its tasks."""
    workflow, tally = found.workflow, found.tally
    yield from headline(workflow.name, [dim(workflow.id)], room)
    created = spoken_time(found.now - workflow.created_at)
    state = as_words(workflow.status)
    for number, line in enumerate(wrapped(f"{state}, from {_source(found)}, begun {created} ago", room)):
        yield line if number else line.replace(state, paint(state, workflow.status), 1)
    if tally.total:
        yield f"{bar(tally.finished, tally.total)} {tally.finished}/{tally.total} done"
    yield from wrapped(found.why, room)
    plan = workflow.plan or {}
    yield from _section("Asked for", workflow.source_content, room)
    yield from _section("Plan", "\n".join(str(plan[part]) for part in ("summary", "approach") if plan.get(part)), room)
    yield from _list_section("Risks", plan.get("risks", ()), room)
    yield from _list_section("Assumptions", plan.get("assumptions", ()), room)
    if found.tasks:
        yield ""
        yield bold("Tasks")
        yield from tree_lines(found.tasks, found.now, room)
        if tally.total > len(found.tasks):
            yield f"{INDENT}and {tally.total - len(found.tasks)} more: --limit shows more of them"


def _source(found: WorkflowShown) -> str:
    workflow = found.workflow
    kind = as_words(workflow.source_type)
    return f"{kind} {one_line(workflow.source_ref)}" if workflow.source_ref else f"a {kind}"


def task_lines(found: TaskShown, room: int) -> Iterator[str]:
    """A task: its state and why, what is to be done, what was done."""
    task = found.task
    yield from headline(task.name, [dim(task.id)], room)
    yield from wrapped(_place(found), room)
    yield from wrapped(found.why, room)
    yield from _section("To do", task.description, room)
    yield from _list_section("Done when", task.acceptance, room)
    yield from _plan_lines(task.plan or {}, room)
    if found.needs:
        yield from ("", bold("Waits for" if task.unmet else "Waited for"))
        yield from tree_lines(found.needs[:SHOWN_NEEDS], found.now, room, flat=True)
        if len(found.needs) > SHOWN_NEEDS:
            yield f"{INDENT}and {len(found.needs) - SHOWN_NEEDS} more"
    if found.subtasks:
        yield from ("", bold("Subtasks"))
        yield from tree_lines(found.subtasks, found.now, room)
    if task.unblocks:
        waiting = "waited" if task.is_finished else "waits" if task.unblocks == 1 else "wait"
        yield from ("", f"{counted(task.unblocks, 'task')} {waiting} for it.")
    yield from _section("Outcome", task.outcome or "", room)
    yield from _section("Error", task.error or "", room)
    yield from _checkpoint_lines(found, room)
    files = found.files_changed or task.files_likely_affected
    shown = [*files[:SHOWN_FILES], *([f"and {len(files) - SHOWN_FILES} more"] if len(files) > SHOWN_FILES else [])]
    yield from _list_section("Changed" if found.files_changed else "Likely to change", shown, room)


def _place(found: TaskShown) -> str:
    task = found.task
    words = [f'{as_words(status_or_ready(task))}, in "{found.workflow.name}" ({found.workflow.id})']
    if found.parent is not None:
        words.append(f'part of "{found.parent.name}"')
    words.append(f"sequence {task.sequence}")
    if task.priority:
        words.append(f"priority {task.priority}")
    if task.estimated_complexity:
        words.append(f"{task.estimated_complexity} complexity")
    if task.attempts > 1:
        words.append(f"attempt {task.attempts}")
    if task.assigned_agent_id:
        name = f"{found.agent.name} ({found.agent.id})" if found.agent is not None else task.assigned_agent_id
        words.append(f"{'left by' if found.is_left else 'with'} {name}")
    return ", ".join(words)


def _plan_lines(plan: dict[str, Any], room: int) -> Iterator[str]:
    if not plan:
        return
    yield from _section("Plan", str(plan.get("approach", "")), room)
    for number, step in enumerate(plan.get("steps", ()), start=1):
        yield from hanging(f"{number}. ", str(step), room, INDENT)
    for title, name in (("modifies", "files_to_modify"), ("creates", "files_to_create"), ("needs", "context_needed")):
        if plan.get(name):
            yield from wrapped(f"{title} {', '.join(map(str, plan[name]))}", room, INDENT)


def _checkpoint_lines(found: TaskShown, room: int) -> Iterator[str]:
    if not found.checkpoints:
        return
    yield ""
    total, shown = found.task.checkpoints, len(found.checkpoints)
    yield bold(f"Checkpoints, the newest {shown} of {total}" if total > shown else "Checkpoints, newest first")
    for checkpoint in found.checkpoints:
        ago = spoken_time(found.now - checkpoint.created_at)
        kind = f"{checkpoint.type}{' (superseded)' if checkpoint.id in found.superseded else ''}"
        text = issue_words(checkpoint.detail) if checkpoint.type == "error" else ""
        yield from hanging(f"{kind}, {ago} ago: ", text or checkpoint.summary, room, INDENT)


# -- parts ------------------------------------------------------------------------------------------------------------


def tree_lines(tasks: Sequence[Task], now: int, room: int, *, flat: bool = False) -> Iterator[str]:
    """Tasks one below the other, subtasks indented, each with its mark and any problem."""
    depths: dict[str, int] = {}
    for task in tasks:
        above = task.parent_task_id
        depths[task.id] = depths[above] + 1 if above in depths and not flat else 0
    open_names = {task.name for task in tasks if not task.is_finished}
    widest = max(width(one_line(task.name)) + 2 * depths[task.id] for task in tasks)
    names = min(widest, room // 2)
    for task in tasks:
        inner = "  " * min(depths[task.id], names // 4)
        name = pad(task.name, names - len(inner))
        state = status_or_ready(task)
        yield f"{INDENT}{inner}{mark(state)} {name}  {_state_words(task, open_names, now, room - names - 6)}".rstrip()


def _state_words(task: Task, open_names: set[str], now: int, room: int) -> str:
    state = status_or_ready(task)
    if task.status == "pending" and task.unmet:
        known = [name for name in task.depends_on if name in open_names]
        count = counted(task.unmet, "task")
        return dim(fit(f"waits for {', '.join(known) if len(known) == task.unmet else count}", room))
    if task.status == "pending" and task.open_children:
        return fit("waits for its subtasks", room)
    text = as_words(state)
    if task.status == "in_progress" and task.started_at is not None:
        text += f" for {spoken_time(now - task.started_at)}"
    reason = task.error if task.status == "failed" else task.outcome
    return paint(fit(f"{text}: {reason}" if reason else text, room), state)


def _section(title: str, text: str, room: int) -> Iterator[str]:
    if text.strip():
        yield ""
        yield bold(title)
        yield from wrapped(text, room, INDENT)


def _list_section(title: str, entries: Iterable[Any], room: int) -> Iterator[str]:
    for number, entry in enumerate(entries):
        if number == 0:
            yield ""
            yield bold(title)
        yield from hanging("- ", str(entry), room, INDENT)


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
