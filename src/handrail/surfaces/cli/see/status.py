"""`handrail status`: what is open here, how far it is, who works on what, and what waits for a person."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.claims.claim import deserted_tasks, is_left, whose
from handrail.domain.crew.outbox import HUMAN, unread_count
from handrail.domain.gates.gate import GATE_MACHINE, REVIEW, Gate
from handrail.domain.overview.explanations import OPEN_QUESTIONS
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.work.blockers import startable
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.plan_edit import tally_of
from handrail.domain.work.task import AT_WORK, RUNNING, SHOWN_STATES, Task
from handrail.domain.work.workflow import OPEN, Workflow
from handrail.kernel.clock import spoken_time
from handrail.kernel.records import Query, UnitOfWork
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import how_it_stands, in_one_look, workflow_meant
from handrail.surfaces.cli.columns import (
    as_words,
    bar,
    bold,
    columns,
    counted,
    dim,
    fit,
    hanging,
    mark,
    packed,
    pad,
    paint,
    widest,
    width,
    wrapped,
)
from handrail.surfaces.cli.decide.review import open_reviews_here
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.plans.runs import RunPosition, standing
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.toolsets.here import open_workflows

SHOWN_WORKFLOWS = 20
SHOWN_REVIEWS = 10
BESIDE_NAMES, LEAST_NAMES = 46, 30
"""The columns that id and state take beside a name; and a name's least width, below which they go under it."""
SHOWN_TASKS = 5
"""How many running and how many failed tasks are shown per workflow; ten times as many for one that is named."""


class LastCheckpoint(msgspec.Struct, frozen=True):
    """The last checkpoint of a task."""

    type: str
    summary: str
    created_at: int


class Active(msgspec.Struct, frozen=True, kw_only=True):
    """A task somebody works on, or one that failed."""

    id: str
    name: str
    status: str
    since: int
    for_ms: int
    assigned_agent_id: str | None
    whose: str | None
    """The same in words, and whether that agent is still present."""
    left: bool
    """Whether that agent has lost its claim on it."""
    error: str | None
    last_checkpoint: LastCheckpoint | None


class OpenWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow and what happens in it."""

    id: str
    name: str
    status: str
    repository_path: str | None
    updated_at: int
    total_tasks: int
    finished_tasks: int
    ready_tasks: int
    max_parallel_tasks: int
    by_status: dict[str, int]
    left: int
    """How many of those under way were left by their agents."""
    running: tuple[Active, ...]
    failed: tuple[Active, ...]
    why: str
    run: RunPosition | None = None
    """Where it is as a pipeline run, if it is one."""


class WaitingQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Something a person is asked."""

    id: str
    workflow_id: str
    task_id: str | None
    question: str
    options: list[str]
    for_ms: int
    kind: str
    """`decision`: work waits for it. `review`: to be looked at; nothing waits."""
    run: str | None = None
    """The title and workspace of the run that waits for it, if one does."""
    workspace: str | None = None


class OpenWork(msgspec.Struct, frozen=True, kw_only=True):
    """What is open."""

    workflows: tuple[OpenWorkflow, ...]
    questions: tuple[WaitingQuestion, ...]
    more_workflows: int
    """Open here, but not shown."""
    elsewhere: int
    """Open in other repositories of the same store."""
    unread_messages: int = 0
    """Messages from agents that the person has not read."""


