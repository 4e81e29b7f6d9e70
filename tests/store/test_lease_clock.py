"""By which clock leases are judged, on every store: the store's own, which nobody on the machine can set."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from handrail.hooks import open_tasks
from handrail.kernel.ids import CountingIds
from handrail.store.lease_clock import LeaseClock, anchor_of, machine_time, off_remark, set_remark
from handrail.store.memory import MemoryEngine
from handrail.store.ports import Engine
from handrail.store.postgres import PostgresEngine
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from tests.store.ground import VERSION
from tests.store.machines import KEY, MINUTE_MS, Machine, left_ms, seen_by, take

SHORT_MS = 400


class Site:
    """A store that several processes share, on machines whose clocks are set."""

    def __init__(self, machine: Machine, opened: Callable[[], Engine], pass_by: Callable[[int], object]) -> None:
        self.machine = machine
        self._opened = opened
        self.pass_by = pass_by
        """Lets time pass."""
        self._engines: list[Engine] = []

    def process(self) -> Store:
        engine = self._opened()
        self._engines.append(engine)
        return Store(engine, ids=CountingIds())

    def close(self) -> None:
        for engine in self._engines:
            engine.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    machine = Machine()
    with contextlib.ExitStack() as stack:
        if request.param == "postgres":
            address = stack.enter_context(request.getfixturevalue("new_schema")())
            real = time.time_ns
            before_ms = machine.wall_ms
            monkeypatch.setattr(time, "time_ns", lambda: real() + (machine.wall_ms - before_ms) * 1_000_000)
            pause = threading.Event()
            made = Site(
                machine, lambda: PostgresEngine(address, version=VERSION), lambda ms: bool(pause.wait(ms / 1000))
            )
        elif request.param == "sqlite":
            file = tmp_path / "handrail.db"
            made = Site(machine, lambda: SqliteEngine(file, version=VERSION, time=machine.read), machine.advance)
        else:
            engine = MemoryEngine(machine.read)
            made = Site(machine, lambda: engine, machine.advance)
        stack.callback(made.close)
        yield made


@pytest.mark.parametrize("by_ms", [5 * MINUTE_MS, -60 * MINUTE_MS], ids=["ahead", "back"])
def test_a_clock_that_is_set_takes_no_live_claim(site: Site, by_ms: int) -> None:
    one, other = site.process(), site.process()
    assert take(one, "anna", MINUTE_MS)
    before = left_ms(one)
    site.machine.set_clock(by_ms)
    for store in (one, other, site.process()):
        assert seen_by(store) == "anna"
        assert not take(store, "ben", MINUTE_MS)
        assert before - 20_000 < left_ms(store) <= before, "it is shown in the terms of whoever looks"


@pytest.mark.parametrize("by_ms", [5 * MINUTE_MS, -60 * MINUTE_MS], ids=["ahead", "back"])
def test_a_clock_that_is_set_lets_no_claim_last_longer(site: Site, by_ms: int) -> None:
    one, other = site.process(), site.process()
    assert take(one, "anna", SHORT_MS)
    site.machine.set_clock(by_ms)
    site.pass_by(SHORT_MS + 1)
    assert seen_by(other) is None
    assert take(other, "ben", MINUTE_MS)
    assert seen_by(one) == "ben"


def test_a_renewal_counts_from_the_same_clock(site: Site) -> None:
    one, other = site.process(), site.process()
    assert take(one, "anna", MINUTE_MS)
    site.machine.set_clock(5 * MINUTE_MS)
    other.renew("anna", 2 * MINUTE_MS)
    assert MINUTE_MS < left_ms(one) <= 2 * MINUTE_MS
    site.machine.set_clock(-10 * MINUTE_MS)
    assert MINUTE_MS < left_ms(other) <= 2 * MINUTE_MS


def test_what_has_lapsed_is_not_renewed(site: Site) -> None:
    one = site.process()
    assert take(one, "anna", SHORT_MS)
    site.pass_by(SHORT_MS + 1)
    site.machine.set_clock(-60 * MINUTE_MS)
    one.renew("anna", MINUTE_MS)
    assert seen_by(one) is None


def test_a_clock_that_is_off_is_told(site: Site) -> None:
    store = site.process()
    assert take(store, "anna", MINUTE_MS)
    assert store.clock_remark() is None
    site.machine.set_clock(5 * MINUTE_MS)
    seen_by(store)
    assert "5 minutes ahead" in str(store.clock_remark())
    site.machine.set_clock(-5 * MINUTE_MS)
    seen_by(store)
    assert store.clock_remark() is None


def test_the_ledger_agrees_with_what_was_shifted(site: Site) -> None:
    store = site.process()
    assert take(store, "anna", SHORT_MS)
    site.machine.set_clock(5 * MINUTE_MS)
    site.pass_by(SHORT_MS + 1)
    assert take(store, "ben", MINUTE_MS)
    assert store.verify() == []


# -- a file's own -----------------------------------------------------------------------------------------------------


@pytest.fixture
def machine() -> Machine:
    return Machine()


def on_file(path: Path, machine: Machine) -> Store:
    return Store(SqliteEngine(path, version=VERSION, time=machine.read), ids=CountingIds())


def kept(path: Path) -> str | None:
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        found = connection.execute("SELECT value FROM meta WHERE key = 'lease_clock'").get
    return None if found is None else str(found)


def test_the_first_write_of_a_start_keeps_the_anchor_and_reading_keeps_none(tmp_path: Path, machine: Machine) -> None:
    store = on_file(tmp_path / "a.db", machine)
    assert seen_by(store) is None
    assert kept(tmp_path / "a.db") is None
    assert take(store, "anna", MINUTE_MS)
    first = kept(tmp_path / "a.db")
    machine.set_clock(5 * MINUTE_MS)
    machine.advance(2 * MINUTE_MS)
    assert take(store, "ben", MINUTE_MS)
    assert kept(tmp_path / "a.db") == first
    machine.start_again(machine.wall_ms)
    assert take(store, "ben", MINUTE_MS)
    assert str(kept(tmp_path / "a.db")).startswith("start-2 ")


def test_after_another_start_the_machines_clock_decides_again(tmp_path: Path, machine: Machine) -> None:
    store = on_file(tmp_path / "a.db", machine)
    assert take(store, "anna", MINUTE_MS)
    machine.start_again(machine.wall_ms + MINUTE_MS // 2)
    assert seen_by(store) == "anna"
    machine.start_again(machine.wall_ms + MINUTE_MS // 2)
    assert seen_by(store) is None


def test_a_start_with_a_clock_of_long_ago_makes_no_lease_immortal(tmp_path: Path, machine: Machine) -> None:
    store = on_file(tmp_path / "a.db", machine)
    assert take(store, "anna", MINUTE_MS)
    machine.start_again(1_000)
    assert seen_by(store) == "anna"
    assert take(store, "anna", MINUTE_MS)
    machine.advance(MINUTE_MS + 1)
    assert seen_by(store) is None
    assert take(store, "ben", MINUTE_MS)
    assert seen_by(on_file(tmp_path / "a.db", machine)) == "ben"


def test_without_a_start_to_count_from_the_machines_clock_decides(tmp_path: Path, machine: Machine) -> None:
    clock = LeaseClock(lambda: machine.read()._replace(boot=""))
    at = clock.read()
    assert clock.moment(at, "start-1 5 5", lambda: 0) == (at.wall_ms, at.wall_ms)
    assert not clock.is_due


@pytest.mark.parametrize("text", [None, "", "x", "a b c", "start-1 1", f"start-1 {'9' * 5000} 1", "start-1 1 2 3"])
def test_an_anchor_that_cannot_be_read_is_none(text: str | None) -> None:
    assert anchor_of(text) is None


def test_a_difference_of_seconds_is_not_worth_a_word() -> None:
    assert set_remark(9_999) is None
    assert off_remark(-9_999) is None
    assert "back" in str(set_remark(-3_600_000))
    assert "behind" in str(off_remark(-3_600_000))


def test_a_hook_judges_leases_by_the_same_clock(tmp_path: Path) -> None:
    file = tmp_path / "handrail.db"
    store = Store(SqliteEngine(file, version=VERSION), ids=CountingIds())
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        assert open_tasks.lease_time(connection, 7) == 7, "nothing was ever kept"
    assert take(store, "anna", MINUTE_MS)
    with store.engine.reading() as reader:
        moment = reader.moment()
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        told = open_tasks.lease_time(connection, machine_time().wall_ms + 5 * MINUTE_MS)
        assert 0 <= told - moment.lease_ms < 10_000
        connection.execute("UPDATE meta SET value = 'another-start 1 1' WHERE key = 'lease_clock'")
        renewed = int(connection.execute("SELECT renewed_ms FROM lease WHERE id = ?", (KEY,)).get)
        assert open_tasks.lease_time(connection, 7) == renewed
