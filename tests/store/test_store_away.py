"""A store that is away and comes back: who waits goes on waiting, who writes is told what became of it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from handrail.domain.work.lease import Lease
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import StoreAway, StoreUnusable
from handrail.kernel.ids import CountingIds
from handrail.store import postgres_outcomes
from handrail.store import store as module
from handrail.store.memory import MemoryEngine
from handrail.store.postgres import PostgresEngine
from handrail.store.store import Store
from tests.process.crew_cut import THROWN_OFF, cutting_wire_to
from tests.store.ground import VERSION, Ground, sqlite_ground
from tests.store.records import ANNA, found, lease, put
from tests.store.test_postgres_lost import WAITING_FOR, count_one


class Comes(MemoryEngine):
    """A store that is away for so many looks."""

    def __init__(self, away: int) -> None:
        super().__init__()
        self.looks = itertools.count()
        self._away = away

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        if next(self.looks) < self._away:
            raise StoreAway("away")
        return super().wait(position, timeout_s, cancelled)


def test_who_waits_for_news_waits_for_the_store_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACK_S", 0.001)
    engine = Comes(3)
    store = Store(engine, clock=FixedClock(), ids=CountingIds())
    put(store, lease())
    assert store.wait(0, 20) is True
    assert next(engine.looks) == 4


def test_who_has_waited_long_enough_is_told_that_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACK_S", 0.001)
    store = Store(Comes(1_000_000), clock=FixedClock(), ids=CountingIds())
    with pytest.raises(StoreAway):
        store.wait(0, 0.01)
    with pytest.raises(StoreAway):
        store.wait(0, 20, lambda: True)


def test_a_write_that_was_left_unknown_is_settled_before_anybody_looks_again(
    postgres: Ground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server still has the statement in hand. Whoever looks and finds nothing must be able to rely on that."""
    monkeypatch.setattr(postgres_outcomes, "RESOLVE_S", 0.1)
    put(postgres.store, lease(fence=0))
    told: list[StoreAway] = []

    def write() -> None:
        try:
            store.run(ANNA, count_one)
        except StoreAway as away:
            told.append(away)

    with cutting_wire_to(postgres.address) as wire:
        engine = PostgresEngine(wire.address, version=VERSION)
        store = Store(engine, clock=postgres.clock, ids=postgres.ids)
        with psycopg.connect(postgres.address) as blocker, psycopg.connect(postgres.address, autocommit=True) as watch:
            blocker.execute("SELECT 1 FROM stream FOR UPDATE")
            writer = threading.Thread(target=write)
            writer.start()
            while not watch.execute(WAITING_FOR, (blocker.info.backend_pid,)).fetchall():
                assert writer.is_alive()
            wire.cut(THROWN_OFF)
            writer.join(30)
            (away,) = told
            assert away.details == {"outcome": "unknown"}
            wire.rejoin()
            assert found(store, Lease, "lease_1") == lease(fence=0)
            assert watch.execute(WAITING_FOR, (blocker.info.backend_pid,)).fetchall() == []
            blocker.rollback()
        assert found(store, Lease, "lease_1") == lease(fence=0)
        assert "(wf_1 2) was not kept" in capsys.readouterr().err
        store.run(ANNA, count_one)
        assert found(store, Lease, "lease_1") == lease(fence=1)
        engine.close()


def test_a_schema_that_may_not_be_used_any_more_is_away_and_one_that_never_could_is_not(postgres: Ground) -> None:
    put(postgres.store, lease())
    with psycopg.connect(postgres.address, autocommit=True) as admin:
        (schema,) = admin.execute("SELECT current_schema()").fetchone() or ("",)
        admin.execute(f'ALTER SCHEMA "{schema}" RENAME TO "{schema}_gone"')
        try:
            with pytest.raises(StoreAway) as refused:
                found(postgres.store, Lease, "lease_1")
            assert refused.value.details == {"outcome": "nothing"}
            postgres.engine._connections.forget_idle()  # type: ignore[attr-defined]
            with pytest.raises(StoreAway):
                put(postgres.store, lease(fence=1))
            with pytest.raises(StoreUnusable):
                PostgresEngine(postgres.address, version=VERSION)
        finally:
            admin.execute(f'ALTER SCHEMA "{schema}_gone" RENAME TO "{schema}"')
    assert found(postgres.store, Lease, "lease_1") == lease()


def test_a_file_that_cannot_be_used_at_first_is_unusable_and_later_away(sqlite: Ground, tmp_path: Path) -> None:
    """A folder stands where the gate should be."""
    gate = Path(f"{sqlite.address}.gate")
    gate.unlink(missing_ok=True)
    store = sqlite.another()
    gate.mkdir()
    with pytest.raises(StoreAway) as refused:
        put(store, lease())
    assert refused.value.details == {"outcome": "nothing"}
    gate.rmdir()
    put(store, lease())
    assert found(store, Lease, "lease_1") == lease()
    (tmp_path / "new.db.gate").mkdir()
    with pytest.raises(StoreUnusable):
        sqlite_ground(tmp_path / "new.db")
