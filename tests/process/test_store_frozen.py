"""Processes that fail in other ways than dying: frozen, forked, interrupted, newer than ours, with a clock that jumps.
Nobody waits for ever, nothing is acknowledged that is not written."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from handrail.domain.work import lease as leases
from handrail.domain.work.lease import Lease
from handrail.kernel.errors import StoreBusy, StoreRefused, StoreTooNew
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.store.sqlite import GROUP, SqliteEngine
from handrail.store.store import Store
from handrail.store.unit import Unit
from tests.process.store_audit import audit, every_event, open_store
from tests.process.store_patient import Patient, note
from tests.process.store_units import CHANNEL, Worker, message, prepare

BUSY_MS = 200
HOUR_MS = 3_600_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """A store whose patience is short."""
    opened = open_store(path, busy_ms=BUSY_MS)
    yield opened
    opened.engine.close()


def engine_of(store: Store) -> SqliteEngine:
    assert isinstance(store.engine, SqliteEngine)
    return store.engine


# -- frozen ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("doing", ["hold", "write_half"])
def test_a_frozen_writer_makes_others_busy_for_a_while_and_readers_never(path: Path, store: Store, doing: str) -> None:
    acks = [note(store, "mine-1")]
    with Patient(path) as patient:
        acks += patient.do("write", 1)["acks"]
        patient.do(doing)
        patient.freeze()
        for _ in range(2):
            with pytest.raises(StoreBusy) as caught:
                note(store, "never-1")
            assert "nothing was written" in caught.value.hint
            assert caught.value.details["holder"] in (patient.process.pid, None)
        assert len(every_event(store)) == 2, "readers go on"
        assert store.verify() == []
        patient.thaw()
        patient.do("let_go")
        acks += [note(store, "mine-2"), *patient.do("write", 1)["acks"]]
    assert [event.kind for event in every_event(store)] == ["message.sent"] * 4
    assert audit(path, acks) == []


@pytest.mark.parametrize("doing", ["hold", "write_half"])
def test_a_frozen_writer_that_is_killed_lets_the_next_one_in(path: Path, store: Store, doing: str) -> None:
    acks = [note(store, "mine-1")]
    with Patient(path) as patient:
        patient.do(doing)
        patient.freeze()
        with pytest.raises(StoreBusy):
            note(store, "never-1")
        patient.process.kill()
        patient.process.wait()
        acks.append(note(store, "mine-2"))
    assert [event.kind for event in every_event(store)] == ["message.sent"] * 2, "the half unit is not there"
    assert audit(path, acks) == []


def test_the_refusal_names_the_process_that_is_in_the_way(path: Path, store: Store) -> None:
    with Patient(path) as patient:
        patient.do("hold")
        with pytest.raises(StoreBusy) as caught:
            note(store, "never-1")
    holder = caught.value.details["holder"]
    if not Path("/proc/locks").exists():
        pytest.skip("this system does not tell who holds a lock")
    assert holder == patient.process.pid
    assert f"kill -CONT {holder}" in caught.value.hint


def test_who_gave_up_waiting_does_not_keep_the_gate_when_its_turn_comes(path: Path, store: Store) -> None:
    with Patient(path) as holder, Patient(path) as third:
        holder.do("hold")
        with pytest.raises(StoreBusy):
            note(store, "never-1")
        holder.do("let_go")
        acks = third.do("write", 3)["acks"]
        acks += holder.do("write", 3)["acks"]
    assert len(acks) == 6
    assert audit(path, acks) == []


def test_threads_of_one_process_are_refused_together_while_another_holds_on(path: Path, store: Store) -> None:
    outcomes: list[str] = []

    def attempt(number: int) -> None:
        try:
            note(store, f"thread{number}-1")
        except StoreBusy:
            outcomes.append("busy")
        else:
            outcomes.append("written")

    with Patient(path) as patient:
        patient.do("hold")
        threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes == ["busy"] * 8
        patient.do("let_go")
        assert every_event(store) == []
        assert audit(path, [note(store, "mine-1")]) == []


def test_a_store_closed_while_it_waits_leaves_the_gate_to_others(path: Path) -> None:
    waiting = open_store(path, busy_ms=BUSY_MS)
    with Patient(path) as holder, Patient(path) as third:
        holder.do("hold")
        with pytest.raises(StoreBusy):
            note(waiting, "never-1")
        waiting.engine.close()
        holder.do("let_go")
        acks = third.do("write", 3)["acks"]
    assert audit(path, acks) == []


# -- threads --------------------------------------------------------------------------------------------------------


def wait_for_queue(store: Store, length: int) -> None:
    while len(engine_of(store)._queue) < length:
        os.sched_yield()


def test_a_unit_behind_more_than_one_group_is_written_before_it_is_told(path: Path, store: Store) -> None:
    others = [threading.Thread(target=note, args=(store, f"thread{number}-1")) for number in range(2 * GROUP + 1)]
    with engine_of(store)._leader:
        for thread in others:
            thread.start()
        wait_for_queue(store, len(others))
        note(store, "last-1")
        assert "last-1" in [event.data["unit"] for event in every_event(store)]
    for thread in others:
        thread.join()
    assert len(every_event(store)) == 2 * GROUP + 2
    assert audit(path) == []


def test_who_is_alone_is_alone_among_the_threads_of_its_own_process_too(path: Path, store: Store) -> None:
    runs = 0

    def work(unit: Unit) -> None:
        nonlocal runs
        runs += 1
        unit.expect("inbox:both")
        if runs == 1:
            other.start()
            wait_for_queue(store, 1)
        unit.record("message.sent", message("both-2", "both", "", unit.now_ms()), data={"unit": "both-2"})

    other = threading.Thread(target=note, args=(store, "both-1"))
    with store.engine.alone():
        store.run(Actor("mine", CHANNEL), work)
    other.join()
    assert runs == 1, "nobody else may get in between"
    assert [event.data["unit"] for event in every_event(store)] == ["both-2", "both-1"]
    assert audit(path) == []


def test_two_hundred_threads_that_write_the_same_stream_all_get_their_turn(path: Path) -> None:
    with Patient(path) as patient:
        outcomes = patient.do("write_in_threads", 200, 1)
    acks = [ack for outcome in outcomes for ack in outcome["acks"]]
    assert len(acks) == 200
    assert audit(path, acks) == []


def test_who_writes_behind_an_interrupted_thread_is_not_told_that_it_is_written(path: Path) -> None:
    with Patient(path) as holder, Patient(path) as patient:
        holder.do("hold")
        told = patient.do("write_behind_an_interrupted_thread")
        assert told["interrupted"]
        assert told["other"]["refused"]["code"] == "STORE_REFUSED"
        holder.do("let_go")
        acks = [*patient.do("write", 2)["acks"], *holder.do("write", 2)["acks"]]
        assert holder.do("events") == 4
    assert audit(path, acks) == []


def test_who_was_taken_out_of_the_queue_and_then_left_alone_is_told(path: Path, store: Store) -> None:
    """By a thread that was interrupted before it could begin."""
    told: list[StoreRefused] = []

    def write() -> None:
        with pytest.raises(StoreRefused) as caught:
            note(store, "never-1")
        told.append(caught.value)

    thread = threading.Thread(target=write)
    with engine_of(store)._leader:
        thread.start()
        wait_for_queue(store, 1)
        engine_of(store)._next_group()
    thread.join()
    assert "interrupted" in told[0].message
    assert audit(path, [note(store, "mine-1")]) == []


def test_backup_and_check_do_not_disturb_a_thread_that_writes(path: Path, store: Store, tmp_path: Path) -> None:
    stop = threading.Event()
    acks: list[dict[str, object]] = []

    def write() -> None:
        while not stop.is_set():
            acks.append(note(store, f"mine-{len(acks)}"))

    thread = threading.Thread(target=write)
    thread.start()
    for number in range(5):
        assert store.engine.check() == []
        engine_of(store).backup(str(tmp_path / f"copy_{number}.db"))
    stop.set()
    thread.join()
    assert audit(path, acks) == []
    for number in range(5):
        assert audit(tmp_path / f"copy_{number}.db") == []


def test_a_copy_can_be_made_in_the_middle_of_a_write(path: Path, store: Store, tmp_path: Path) -> None:
    acks = [note(store, "mine-1")]
    writer = engine_of(store)._writer
    writer.execute("BEGIN IMMEDIATE")
    assert store.engine.check() == []
    engine_of(store).backup(str(tmp_path / "copy.db"))
    writer.execute("ROLLBACK")
    assert audit(tmp_path / "copy.db", acks) == []


def test_many_threads_may_look_at_once(store: Store) -> None:
    note(store, "mine-1")
    seen: list[int] = []

    def look() -> None:
        for _ in range(50):
            with store.engine.reading() as reader:
                seen.append(reader.position())

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 400


# -- processes ------------------------------------------------------------------------------------------------------


def test_a_new_file_opened_by_many_at_once_is_made_once(tmp_path: Path) -> None:
    patients = [Patient() for _ in range(4)]
    try:
        for number in range(12):
            path = tmp_path / f"store_{number}.db"
            for patient in patients:
                patient.ask("open", str(path), 10_000)
            assert [patient.told() for patient in patients] == [{"answer": None}] * len(patients)
            acks = [ack for patient in patients for ack in patient.do("write", 1)["acks"]]
            assert audit(path, acks) == []
    finally:
        for patient in patients:
            patient.__exit__(None, None, None)


def test_a_fork_is_told_to_open_the_store_itself(path: Path) -> None:
    with Patient(path) as patient:
        acks = patient.do("write", 2)["acks"]
        told = patient.do("fork")["told"]
        assert [attempt["refused"]["code"] for attempt in told] == ["STORE_UNUSABLE"] * 2
        assert all("fork" in attempt["refused"]["message"] for attempt in told)
        acks += patient.do("write", 2)["acks"]
        assert patient.do("events") == 4
    assert audit(path, acks) == []


# -- versions -------------------------------------------------------------------------------------------------------


def upgrade(path: Path, schema: int, needs: str) -> None:
    """What a newer Handrail would do to the file."""
    newer = open_store(path)
    execute = engine_of(newer)._writer.execute
    execute(f"PRAGMA user_version = {schema}")
    execute("UPDATE meta SET value = ? WHERE key = 'needs'", (needs,))
    newer.engine.close()


def test_a_newer_schema_is_refused_with_the_version_that_knows_it(path: Path, store: Store) -> None:
    note(store, "mine-1")
    upgrade(path, 99, "7.1.0")
    before = path.read_bytes()
    with pytest.raises(StoreTooNew) as caught:
        open_store(path)
    assert "7.1.0" in caught.value.hint
    assert caught.value.details["needs"] == "7.1.0"
    assert path.read_bytes() == before


def test_a_store_that_a_newer_version_upgraded_while_it_was_open_is_written_to_no_more(
    path: Path, store: Store
) -> None:
    note(store, "mine-1")
    upgrade(path, 99, "7.1.0")
    with pytest.raises(StoreTooNew) as caught:
        note(store, "never-1")
    assert "7.1.0" in caught.value.hint
    assert [event.data["unit"] for event in every_event(store)] == ["mine-1"]


# -- clocks ---------------------------------------------------------------------------------------------------------


class JumpingClock:
    """A clock that is wrong by some hours, differently at each call."""

    def __init__(self, *hours: int) -> None:
        self._hours = hours
        self._calls = 0

    def now_ms(self) -> int:
        self._calls += 1
        return 1_800_000_000_000 + self._hours[self._calls % len(self._hours)] * HOUR_MS + self._calls


def lease_step(store: Store, holder: str, step: Callable[[leases.Holding, int], leases.Holding | None]) -> Lease | None:
    """Changes the one lease there is; None when its rules do not allow it."""

    def work(unit: Unit) -> Lease | None:
        unit.expect("lock:one")
        found = unit.get(Lease, "one") or Lease(id="one", stream="lock:one", holder=None, fence=0, expires_ms=0)
        held = step(found.holding, unit.now_ms())
        if held is None:
            return None
        data = {"unit": holder, "holder": holder, "fence": held.fence}
        changed = found.with_holding(held, unit.now_ms())
        unit.record("lease.acquired" if held.fence > found.fence else "lease.renewed", changed, data=data)
        return changed

    return store.run(Actor(holder, CHANNEL), work)


def test_a_holder_whose_lease_a_wrong_clock_took_cannot_write_under_its_fence(path: Path) -> None:
    right = Store(SqliteEngine(path, version="0"), clock=JumpingClock(0), ids=CountingIds())
    ahead = Store(SqliteEngine(path, version="0"), clock=JumpingClock(5), ids=CountingIds())
    mine = lease_step(right, "a", lambda held, now: leases.acquire(held, "a", now, HOUR_MS))
    assert mine is not None
    theirs = lease_step(ahead, "b", lambda held, now: leases.acquire(held, "b", now, HOUR_MS))
    assert theirs is not None
    assert theirs.fence == mine.fence + 1
    assert lease_step(right, "a", lambda held, now: leases.renew(held, "a", mine.fence, now, HOUR_MS)) is None
    assert lease_step(right, "a", lambda held, now: leases.release(held, "a", mine.fence)) is None
    assert lease_step(right, "a", lambda held, now: leases.acquire(held, "a", now, HOUR_MS)) is None
    for store in (right, ahead):
        store.engine.close()
    assert audit(path) == []


def test_a_clock_that_jumps_by_hours_changes_no_order_and_no_winner(path: Path) -> None:
    clocks = (JumpingClock(0, 5, -7, 2), JumpingClock(-3, 0, 11), JumpingClock(0))
    stores = [Store(SqliteEngine(path, version="0"), clock=clock, ids=CountingIds()) for clock in clocks]
    prepare(stores[0])
    workers = [Worker(store, f"w{number}", "1", seed=3) for number, store in enumerate(stores)]
    acks = [msgspec.convert(worker.run(number), dict) for number in range(1, 80) for worker in workers]
    events = every_event(stores[0])
    times = [event.at_ms for event in events]
    assert times != sorted(times), "the clocks did jump"
    for store in stores:
        store.engine.close()
    assert audit(path, acks) == []
