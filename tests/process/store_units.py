"""The mixed units the store is tortured with: deterministic per seed, worker and number, so that a restarted writer
repeats exactly what it was doing. Each carries an idempotency key, as every writing call does."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable
from typing import Any

import msgspec

from handrail.domain.crew.message import Message
from handrail.domain.work import lease as leases
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.lease import Lease
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import NothingToUndo
from handrail.kernel.ledger import Actor, Event
from handrail.store.store import Store
from handrail.store.unit import Unit
from handrail.store.writes import KeyWrite

Answer = dict[str, Any]

SHARED_WORKFLOWS = tuple(f"wf_shared_{number}" for number in range(4))
LEASES = tuple(f"lease_{number}" for number in range(3))
INBOXES = tuple(f"agent_{number}" for number in range(3))
SCOPE = "torture"
KEY_LIFE_MS = 24 * 3600 * 1000
EVERY_WORKER_EVERY = 10
"""Every so many units, all workers run the one with the same number under the same key: one of them wins."""
CHANNEL = "test"

KINDS = {
    "create": 3,
    "change": 4,
    "checkpoint": 5,
    "lease": 6,
    "message": 3,
    "two_streams": 3,
    "large": 1,
    "undo": 2,
}


class WallClock:
    """Milliseconds of the machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


def named(tag: str, of: int = 1) -> dict[str, Any]:
    """What tells the events of a unit: its key, and how many there must be."""
    return {"unit": tag, "of": of}


def workflow(key: str, now_ms: int, name: str = "shared") -> Workflow:
    return Workflow(
        id=key,
        name=name,
        status="in_progress",
        source_type="prompt",
        source_ref=None,
        source_content="",
        repository_path=None,
        plan={"goal": "hold"},
        max_parallel_tasks=2,
        auto_create_workspaces=False,
        created_at=now_ms,
        updated_at=now_ms,
    )


def task(workflow_id: str, number: int, now_ms: int) -> Task:
    return Task(
        id=f"{workflow_id}_task_{number}",
        workflow_id=workflow_id,
        parent_task_id=None,
        name=f"task {number}",
        description="",
        status="pending",
        sequence=number,
        priority=0,
        parallel_group=None,
        depends_on=[],
        unmet=0,
        estimated_complexity=None,
        files_likely_affected=[],
        plan=None,
        context={},
        outcome=None,
        outcome_detail=None,
        error=None,
        checkpoints=0,
        created_at=now_ms,
        updated_at=now_ms,
    )


def prepare(store: Store) -> None:
    """What all workers share, made by whoever comes first."""
    for key in SHARED_WORKFLOWS:

        def make(unit: Unit, key: str = key) -> None:
            if unit.get(Workflow, key) is None:
                now = unit.now_ms()
                unit.record("workflow.created", workflow(key, now), *(task(key, number, now) for number in range(2)))

        store.run(Actor("setup", CHANNEL), make)


