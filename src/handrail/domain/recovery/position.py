"""Where a workflow stands: how far a task's plan is, what the next legal move is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from handrail.domain.recovery.truncate import line
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Workflow

STEP = "step"
"""The member of a checkpoint's detail that says which steps of the plan it completes, counted from 1."""


class Steps(NamedTuple):
    """How far a plan has got: its steps, the numbers of those marked as done, the next one."""

    texts: tuple[str, ...]
    done: frozenset[int]
    next: int | None
    """None when every step is done, or there are none."""


def steps_of(task: Task, checkpoints: Sequence[Checkpoint]) -> Steps:
    """A plan's steps, with those marked as done by checkpoints since the last replan."""
    listed = (task.plan or {}).get("steps")
    texts = tuple(str(step) for step in listed) if isinstance(listed, list) else ()
    since = max((cp.sequence for cp in checkpoints if cp.type == "replan"), default=0)
    marks = [
        number
        for checkpoint in checkpoints
        if checkpoint.sequence > since and checkpoint.type in ("progress", "recovery", "complete")
        for number in checkpoint.listed(STEP)
    ]
    done = frozenset(number for number in marks if type(number) is int and 1 <= number <= len(texts))
    oldest_seen = min((cp.sequence for cp in checkpoints), default=1)
    if oldest_seen > since + 1 and done:  # checkpoints with earlier marks were not read
        done = done | frozenset(range(1, max(done)))
    return Steps(texts, done, next((n for n in range(1, len(texts) + 1) if n not in done), None))


class TaskPosition(NamedTuple):
    """Where a task stands."""

    workflow: Workflow
    task: Task
    steps: Steps
    last: Checkpoint | None
    waits_for: Sequence[Task]
    open_parts: Sequence[Task]
    changed: int = 0


def next_move(at: TaskPosition, tools: Mapping[str, str]) -> str:
    """One sentence: what to do next. Names only tools that are on; `tools` maps them to their names on this server."""

    def using(*wanted: str) -> str:
        """The first of these tools that is on. The journal's come first, as they do more than the plan's."""
        return next((f" ({tools[tool]})" for tool in wanted if tool in tools), "")

    if at.workflow.status in CLOSED:
        return f"The workflow is {at.workflow.status}; nothing is left to do in it."
    if at.task.is_finished:
        return f"This task is {at.task.status}; go on with the next one{using('workflow_next_tasks')}."
    if at.workflow.status == "paused":
        return f"The workflow is paused; nothing starts before it is resumed{using('workflow_update_status')}."
    status = at.task.shown_status
    if status == "blocked":
        names = ", ".join(f'"{line(need.name, 12)}" ({need.shown_status})' for need in at.waits_for[:2])
        return f"Waits for {names or 'other tasks'}; take another{using('workflow_next_tasks')}."
    if status == "failed":
        return f"It failed: plan it anew{using('task_replan')} or try again{using('start_task', 'task_update_status')}."
    if status == "paused":
        return f"It is paused; take it up again{using('start_task', 'task_update_status')}."
    if status in ("pending", "planning"):
        plan = f"Plan it{using('task_set_plan')}, then start it" if at.task.plan is None else "It is planned; start it"
        return f"{plan}{using('start_task', 'task_update_status')}."
    return _in_progress(at, using)


def _in_progress(at: TaskPosition, using: Callable[..., str]) -> str:
    steps, last = at.steps, at.last
    record = using("checkpoint_add")
    if last is not None and last.type == "error" and not last.is_settled:
        return f'Solve the last error, then record a recovery{record}: "{line(last.summary, 30)}"'
    if at.open_parts:
        part = at.open_parts[0]
        return f'Subtask "{line(part.name, 12)}" ({part.id}) is {part.shown_status}; finish it first.'
    if steps.texts and steps.next is None:
        complete = using("complete_task", "task_update_status")
        return f"Every step is done: check the result, then complete the task{complete}."
    if steps.done and steps.next is not None:
        return f"Step {steps.next} of {len(steps.texts)}: {line(steps.texts[steps.next - 1], 50)}"
    if last is not None:
        after = f'Go on after "{line(last.summary, 30)}"'
        return f'{after}; mark what is done{record}: detail {{"{STEP}": n}}' if steps.texts else after
    if steps.texts:
        return f"Step 1 of {len(steps.texts)}: {line(steps.texts[0], 50)}"
    if at.changed:
        files = "1 file is" if at.changed == 1 else f"{at.changed} files are"
        return f"Go on: {files} changed so far (changed_files)."
    return f"Begin, and record progress{using('checkpoint_add', 'log_milestone')}."
