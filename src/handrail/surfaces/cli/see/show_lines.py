"""How `handrail show` draws a task or a workflow as lines of text. Nothing is read or printed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.work.blockers import status_or_ready
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.tally import Tally
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import spoken_time
from handrail.surfaces.cli.columns import (
    as_words,
    bar,
    bold,
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
from handrail.surfaces.cli.see.journal_lines import issue_words

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
