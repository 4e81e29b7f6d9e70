"""The units that are measured: a task changed, as a prepared write set, and a task claimed through the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from handrail.domain.work.lease import Lease, acquire
from handrail.domain.work.task import Task
from handrail.kernel.ledger import Actor, Change, NewEvent
from handrail.store.store import Store
from handrail.store.tables import BY_RECORD
from handrail.store.unit import Unit
from handrail.store.writes import NEW_STREAM, Head, RowWrite, WriteSet, chained

ACTOR = Actor("bench", "cli")
ONE_ROW = b"x" * 200
"""What a raw one-row commit inserts: about the size of an event's body."""
CREATED, CHANGED, CLAIMED = "task.created", "task.changed", "task.claimed"
POOL = 512
CREATED_TOGETHER = 256
_AT_MS = 1_790_000_000_000


def task(task_id: str, stream: str, sequence: int) -> Task:
    return Task(
        id=task_id,
        workflow_id=stream,
        parent_task_id=None,
        name=f"Task {task_id}",
        description="Read the failing test, find the cause, correct it and run the suite again. " * 3,
        status="pending",
        sequence=sequence,
        priority=5,
        parallel_group=None,
        depends_on=[],
        unmet=0,
        estimated_complexity="medium",
        files_likely_affected=["src/one.py", "src/two.py", "tests/test_one.py"],
        plan=None,
        context={"branch": "main"},
        outcome=None,
        outcome_detail=None,
        error=None,
        checkpoints=0,
        created_at=_AT_MS,
        updated_at=_AT_MS,
    )


class Changes:
    """Write sets that change one task of one stream again and again: one event and one row each, each made for the
    head that the one before it leaves."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._task = task(f"task_of_{stream}", stream, 1)
        self._head = NEW_STREAM
        self._number = 0

    def first(self) -> WriteSet:
        """Makes the stream and the task."""
        return self._write_set(None)

    def next(self, count: int) -> list[WriteSet]:
        return [self._write_set(self._task) for _ in range(count)]

    def went_back_to(self, head: Head) -> None:
        """Not all that was prepared was written: goes on from where the stream stands."""
        self._head = head

    def _write_set(self, before: Task | None) -> WriteSet:
        self._number += 1
        now_ms = _AT_MS + self._number
        status = ("in_progress", "paused")[self._number % 2]
        after = msgspec.structs.replace(self._task, status=status, updated_at=now_ms)
        table = BY_RECORD[Task]
        if before is None:
            change = Change("task", after.id, table.document_of(after), None)
        else:
            old = {"status": before.status, "updated_at": before.updated_at}
            change = Change("task", after.id, {"status": status, "updated_at": now_ms}, old)
        kind = CREATED if before is None else CHANGED
        event = NewEvent(kind, ACTOR.name, ACTOR.channel, now_ms, {"reason": "measured"}, (change,))
        write = chained(self._stream, self._head, [event])
        self._task, self._head = after, write.head
        changed = None if before is None else tuple(old)
        return WriteSet((write,), (RowWrite("task", after.id, table.row_of(after), changed),))


class Claims:
    """Tasks of one stream, with a lease each, and claims of them, one after the other."""

    def __init__(self, store: Store, stream: str, lane: int, ttl_ms: int) -> None:
        self._store = store
        self._stream = stream
        self._lane = lane
        self._holder = f"agent_{lane}"
        self._ttl_ms = ttl_ms
        self._made = 0

    def make(self, count: int) -> list[str]:
        """New tasks, free to be claimed."""
        names = [f"task_{self._lane}_{self._made + number:06}" for number in range(count)]
        self._made += count
        for start in range(0, count, CREATED_TOGETHER):
            self._store.run(ACTOR, self._creation(names[start : start + CREATED_TOGETHER]))
        return names

    def _creation(self, names: list[str]) -> Callable[[Unit], None]:
        def create(unit: Unit) -> None:
            unit.expect(self._stream)
            tasks = [task(name, self._stream, number) for number, name in enumerate(names)]
            leases = [Lease(id=name, stream=self._stream, holder=None, fence=0, expires_ms=0) for name in names]
            unit.record(CREATED, *tasks, *leases)

        return create

    def claim_next(self, names: Iterator[str]) -> None:
        self._store.run(ACTOR, self._claim(next(names)))

    def _claim(self, name: str) -> Callable[[Unit], None]:
        def claim(unit: Unit) -> None:
            found, lease = unit.get(Task, name), unit.get(Lease, name)
            assert found is not None
            assert lease is not None
            now_ms = unit.now_ms()
            holding = acquire(lease.holding, self._holder, now_ms, self._ttl_ms)
            assert holding is not None, "nobody else claims these"
            taken = msgspec.structs.replace(found, status="in_progress", updated_at=now_ms)
            unit.record(CLAIMED, taken, lease.with_holding(holding, now_ms), data={"agent": self._holder})

        return claim
