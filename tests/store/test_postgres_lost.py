"""Connections and servers that go away: reading goes on, nothing is written twice, nothing acknowledged is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from handrail.domain.work.lease import Lease
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import StoreAway, StoreRefused
from handrail.store import postgres_outcomes as module
from handrail.store.postgres import PostgresEngine
from handrail.store.queries import Query
from handrail.store.store import Store
from handrail.store.unit import Unit
from handrail.store.writes import Conflict, KeyWrite, WriteSet
from tests.store.ground import VERSION, Ground
from tests.store.records import ANNA, found, happened, lease, put, remove, task, workflow
from tests.store.server import restarted, running, schema_of_its_own
from tests.store.wire import ANSWER_LOST, QUESTION_LOST, Wire, wire_to

WAITING_FOR = "SELECT pid FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"


def end_all(ground: Ground) -> None:
    """Ends every session that stores of this ground have open."""
    with psycopg.connect(ground.address) as connection:
        connection.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) AS pid", (sessions(ground),))


def sessions(ground: Ground) -> list[int]:
    """The server processes of the connections that the ground's stores keep."""
    engine = ground.engine
    assert isinstance(engine, PostgresEngine)
    return [session.pid for session in engine._connections._idle]


@pytest.fixture
def wire(postgres: Ground) -> Iterator[Wire]:
    with wire_to(postgres.address) as between:
        yield between


@pytest.fixture
def wired(postgres: Ground, wire: Wire) -> Iterator[Store]:
    """A store that reaches its server over a wire."""
    engine = PostgresEngine(wire.address, version=VERSION)
    yield Store(engine, clock=postgres.clock, ids=postgres.ids)
    engine.close()


# -- reading ----------------------------------------------------------------------------------------------------------


def test_a_look_over_a_connection_that_has_gone_is_taken_over_a_new_one(postgres: Ground) -> None:
    put(postgres.store, workflow())
    assert sessions(postgres)
    end_all(postgres)
    assert found(postgres.store, Workflow, "wf_1") == workflow()


def test_waiting_survives_the_loss_of_its_connections(postgres: Ground) -> None:
    put(postgres.store, workflow())
    position = postgres.store.feed()[-1].position
    woken: list[bool] = []
    waiter = threading.Thread(target=lambda: woken.append(postgres.store.wait(position, 60)))
    waiter.start()
    with psycopg.connect(postgres.address) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE query = 'LISTEN \"handrail_' || (current_schema()::regnamespace::oid)::text || '\"'"
        )
    end_all(postgres)
    put(postgres.another(), workflow(name="news"))
    waiter.join(60)
    assert woken == [True]


def test_a_look_that_is_cut_in_the_middle_makes_its_unit_run_again(wired: Store, wire: Wire) -> None:
    put(wired, workflow(), task())
    runs = 0

    def work(unit: Unit) -> int:
        nonlocal runs
        runs += 1
        unit.get(Workflow, "wf_1")
        if runs == 1:
            wire.cut_next(QUESTION_LOST)
        return unit.count(Workflow, Query())

    assert wired.run(ANNA, work) == 1
    assert (runs, wire.cuts) == (2, 1)


