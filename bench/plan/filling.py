"""Fills a store with a plan of any size, as if agents had worked on it: half of it done, one task in progress, the
rest waiting. Rows and events go through the engine's own commit, a thousand at a time; only the tools are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.task import Task, dependency
from handrail.domain.work.workflow import Workflow, empty_tally
from handrail.kernel.ledger import NewEvent
from handrail.store.ports import Engine
from handrail.store.tables import BY_RECORD
from handrail.store.writes import NEW_STREAM, Head, RowWrite, WriteSet, chained

AT_ONCE = 1000
GROUP = 8
"""Tasks that may run beside each other."""
NOTES = 3
"""Checkpoints of a finished task."""
WORKFLOW = "wf_bench"


class Filled(NamedTuple):
    """What stands in the store."""

    tasks: int
    events: int
    running: str
    """The task in progress."""


def fill(engine: Engine, tasks: int, events: int) -> Filled:
    """A workflow with so many tasks and so many events behind it."""
    half = tasks // 2
    records = _records(tasks, half)
    head = NEW_STREAM
    written = 0
    while batch := list(islice(records, AT_ONCE)):
        rows = tuple(_row(record) for record in batch)
        head = _commit(engine, head, rows, 1)
        written += 1
    while written < events:
        count = min(AT_ONCE, events - written)
        head = _commit(engine, head, (), count)
        written += count
    return Filled(tasks, written, _id(half))


def _commit(engine: Engine, head: Head, rows: tuple[RowWrite, ...], count: int) -> Head:
    said = {"summary": "a note of the usual length, as an agent leaves one after each step"}
    events = [NewEvent("checkpoint.added", "bench", "mcp", number, said, ()) for number in range(count)]
    stream = chained(WORKFLOW, head, events)
    engine.commit(WriteSet((stream,), rows))
    return stream.head


def _row(record: Any) -> RowWrite:
    table = BY_RECORD[type(record)]
    return RowWrite(table.name, record.id, table.row_of(record))


def _records(tasks: int, half: int) -> Iterator[Any]:
    yield _workflow()
    made = [_task(number, tasks, half) for number in range(tasks)]
    yield empty_tally(WORKFLOW).after(come=made)
    yield from made
    for number in range(tasks):
        yield from (dependency(WORKFLOW, _id(number), _id(need)) for need in _needs(number))
        yield from _checkpoints(number, half)


def _needs(number: int) -> Iterable[int]:
    """Each group waits for two tasks of the group before."""
    first = (number // GROUP - 1) * GROUP
    return () if first < 0 else (first, first + 1)


def _workflow() -> Workflow:
    return Workflow(
        id=WORKFLOW,
        name="Move the importer to the new queue",
        status="in_progress",
        source_type="prompt",
        source_ref=None,
        source_content="Imports must survive a lost connection. " * 40,
        repository_path="/srv/shop",
        plan={"summary": "Queue first, importer second", "approach": "One queue for all importers. " * 20},
        max_parallel_tasks=4,
        auto_create_workspaces=False,
        created_at=1,
        updated_at=1,
    )


def _task(number: int, tasks: int, half: int) -> Task:
    status = "completed" if number < half else "in_progress" if number == half else "pending"
    done_before = half  # groups up to this number have their dependencies behind them
    unmet = sum(need >= done_before for need in _needs(number)) if status == "pending" else 0
    return Task(
        id=_id(number),
        workflow_id=WORKFLOW,
        parent_task_id=None,
        name=f"importer {number}",
        description="Move one importer to the queue and keep its tests green. " * 4,
        status=status,
        sequence=number // GROUP,
        priority=0,
        parallel_group=f"group {number // GROUP}",
        depends_on=[f"importer {need}" for need in _needs(number)],
        unmet=unmet,
        estimated_complexity="medium",
        files_likely_affected=[f"importers/number_{number}.py"],
        plan={"approach": "Replace the loop", "steps": ["read it", "move it", "test it"]} if number == half else None,
        context={},
        outcome="Moved; its tests pass; the old loop is gone." if status == "completed" else None,
        outcome_detail=None,
        error=None,
        checkpoints=NOTES if number <= half else 0,
        created_at=1,
        updated_at=number + 1,
        unblocks=GROUP if number % GROUP < 2 and number + GROUP < tasks else 0,
    )


def _checkpoints(number: int, half: int) -> Iterator[Checkpoint]:
    if number > half:
        return
    for sequence, kind in enumerate(("progress", "decision", "progress"), 1):
        yield Checkpoint(
            id=f"cp_{number:07}_{sequence}",
            workflow_id=WORKFLOW,
            task_id=_id(number),
            sequence=sequence,
            type=kind,
            summary=f"Step {sequence} of importer {number}: what was found and what was done about it",
            detail={"found": "the loop retried without end"},
            files_changed=[f"importers/number_{number}.py"],
            created_at=number * 10 + sequence,
        )


def _id(number: int) -> str:
    return f"task_{number:07}"
