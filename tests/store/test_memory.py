"""The memory store has nothing of its own but its limits; everything else is in the contract."""

from __future__ import annotations

import pytest

from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ids import CountingIds
from handrail.store.memory import MemoryEngine
from handrail.store.migrations import LATEST
from handrail.store.ports import lasting
from handrail.store.store import Store
from tests.store.records import found, put, workflow


def test_two_memory_stores_know_nothing_of_each_other() -> None:
    one, two = (Store(MemoryEngine(), clock=FixedClock(), ids=CountingIds()) for _ in range(2))
    put(one, workflow())
    assert found(two, Workflow, "wf_1") is None


def test_it_tells_what_it_is_and_is_always_sound() -> None:
    engine = MemoryEngine()
    info = engine.info()
    assert (info.engine, info.location, info.schema) == ("memory", "", LATEST)
    assert engine.check() == []


def test_it_cannot_be_looked_after() -> None:
    with pytest.raises(StoreUnusable, match="ends with its process"):
        lasting(MemoryEngine())


def test_what_was_read_before_stays_as_it_was() -> None:
    engine = MemoryEngine()
    store = Store(engine, clock=FixedClock(), ids=CountingIds())
    put(store, workflow())
    with engine.reading() as reader:
        put(store, workflow("wf_2"))
        assert [stream for stream, _ in reader.streams()] == ["wf_1"]