def test_a_look_for_its_own_sake_that_is_cut_in_the_middle_is_a_refusal(
    wired: Store, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.store.verification.PAGE", 1)
    put(wired, workflow())
    with pytest.raises(StoreAway, match="lost in the middle"):
        wired.verify(lambda _: wire.cut_next(QUESTION_LOST))
    assert wired.verify() == []


# -- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [QUESTION_LOST, ANSWER_LOST])
def test_a_commit_whose_connection_is_lost_is_done_once(wired: Store, wire: Wire, lost: str) -> None:
    """Ids are new in every run of a unit: were it run again after it had been done, there would be two."""
    put(wired, workflow())
    runs = 0

    def work(unit: Unit) -> str:
        nonlocal runs
        runs += 1
        known = unit.get(Workflow, "wf_1")
        assert known is not None
        made = workflow(unit.new_id("new"))
        unit.record("workflow.created", made)
        unit.record("workflow.counted", workflow(updated_at=known.updated_at + 1))
        return made.id

    with wired.engine.reading():
        pass
    original = wired.engine.commit

    def commit(writes: WriteSet) -> int:
        wire.cut_next(lost)
        wired.engine.commit = original  # type: ignore[method-assign]
        return original(writes)

    wired.engine.commit = commit  # type: ignore[method-assign]
    key = wired.run(ANNA, work)
    assert (runs, wire.cuts) == (2 if lost == QUESTION_LOST else 1, 1)
    assert found(wired, Workflow, "wf_1").updated_at == 2
    assert [known.id for known in wired.run(ANNA, lambda unit: unit.select(Workflow, Query()))] == [key, "wf_1"]
    assert wired.verify() == []


@pytest.mark.parametrize("lost", [QUESTION_LOST, ANSWER_LOST])
def test_a_key_whose_connection_is_lost_is_kept_once(wired: Store, wire: Wire, lost: str) -> None:
    writes = WriteSet((), (), KeyWrite("tool", "key", "hash", b"answer", 100, 1))
    put(wired, workflow())
    wire.cut_next(lost)
    if lost == QUESTION_LOST:
        with pytest.raises(Conflict):
            wired.engine.commit(writes)
    wired.engine.commit(writes)
    with pytest.raises(Conflict):
        wired.engine.commit(writes)


def test_a_removal_whose_connection_is_lost_is_done_once(wired: Store, wire: Wire) -> None:
    """Several statements in one transaction: it is lost with the first of them, or kept as a whole."""
    put(wired, workflow(), task())
    wire.cut_next(QUESTION_LOST)
    remove(wired, task())
    assert wire.cuts == 1
    assert len(wired.events("wf_1")) == 2
    assert wired.verify() == []


def count_one(unit: Unit) -> None:
    known = unit.get(Lease, "lease_1")
    assert known is not None
    unit.record("lease.counted", lease(fence=known.fence + 1))


@pytest.mark.parametrize("how", ["the server process ends", "the connection is cut"])
def test_a_commit_that_was_lost_while_it_waited_is_done_once(
    postgres: Ground, wired: Store, wire: Wire, how: str
) -> None:
    """The server may still have the statement in hand, and would carry it out when nobody counts on it any more."""
    put(wired, lease(fence=0))
    with psycopg.connect(postgres.address) as blocker, psycopg.connect(postgres.address, autocommit=True) as watch:
        blocker.execute("SELECT 1 FROM stream FOR UPDATE")
        writer = threading.Thread(target=wired.run, args=(ANNA, count_one))
        writer.start()
        blocked: list[tuple[int]] = []
        while not blocked:
            blocked = watch.execute(WAITING_FOR, (blocker.info.backend_pid,)).fetchall()
        if how == "the server process ends":
            watch.execute("SELECT pg_terminate_backend(%s, 5000)", blocked[0])
        else:
            wire.drop()
        waiting = blocked
        while blocked[0] in waiting:
            assert len(waiting) == 1, "a second try waits beside the first, which may still be carried out"
            waiting = watch.execute(WAITING_FOR, (blocker.info.backend_pid,)).fetchall()
        blocker.rollback()
        writer.join(30)
    assert found(postgres.store, Lease, "lease_1") == lease(fence=1)
    assert len(postgres.store.events("wf_1")) == 2
    assert postgres.store.verify() == []


def test_a_commit_whose_outcome_cannot_be_found_out_says_so(
    wired: Store, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESOLVE_S", 0.1)
    put(wired, workflow())
    with wired.engine.reading() as reader:
        head = reader.head("wf_1")
    wire.cut_next(ANSWER_LOST, for_good=True)
    with pytest.raises(StoreAway, match="not known") as refused:
        wired.engine.commit(happened("wf_1", head, "who knows"))
    assert refused.value.details == {"outcome": "unknown"}
    assert "idempotency key" in refused.value.hint
    with pytest.raises(StoreAway, match="does not answer"):
        found(wired, Workflow, "wf_1")


def test_a_turn_alone_survives_the_loss_of_its_connection(wired: Store, wire: Wire) -> None:
    put(wired, lease(fence=0))
    with wired.engine.reading() as reader:
        writes = happened("wf_1", reader.head("wf_1"), "once")
    with wired.engine.alone():
        wire.cut_next(QUESTION_LOST)
        with pytest.raises(Conflict, match="lost"):
            wired.engine.commit(writes)
    wired.engine.commit(writes)
    assert [event.kind for event in wired.events("wf_1")] == ["thing.put", "once"]
    assert wired.verify() == []


class Load:
    """Threads that write a new workflow each time, and count in what they were told."""

    def __init__(self, ground: Ground, crew: int) -> None:
        self.acknowledged: list[str] = []
        self.refusals: list[tuple[str, StoreRefused]] = []
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(ground.another(), n)) for n in range(crew)]
        for thread in self._threads:
            thread.start()

    def _write(self, store: Store, number: int) -> None:
        count = 0
        while not self._enough.is_set():
            count += 1
            name = f"wf_{number}_{count}"
            try:
                put(store, workflow(name))
                self.acknowledged.append(name)
            except StoreRefused as refused:
                self.refusals.append((name, refused))

    def go_on(self, writes: int) -> None:
        """Until so many more are written."""
        before = len(self.acknowledged)
        while len(self.acknowledged) < before + writes:
            assert all(thread.is_alive() for thread in self._threads), "a writer met an error that is no refusal"
            self._enough.wait(0.01)

    def end(self) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()


def restart_under_load(times: int) -> None:
    """The server is killed and started again while threads write: who asks meanwhile is told so, what was acknowledged
    is there once, and what was refused is not there unless the refusal said that nobody knows."""
    with running(of_its_own=True) as server, schema_of_its_own(server, "restarted") as address:
        ground = Ground("postgres", address, lambda: PostgresEngine(address, version=VERSION))
        load = Load(ground, 4)

        def nobody_is_there() -> None:
            with pytest.raises(StoreAway, match="does not answer") as refused:
                found(ground.store, Workflow, "wf_0_1")
            assert "start the server" in refused.value.hint

        try:
            for _ in range(times):
                load.go_on(20)
                restarted(server, nobody_is_there)
            load.go_on(40)
        finally:
            load.end()
        feed = [event.stream for event in ground.store.feed(limit=1_000_000)]
        kept = set(feed)
        assert len(feed) == len(kept)
        assert set(load.acknowledged) <= kept
        unknown = {name for name, refused in load.refusals if refused.details.get("outcome") == "unknown"}
        assert kept - set(load.acknowledged) <= unknown
        assert all(refused.hint for _, refused in load.refusals)
        assert ground.store.verify() == []
        ground.close()


def test_a_server_restarted_under_load_loses_nothing_and_doubles_nothing() -> None:
    restart_under_load(1)


@pytest.mark.torture
def test_a_server_restarted_thirty_times_under_load_loses_nothing_and_doubles_nothing() -> None:
    restart_under_load(30)
