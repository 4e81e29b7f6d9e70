"""Whatever is done to a machine's clock, a lease lasts as long as it was taken for: a state machine over two processes
that share a file, against a model that only counts the time that passes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from handrail.kernel.ids import CountingIds
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from tests.store.ground import VERSION
from tests.store.machines import MINUTE_MS, Machine, seen_by, take

TTL_MS = MINUTE_MS
SPANS = st.sampled_from([1, 1_000, TTL_MS // 2, TTL_MS - 1, TTL_MS, 10 * TTL_MS])
HOLDERS = st.sampled_from(["anna", "ben"])
PROCESSES = st.integers(0, 1)


class LeaseClockMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._machine = Machine()
        self._stores = [self._opened(), self._opened()]
        self._passed_ms = 0
        self._holder: str | None = None
        self._until_ms = 0

    def _opened(self) -> Store:
        path = Path(self._folder.name) / "handrail.db"
        return Store(SqliteEngine(path, version=VERSION, time=self._machine.read), ids=CountingIds())

    @property
    def _held_by(self) -> str | None:
        return self._holder if self._until_ms > self._passed_ms else None

    @rule(ms=SPANS)
    def time_passes(self, ms: int) -> None:
        self._machine.advance(ms)
        self._passed_ms += ms

    @rule(by_ms=st.integers(-(10**10), 10**10))
    def somebody_sets_the_clock(self, by_ms: int) -> None:
        self._machine.set_clock(by_ms)

    @rule(which=PROCESSES)
    def a_process_begins_anew(self, which: int) -> None:
        self._stores[which].engine.close()
        self._stores[which] = self._opened()

    @rule(which=PROCESSES, holder=HOLDERS)
    def claim(self, which: int, holder: str) -> None:
        may = self._held_by in (None, holder)
        assert take(self._stores[which], holder, TTL_MS) == may
        if may:
            self._holder, self._until_ms = holder, self._passed_ms + TTL_MS

    @rule(which=PROCESSES, holder=HOLDERS)
    def renew(self, which: int, holder: str) -> None:
        self._stores[which].engine.renew(holder, TTL_MS)
        if self._held_by == holder:
            self._until_ms = self._passed_ms + TTL_MS

    @invariant()
    def both_see_the_same(self) -> None:
        assert [seen_by(store) for store in self._stores] == [self._held_by] * 2

    def teardown(self) -> None:
        problems = self._stores[0].verify()
        for store in self._stores:
            store.engine.close()
        self._folder.cleanup()
        assert problems == []


def run(examples: int) -> None:
    how = settings(max_examples=examples, stateful_step_count=25, deadline=None)
    run_state_machine_as_test(LeaseClockMachine, settings=how)


def test_a_lease_lasts_as_long_as_it_was_taken_for_whatever_the_clock_says() -> None:
    run(8)


@pytest.mark.torture
def test_a_lease_lasts_as_long_as_it_was_taken_for_in_a_thousand_lives() -> None:
    run(1000)