@click.command()
@click.argument("workflow", required=False, shell_complete=completions.workflows)
@click.option("--all", "everywhere", is_flag=True, help="Every repository in the store, not only this one.")
@common_options
def status(workflow: str | None, everywhere: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show what is open: progress, running and failed tasks, and what waits for you.

    WORKFLOW is an id, the beginning of one, or a name; without it, every open workflow is shown.
    """
    found = in_one_look(root, options, lambda call: read_status(call, workflow, everywhere=everywhere))
    if as_json:
        echo_json(found)
        return
    echo_lines(drawn(found, columns(), repositories=everywhere))


def read_status(call: Call, workflow: str | None, *, everywhere: bool = False) -> OpenWork:
    """What is open here; of one workflow if one is named."""
    unit = call.work
    everything = unit.count(Workflow, Query((("status", OPEN),)))
    if workflow is not None:
        found, here, most = [workflow_meant(call, workflow)], everything, 10 * SHOWN_TASKS
    elif everywhere or not call.here.shared:
        found = unit.select(Workflow, Query((("status", OPEN),), ("-updated_at", "-id"), SHOWN_WORKFLOWS))
        here, most = everything, SHOWN_TASKS
    else:
        found = open_workflows(call, SHOWN_WORKFLOWS)
        conditions = (("status", OPEN), ("repository_path", call.here.repository))
        here, most = unit.count(Workflow, Query(conditions)), SHOWN_TASKS
    return OpenWork(
        workflows=tuple(_open_workflow(unit, one, most) for one in found),
        questions=_questions(call, found, named=workflow is not None, everywhere=everywhere),
        more_workflows=0 if workflow is not None else here - len(found),
        elsewhere=everything - here,
        unread_messages=unread_count(unit, HUMAN),
    )


def _open_workflow(unit: UnitOfWork, workflow: Workflow, most: int) -> OpenWorkflow:
    tally = tally_of(unit, workflow.id)
    run = unit.get(PipelineRun, workflow.id)
    running = [task for state in reversed(RUNNING) for task in _newest(unit, workflow, state, most)]
    return OpenWorkflow(
        id=workflow.id,
        name=workflow.name,
        status=workflow.status,
        repository_path=workflow.repository_path,
        updated_at=workflow.updated_at,
        total_tasks=tally.total,
        finished_tasks=tally.finished,
        ready_tasks=unit.count(Task, Query(startable(workflow.id))),
        max_parallel_tasks=workflow.max_parallel_tasks,
        by_status={state: tally.counts[state] for state in SHOWN_STATES},
        left=sum(task.status in AT_WORK for task in deserted_tasks(unit, workflow.id)),
        running=tuple(_active(unit, task) for task in running[:most]),
        failed=tuple(_active(unit, task) for task in _newest(unit, workflow, "failed", most)),
        why=how_it_stands(unit, workflow),
        run=standing(unit, run) if run is not None else None,
    )


def _newest(unit: UnitOfWork, workflow: Workflow, state: str, most: int) -> list[Task]:
    conditions = (("workflow_id", workflow.id), ("status", state))
    return unit.select(Task, Query(conditions, ("-updated_at", "-id"), most))


def _active(unit: UnitOfWork, task: Task) -> Active:
    since = task.started_at if task.status == "in_progress" and task.started_at is not None else task.updated_at
    last = unit.select(Checkpoint, Query((("task_id", task.id),), ("-sequence", "-id"), 1))
    return Active(
        id=task.id,
        name=task.name,
        status=task.status,
        since=since,
        for_ms=max(0, unit.now_ms() - since),
        assigned_agent_id=task.assigned_agent_id,
        whose=whose(unit, task),
        left=is_left(unit, task),
        error=task.error,
        last_checkpoint=LastCheckpoint(last[0].type, last[0].summary, last[0].created_at) if last else None,
    )


def _questions(
    call: Call, workflows: Sequence[Workflow], *, named: bool, everywhere: bool
) -> tuple[WaitingQuestion, ...]:
    """Decisions that these workflows wait for, and reviews: of the named workflow, otherwise of all here, since a
    review outlives its workflow."""
    unit = call.work
    keys = tuple(workflow.id for workflow in workflows)
    waited_for = (("workflow_id", keys), ("status", GATE_MACHINE.initial), ("kind", "decision"))
    asked = unit.select(Gate, Query(waited_for, ("created_at",), OPEN_QUESTIONS))
    reviews = open_reviews_here(call, everywhere=everywhere, workflow_id=keys[0] if named else None)
    asked += itertools.islice(reviews, OPEN_QUESTIONS)
    return tuple(_question(unit, gate) for gate in asked)


def _question(unit: UnitOfWork, gate: Gate) -> WaitingQuestion:
    run = unit.get(PipelineRun, gate.workflow_id) if gate.task_id is None and gate.kind != REVIEW else None
    return WaitingQuestion(
        id=gate.id,
        workflow_id=gate.workflow_id,
        task_id=gate.task_id,
        question=gate.question,
        options=gate.options,
        for_ms=max(0, unit.now_ms() - gate.created_at),
        kind=gate.kind,
        run=run.title if run is not None else None,
        workspace=run.workspace if run is not None else None,
    )


def drawn(found: OpenWork, room: int, *, repositories: bool = False) -> Iterator[str]:
    """The status as lines of at most `room` columns, with each workflow's repository if asked for."""
    if not found.workflows:
        yield "No workflow is open here."
        yield from wrapped("Ask your agent to plan its work with Handrail, or see how to begin one yourself:", room)
        yield "  handrail call workflow_create --arguments"
    names = widest((one.name for one in found.workflows), room - BESIDE_NAMES)
    if names < widest((one.name for one in found.workflows), LEAST_NAMES):
        names = 0  # too narrow for one line each
    for number, workflow in enumerate(found.workflows):
        if number:
            yield ""
        yield from _drawn_workflow(workflow, names, room)
        if repositories and workflow.repository_path:
            yield f"  {dim(fit(f'in {workflow.repository_path}', room - 2))}"
    yield from _drawn_questions(found.questions, room)
    if found.unread_messages:
        yield f"\n{counted(found.unread_messages, 'unread message')}: `handrail message`"
    if found.more_workflows:
        yield f"\n{found.more_workflows} more {'is' if found.more_workflows == 1 else 'are'} open; name one to see it."
    if found.elsewhere:
        yield ""
        yield from wrapped(f"{found.elsewhere} open in other repositories of this store: handrail status --all", room)


def _drawn_questions(questions: Sequence[WaitingQuestion], room: int) -> Iterator[str]:
    decisions = [question for question in questions if question.kind != REVIEW]
    reviews = [question for question in questions if question.kind == REVIEW]
    if decisions:
        yield ""
        yield bold("Waiting for you")
    for question in decisions:
        answers = f" ({' / '.join(question.options)})" if question.options else ""
        yield from hanging("? ", f"{question.question}{answers}, for {spoken_time(question.for_ms)}", room, "  ")
        if question.run is not None:
            yield from wrapped(f'of "{fit(question.run, room)}", {question.workspace}', room, "    ")
    if reviews:
        yield ""
        yield bold("To look at")
    for review in reviews[:SHOWN_REVIEWS]:
        since = f", for {spoken_time(review.for_ms)}"
        yield f"  ! {fit(review.question, room - 4 - width(since))}{since}"
        yield f"    {dim(review.id)}"
    if len(reviews) > SHOWN_REVIEWS:
        yield f"  and {len(reviews) - SHOWN_REVIEWS} more"
    if reviews:
        yield from wrapped("`handrail review` shows more and closes them.", room, "  ")


def _drawn_workflow(workflow: OpenWorkflow, names: int, room: int) -> Iterator[str]:
    about = (workflow.id, paint(as_words(workflow.status), workflow.status))
    if names:
        yield "  ".join((bold(pad(workflow.name, names)), *about))
    else:
        yield bold(fit(workflow.name, room))
        yield from packed(about, room, "  ")
    yield from _progress(workflow, room)
    tasks = (*workflow.running, *workflow.failed)
    width = widest((task.name for task in tasks), room // 3)
    for task in tasks:
        yield f"  {mark(task.status)} {pad(task.name, width)}  {fit(_state_words(task), room - width - 6)}"
    hidden = sum(workflow.by_status[state] for state in (*RUNNING, "failed")) - len(tasks)
    if hidden > 0:
        yield f"    and {hidden} more under way or failed"
    if not tasks or workflow.run is not None:
        yield from wrapped(workflow.why, room, "  ")


def _progress(workflow: OpenWorkflow, room: int) -> Iterator[str]:
    """A bar and the counts, on a separate line if they are long."""
    if not workflow.total_tasks:
        return
    line = f"{bar(workflow.finished_tasks, workflow.total_tasks)} {workflow.finished_tasks}/{workflow.total_tasks} done"
    counts = _counts(workflow)
    if len(line) + len(counts) + 4 <= room:
        yield f"  {', '.join(filter(None, (line, counts)))}"
    else:
        yield f"  {line}"
        yield from wrapped(counts, room, "    ")


def _counts(workflow: OpenWorkflow) -> str:
    counts = workflow.by_status
    found = [
        (sum(counts[state] for state in AT_WORK) - workflow.left, "under way"),
        (workflow.left, "left by its agent" if workflow.left == 1 else "left by their agents"),
        (counts["paused"], "paused"),
        (counts["failed"], "failed"),
        (workflow.ready_tasks, "ready"),
        (counts["pending"] - workflow.ready_tasks, "with open subtasks"),
        (counts["blocked"], "blocked"),
    ]
    return ", ".join(f"{count} {word}" for count, word in found if count)


def _state_words(task: Active) -> str:
    since = spoken_time(task.for_ms)
    if task.status == "failed":
        return f"failed {since} ago: {task.error or 'without a reason'}"
    words = f"for {since}" if task.status == "in_progress" else f"{as_words(task.status)} for {since}"
    if task.whose:
        words = f"{as_words(task.status)}, {task.whose}" if task.left else f"{words} {task.whose}"
    if task.last_checkpoint is None:
        return f"{words}; no checkpoint yet"
    ago = spoken_time(task.since + task.for_ms - task.last_checkpoint.created_at)
    return f"{words}; {ago} ago: {task.last_checkpoint.summary}"
