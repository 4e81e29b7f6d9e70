"""What happened, as an open page needs it: which of its screens are out of date, and the current state of the rows that
changed. Made from ledger events, so it covers what any process did.

Rows are read when the news is made, so news that arrives late or twice does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from handrail.domain.gates.gate import REVIEW, Gate
from handrail.domain.overview.rows import TaskRow, WorkflowRow, task_rows, workflow_rows
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.registry.envelopes import AGENT, RUN
from handrail.domain.work.lease import Lease
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Change, Event
from handrail.kernel.records import UnitOfWork, found_by

TASKS, WORKFLOWS = 1000, 200
"""How many rows one piece of news carries."""
TOPICS = {
    "workflow": "workflows",
    "tally": "workflows",
    "task": "tasks",
    "dependency": "plan",
    "agent": "agents",
    "lease": "agents",
    "workspace": "agents",
    "message": "messages",
    "board": "board",
    "pipeline": "pipeline",
    "checkpoint": "checkpoints",
    "journal": "tasks",
}
"""Which screens a changed table affects; for gates and notes it depends on the row."""
SILENT_COLUMNS = {"unblocks"}
"""Columns of a task that no screen shows."""
TASK_PREFIX = "task_"


class GoneTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that no longer exists."""

    id: str
    workflow_id: str
    gone: bool = True


class News(msgspec.Struct, frozen=True, kw_only=True):
    """What a page is told."""

    position: int
    topics: list[str]
    workflows: list[WorkflowRow]
    tasks: list[TaskRow | GoneTask]
    streams: list[str]
    more: int = 0
    """How many more tasks changed. If any did, `plan` is a topic, and a page reloads its workflow."""


class _Touched:
    """Collects what some events are about."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.workflows: dict[str, None] = {}
        self.tasks: dict[str, str] = {}
        """From task to workflow."""
        self.gates: dict[str, None] = {}
        self.agents: dict[str, None] = {}


def news(unit: UnitOfWork, events: Sequence[Event]) -> News:
    """The news from one or more events, in order."""
    touched = _Touched()
    for event in events:
        if event.stream.startswith(RUN):
            touched.workflows[event.stream] = None
        for change in event.changes:
            _note(touched, event, change)
    _note_asked(unit, touched)
    _note_held(unit, touched)
    wanted = list(touched.tasks)
    shown = wanted[:TASKS]
    there = {task.id: task for task in found_by(unit, Task, "id", shown)}
    workflows = {one.id: one for one in found_by(unit, Workflow, "id", list(touched.workflows)[:WORKFLOWS])}
    gone = [GoneTask(id=key, workflow_id=touched.tasks[key]) for key in shown if key not in there]
    rows = task_rows(unit, [there[key] for key in shown if key in there])
    if len(wanted) > len(shown):
        touched.topics.add("plan")
    return News(
        position=events[-1].position,
        topics=sorted(touched.topics),
        workflows=workflow_rows(unit, [workflows[key] for key in touched.workflows if key in workflows]),
        tasks=[*rows, *gone],
        streams=list(dict.fromkeys(event.stream for event in events)),
        more=len(wanted) - len(shown),
    )


def _note(touched: _Touched, event: Event, change: Change) -> None:
    touched.topics.update(_topics(event, change))
    claimed = change.table == "lease" and change.key.startswith(TASK_PREFIX)
    if claimed or (change.table == "task" and _is_seen(change)):
        touched.tasks[change.key] = event.stream
    elif change.table == "gate":
        touched.gates[change.key] = None
    elif change.table == "agent":
        touched.agents[change.key] = None


def _topics(event: Event, change: Change) -> Iterator[str]:
    after = change.after or {}
    if change.table == "gate":
        kind = after.get("kind") or (change.before or {}).get("kind")
        yield "reviews" if kind == REVIEW or event.kind == "review.closed" else "gates"
        return
    if (topic := TOPICS.get(change.table)) is None:
        return
    yield topic
    if change.table == "checkpoint" and after.get("type") == "decision":
        yield "decisions"
    if change.table == "task" and (change.before is None or change.after is None):
        yield "plan"
    if change.table == "tally" and change.before is not None and "version" in after:
        yield "plan"


def _is_seen(change: Change) -> bool:
    return change.after is None or bool(change.after.keys() - SILENT_COLUMNS)


def _note_asked(unit: UnitOfWork, touched: _Touched) -> None:
    """Adds the tasks that gates are about, because a task shows whether a question about it is open."""
    for gate in found_by(unit, Gate, "id", touched.gates):
        if gate.task_id is not None:
            touched.tasks.setdefault(gate.task_id, gate.workflow_id)
        elif (run := unit.get(PipelineRun, gate.workflow_id)) is not None:
            for task_id in run.tasks_handed_out():
                touched.tasks.setdefault(task_id, run.id)


def _note_held(unit: UnitOfWork, touched: _Touched) -> None:
    """Adds the workflows of agents that came or went, because a workflow shows how many of its agents are present."""
    coming_and_going = [key for key in touched.agents if key.startswith(AGENT)]
    for lease in found_by(unit, Lease, "holder", coming_and_going):
        if lease.stream.startswith(RUN):
            touched.workflows[lease.stream] = None