class Worker:
    """One worker's units. What it holds in memory dies with it; what it has written does not."""

    def __init__(self, store: Store, name: str, life: str, seed: int) -> None:
        self._store = store
        self._name = name
        self._holder = f"{name}.{life}"
        self._seed = seed
        self._fences: dict[str, int] = {}
        self._actor = Actor(name, CHANNEL)

    def run(self, number: int) -> Answer:
        """Runs unit `number` and returns what to acknowledge."""
        if number % EVERY_WORKER_EVERY == 0:
            return self._keyed(f"all-{number}", lambda unit, tag: self._message(unit, tag, random.Random(number)))
        chance = random.Random(f"{self._seed}/{self._name}/{number}")
        kind = chance.choices(list(KINDS), weights=list(KINDS.values()))[0]
        key = f"{self._name}-{number}"
        if kind == "undo":
            return self._undo(key, chance)
        handler: Callable[[Unit, str, random.Random], Answer] = getattr(self, f"_{kind}")
        state = chance.getstate()

        def work(unit: Unit, tag: str) -> Answer:
            chance.setstate(state)  # the same choices when the unit runs again
            return handler(unit, tag, chance)

        answer = self._keyed(key, work)
        if kind == "lease":
            self._take_note(answer)
        return answer

    def _keyed(self, key: str, work: Callable[[Unit, str], Answer], actor: Actor | None = None) -> Answer:
        def once(unit: Unit) -> Answer:
            known = unit.key_answer(SCOPE, key)
            if known is not None:
                found: Answer = msgspec.json.decode(known[1])
                return found
            answer = {"tag": key, "by": self._holder, **work(unit, key)}
            now = unit.now_ms()
            unit.keep_answer(KeyWrite(SCOPE, key, key, msgspec.json.encode(answer), now + KEY_LIFE_MS, now))
            return answer

        return self._store.run(actor or self._actor, once)

    # -- the kinds --------------------------------------------------------------------------------------------------

    def _create(self, unit: Unit, tag: str, chance: random.Random) -> Answer:
        key, now = f"wf_{tag}", unit.now_ms()
        tasks = [task(key, number, now) for number in range(chance.randint(1, 4))]
        unit.record("workflow.created", workflow(key, now, tag), *tasks, data=named(tag))
        return {"events": 1, "row": ["workflow", key]}

    def _change(self, unit: Unit, tag: str, chance: random.Random, of: int = 1) -> Answer:
        found = unit.get(Workflow, chance.choice(SHARED_WORKFLOWS))
        assert found is not None
        unit.record("workflow.changed", msgspec.structs.replace(found, name=tag), data=named(tag, of))
        return {"events": 1}

    def _large(self, unit: Unit, tag: str, chance: random.Random) -> Answer:
        found = unit.get(Workflow, chance.choice(SHARED_WORKFLOWS))
        assert found is not None
        grown = msgspec.structs.replace(found, source_content=tag[:1] * chance.randint(5_000, 40_000))
        unit.record("workflow.changed", grown, data=named(tag))
        return {"events": 1}

    def _checkpoint(self, unit: Unit, tag: str, chance: random.Random) -> Answer:
        found = unit.get(Task, f"{chance.choice(SHARED_WORKFLOWS)}_task_{chance.randrange(2)}")
        assert found is not None
        now = unit.now_ms()
        counted = msgspec.structs.replace(found, checkpoints=found.checkpoints + 1, updated_at=now)
        added = Checkpoint(
            id=f"cp_{tag}",
            workflow_id=found.workflow_id,
            task_id=found.id,
            sequence=counted.checkpoints,
            type="progress",
            summary=tag,
            detail={"size": "x" * chance.choice((20, 200, 2000))},
            files_changed=[],
            created_at=now,
        )
        unit.record("checkpoint.added", added, counted, data=named(tag))
        return {"events": 1, "row": ["checkpoint", added.id]}

    def _message(self, unit: Unit, tag: str, chance: random.Random, of: int = 1) -> Answer:
        sent = message(tag, chance.choice(INBOXES), self._name, unit.now_ms())
        unit.expect(sent.stream)
        unit.record("message.sent", sent, data=named(tag, of))
        return {"events": 1, "row": ["message", sent.id]}

    def _two_streams(self, unit: Unit, tag: str, chance: random.Random) -> Answer:
        self._change(unit, tag, chance, of=2)
        self._message(unit, tag, chance, of=2)
        return {"events": 2}

    def _lease(self, unit: Unit, tag: str, chance: random.Random) -> Answer:
        key = chance.choice(LEASES)
        fence = self._fences.get(key)
        stream = f"lock:{key}"
        unit.expect(stream)
        found = unit.get(Lease, key) or Lease(id=key, stream=stream, holder=None, fence=0, expires_ms=0)
        now, life = unit.now_ms(), chance.choice((5, 50, 500))
        if fence is None:
            kind, held = "lease.acquired", leases.acquire(found.holding, self._holder, now, life)
        elif chance.random() < 0.6:
            kind, held = "lease.renewed", leases.renew(found.holding, self._holder, fence, now, life)
        else:
            kind, held = "lease.released", leases.release(found.holding, self._holder, fence)
        if held is None:  # another has it: nothing to write
            return {"events": 0, "lease": key, "fence": None}
        data = {**named(tag), "holder": self._holder, "fence": held.fence}
        unit.record(kind, found.with_holding(held, now), data=data)
        return {"events": 1, "lease": key, "fence": None if kind == "lease.released" else held.fence}

    def _take_note(self, answer: Answer) -> None:
        if answer["fence"] is None or answer["by"] != self._holder:
            self._fences.pop(answer["lease"], None)
        else:
            self._fences[answer["lease"]] = answer["fence"]

    def _undo(self, key: str, chance: random.Random) -> Answer:
        """Writes as another actor, and takes it back while it is the last word."""
        undoer = Actor(f"{self._name}-undoer", CHANNEL)
        state = chance.getstate()

        def change(unit: Unit, tag: str) -> Answer:
            chance.setstate(state)
            return self._change(unit, tag, chance)

        answer = self._keyed(key, change, undoer)
        try:
            undone: Event = self._store.undo(undoer)
        except NothingToUndo:
            return answer
        return {**answer, "undone": [undone.stream, undone.seq]}


def message(tag: str, recipient: str, sender: str, now_ms: int) -> Message:
    return Message(
        id=f"msg_{tag}",
        thread_id=tag,
        sender_id=sender,
        recipient_id=recipient,
        message_type="notification",
        subject=None,
        body={"text": tag},
        priority="normal",
        status="unread",
        workflow_id=None,
        task_id=None,
        reply_to_id=None,
        created_at=now_ms,
        read_at=None,
        sequence=int.from_bytes(hashlib.blake2b(tag.encode(), digest_size=6).digest()),  # a place nobody else takes
    )
