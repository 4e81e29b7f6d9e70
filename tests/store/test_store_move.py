"""Moving a store: everything arrives, in the order and under the positions it had; the old one is closed; nothing is
ever written over."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from psycopg import sql

from handrail.domain.work.lease import Lease
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ledger import Event
from handrail.store import store_move
from handrail.store.marks import MOVED
from handrail.store.migrations import LATEST
from handrail.store.open_engine import shown_address
from handrail.store.ports import LastingEngine, lasting
from handrail.store.seals import sealed
from handrail.store.store import Store
from handrail.store.store_copy import COPIED
from handrail.store.writes import KeyWrite, WriteSet
from tests.store.ground import VERSION, Ground, postgres_ground, sqlite_ground
from tests.store.records import found, lease, put, remove, repository, task, workflow

NewSchema = Callable[[], contextlib.AbstractContextManager[str]]
KEY = sealed(KeyWrite("tool", "key", "hash", b"\x00answer", 2_000_000_000_000, 1))


def filled(ground: Ground) -> None:
    put(ground.store, workflow(plan={"a": [1, None]}), task(), task("task_2", name="ü"))
    put(ground.store, repository())
    put(ground.store, lease())
    put(ground.store, task(status="failed"))
    remove(ground.store, task("task_2", name="ü"))
    ground.engine.commit(WriteSet((), (), KEY))


def everything(engine: LastingEngine) -> dict[str, list[Any]]:
    """All that lies there, positions and all."""
    with engine.still() as still:
        return {table.name: sorted(tuple(row) for row in still.rows.rows(table)) for table in COPIED}


def moved(source: Store, target: str, **how: Any) -> store_move.Moved:
    return store_move.move(lasting(source.engine), target, project=Path("/"), version=VERSION, **how)


def all_of(store: Store) -> list[Event]:
    return store.feed(limit=10_000)


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, tmp_path: Path, new_schema: NewSchema) -> Iterator[Ground]:
    """A store to be moved. Its schema is its own: nobody can use it afterwards."""
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(new_schema()) if request.param == "postgres" else str(tmp_path / "handrail.db")
        ground = ground_at(address)
        stack.callback(ground.close)
        yield ground


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path, new_schema: NewSchema) -> Iterator[str]:
    """An address where nothing is yet."""
    if request.param == "sqlite":
        yield str(tmp_path / "new.db")
        return
    with new_schema() as address:
        yield address


def ground_at(address: str) -> Ground:
    return postgres_ground(address) if "://" in address else sqlite_ground(Path(address))


@pytest.fixture
def opened(target: str) -> Iterator[Callable[[str], Ground]]:
    with contextlib.ExitStack() as stack:

        def open_ground(address: str) -> Ground:
            ground = ground_at(address)
            stack.callback(ground.close)
            return ground

        yield open_ground


def test_everything_arrives_as_it_was(old: Ground, target: str, opened: Callable[[str], Ground]) -> None:
    filled(old)
    before = everything(old.lasting)
    events = all_of(old.store)
    done = moved(old.store, target)
    new = opened(target)
    assert everything(new.lasting) == before
    assert all_of(new.store) == events
    assert (done.events, done.keys) == (len(events), 1)
    assert new.store.verify() == []
    with new.engine.reading() as reader:
        assert reader.key_answer("tool", "key", 1) == ("hash", KEY.response)


def test_followers_go_on_where_they_were(old: Ground, target: str, opened: Callable[[str], Ground]) -> None:
    filled(old)
    cursor = old.store.position()
    half = all_of(old.store)[1].position
    later = all_of(old.store)[2:]
    moved(old.store, target)
    new = opened(target).store
    assert new.position() == cursor
    assert new.feed(after=half) == later
    assert not new.wait(cursor, 0)
    put(new, workflow(name="after the move"))
    put(new, workflow("wf_9"))
    assert new.wait(cursor, 1)
    assert [event.stream for event in new.feed(after=cursor)] == ["wf_1", "wf_9"]
    positions = [event.position for event in all_of(new)]
    assert positions == sorted(set(positions))


def test_a_store_that_has_counted_far_is_followed_by_larger_positions(
    old: Ground, target: str, opened: Callable[[str], Ground]
) -> None:
    """Further than the engine it moves to would ever have come by itself."""
    filled(old)
    far = 2**50
    old.tamper("UPDATE counter SET position = position + ?", far)  # first, or an engine that looks between mends it
    old.tamper("UPDATE event SET position = position + ?", far)
    cursor = old.store.position()
    assert cursor > far
    moved(old.store, target)
    new = opened(target).store
    assert new.position() == cursor
    put(new, workflow(name="after the move"))
    assert [event.kind for event in new.feed(after=cursor)] == ["thing.put"]


def test_what_was_counted_without_events_is_not_counted_again(
    sqlite: Ground, target: str, opened: Callable[[str], Ground]
) -> None:
    filled(sqlite)
    sqlite.tamper("UPDATE counter SET position = position + ?", 2**50)
    cursor = sqlite.store.position()
    with pytest.raises(StoreUnusable, match="the counter stands at"):
        moved(sqlite.store, target)
    with sqlite.lasting.still() as still:
        opened(target).lasting.fill(still.rows)
    new = opened(target).store
    put(new, workflow(name="after the move"))
    assert [event.kind for event in new.feed(after=cursor)] == ["thing.put"]


def test_there_and_back_again_twice(tmp_path: Path, new_schema: NewSchema) -> None:
    """Positions only ever grow, whichever engine counts."""
    here = ground_at(str(tmp_path / "a.db"))
    filled(here)
    grounds = [here]
    with new_schema() as first, new_schema() as second:
        for number, place in enumerate([first, str(tmp_path / "b.db"), second, str(tmp_path / "c.db")]):
            before = all_of(here.store)
            moved(here.store, place)
            here = ground_at(place)
            put(here.store, workflow(name=f"stop {number}"))
            assert all_of(here.store)[:-1] == before
            assert here.store.verify() == []
            grounds.append(here)
        for ground in grounds:
            ground.close()


def test_the_old_one_refuses_whoever_still_has_it(old: Ground, target: str) -> None:
    filled(old)
    other = old.another()
    put(other, workflow("wf_2"))
    moved(old.store, target)
    shown = shown_address(target, Path("/"))
    for store in (old.store, other):
        with pytest.raises(StoreUnusable, match="has moved to") as refused:
            put(store, workflow(name="too late"))
        assert refused.value.details["moved_to"] == shown
        assert "config.toml" in refused.value.hint
        assert "HANDRAIL_DB" in refused.value.hint
        with pytest.raises(StoreUnusable, match="has moved to"):
            store.engine.renew("agent_1", 1, 1)
        with pytest.raises(StoreUnusable, match="has moved to"):
            store.engine.commit(WriteSet((), (), KEY._replace(key="another")))
    with pytest.raises(StoreUnusable, match="has moved to"):
        old.another()


def test_who_still_looks_at_the_old_one_is_told(old: Ground, target: str) -> None:
    filled(old)
    other = old.another()
    position = other.position()
    assert other.feed(limit=1)
    moved(old.store, target)
    for store in (old.store, other):
        looks: list[Callable[[], object]] = [
            partial(found, store, Workflow, "wf_1"),
            partial(store.feed, limit=1),
            store.position,
            partial(store.wait, position, 5),
            partial(store.wait, 0, 0),
        ]
        for look in looks:
            with pytest.raises(StoreUnusable, match="has moved to") as refused:
                look()
            assert refused.value.details["moved_to"] == shown_address(target, Path("/"))
    store_move.release(old.address, Path("/"))
    assert other.position() == position


def test_a_target_that_is_gone_again_is_no_place_to_move_to(
    sqlite: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(sqlite)
    target = tmp_path / "new.db"
    real = store_move._into_file

    def removed(*given: Any) -> None:
        real(*given)
        target.unlink()

    monkeypatch.setattr(store_move, "_into_file", removed)
    with pytest.raises(StoreUnusable, match="gone again"):
        moved(sqlite.store, str(target))
    put(sqlite.store, workflow(name="the old one goes on"))


def test_a_target_that_comes_up_meanwhile_is_left_alone(
    sqlite: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(sqlite)
    target = tmp_path / "new.db"

    def verified(*_: object) -> list[str]:
        target.write_text("theirs")
        return []

    monkeypatch.setattr(store_move, "problems_in", verified)
    with pytest.raises(StoreUnusable, match="there already"):
        moved(sqlite.store, str(target))
    assert target.read_text() == "theirs"
    put(sqlite.store, workflow(name="the old one goes on"))


def test_two_who_release_at_once_do_it_once(old: Ground, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(old)
    moved(old.store, target)
    real, both = store_move.found_at, threading.Barrier(2)

    def seen_by_both(db: str, project: Path) -> store_move.StoreFound:
        there = real(db, project)
        both.wait(20)
        return there

    monkeypatch.setattr(store_move, "found_at", seen_by_both)
    told: list[str] = []

    def release() -> None:
        try:
            store_move.release(old.address, Path("/"))
            told.append("released")
        except StoreUnusable as refusal:
            told.append(refusal.message.rpartition(" has ")[2])

    threads = [threading.Thread(target=release) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(told) == ["not moved", "released"]
    assert real(old.address, Path("/")) == (LATEST, None)
    put(old.another(), workflow(name="goes on"))


def test_a_store_that_moved_meanwhile_takes_no_backup(old: Ground, target: str, tmp_path: Path) -> None:
    filled(old)
    backup = tmp_path / "backup.db"
    old.lasting.backup(str(backup))
    other = old.another()
    moved(old.store, target)
    with pytest.raises(StoreUnusable, match="has moved to"):
        lasting(other.engine).restore(str(backup))
    assert store_move.found_at(old.address, Path("/")).moved_to == shown_address(target, Path("/"))


def test_a_store_does_not_move_onto_itself(old: Ground) -> None:
    """Refused at once, an empty one too: it would wait for its own locks."""
    for number in range(2):
        with pytest.raises(StoreUnusable, match="already"):
            moved(old.store, old.address)
        with pytest.raises(StoreUnusable, match="already"):
            store_move.check_target(old.lasting, old.address, project=Path("/"), version=VERSION)
        put(old.store, workflow(name=f"goes on {number}"))


def test_a_look_at_a_target_makes_nothing_there(old: Ground, target: str) -> None:
    store_move.check_target(old.lasting, target, project=Path("/"), version=VERSION)
    assert store_move.found_at(target, Path("/")) == (0, None)


@pytest.mark.parametrize("table", ["stream", "idempotency", "lease"])
def test_nobody_begins_a_write_while_a_server_is_copied(postgres: Ground, table: str) -> None:
    """A commit begins with a stream or a key, a renewal with a lease."""
    begun = sql.SQL("LOCK TABLE {} IN ROW EXCLUSIVE MODE NOWAIT").format(sql.Identifier(table))
    with psycopg.connect(postgres.address) as writer, postgres.lasting.still():
        with pytest.raises(psycopg.errors.LockNotAvailable):
            writer.execute(begun)
        writer.rollback()


def test_a_released_store_is_as_it_was(old: Ground, target: str) -> None:
    filled(old)
    before = everything(old.lasting)
    moved(old.store, target)
    found_there = store_move.release(old.address, Path("/"))
    assert found_there.moved_to == shown_address(target, Path("/"))
    assert store_move.found_at(old.address, Path("/")) == (LATEST, None)
    again = old.another()
    assert everything(lasting(again.engine)) == before
    put(again, workflow(name="goes on"))
    assert again.verify() == []
    with pytest.raises(StoreUnusable, match="has not moved"):
        store_move.release(old.address, Path("/"))


def test_what_is_not_ours_is_not_released(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.db"
    with contextlib.closing(apsw.Connection(str(theirs))) as connection:
        connection.execute(f"CREATE TABLE meta (key, value); PRAGMA user_version = {MOVED + 1}")
    before = theirs.read_bytes()
    with pytest.raises(StoreUnusable, match="something else"):
        store_move.release(str(theirs), Path("/"))
    assert theirs.read_bytes() == before


def test_a_copy_that_is_kept_leaves_the_old_one_usable(old: Ground, target: str) -> None:
    filled(old)
    moved(old.store, target, keep=True)
    put(old.store, workflow(name="still here"))
    assert found(old.store, Workflow, "wf_1") == workflow(name="still here")


def test_nothing_is_written_over(old: Ground, target: str, opened: Callable[[str], Ground]) -> None:
    filled(old)
    taken = opened(target)
    put(taken.store, workflow("wf_theirs"))
    before = everything(taken.lasting)
    with pytest.raises(StoreUnusable, match="already"):
        moved(old.store, target)
    assert everything(taken.lasting) == before
    put(old.store, workflow(name="and the old one goes on"))


def test_a_store_that_is_not_sound_stays_where_it_is(old: Ground, target: str) -> None:
    """It is looked through before anything is made at the other place."""
    filled(old)
    old.tamper("UPDATE workflow SET name = 'forged'")
    with pytest.raises(StoreUnusable, match="is not sound: workflow wf_1: ledger and table disagree about name"):
        moved(old.store, target)
    assert store_move.found_at(target, Path("/")) == (0, None)
    assert "://" in target or not Path(target).exists()


def test_a_copy_that_is_not_true_changes_nothing(
    old: Ground, target: str, opened: Callable[[str], Ground], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(old)
    old.tamper("UPDATE workflow SET name = 'forged'")
    monkeypatch.setattr(store_move, "check_sound", lambda *_: None)
    with pytest.raises(StoreUnusable, match="no true copy: workflow wf_1"):
        moved(old.store, target)
    old.tamper("UPDATE workflow SET name = 'name'")
    if "://" in target:
        assert opened(target).lasting.is_empty()
    else:
        assert not Path(target).exists()
        assert not list(Path(target).parent.glob("*part*"))
    put(old.store, repository("/elsewhere"))


def test_how_far_it_is_can_be_heard(old: Ground, target: str) -> None:
    filled(old)
    for number in range(600):
        put(old.store, workflow(name=f"name {number}"), lease(fence=number))
    heard: list[tuple[str, int, int]] = []
    moved(old.store, target, tell=lambda *said: heard.append(said))
    assert {what for what, _, _ in heard} <= {"copying", "verifying"}
    assert all(0 <= done <= total for _, done, total in heard)
    if old.kind == "postgres" or "://" in target:
        assert ("copying", 0) in {said[:2] for said in heard}


# -- upkeep -----------------------------------------------------------------------------------------------------------


def test_vacuum_forgets_keys_whose_time_is_over(old: Ground) -> None:
    filled(old)
    for number in range(20):
        old.engine.commit(WriteSet((), (), KEY._replace(key=f"old {number}", expires_ms=10)))
    for full in (False, True):
        done = old.lasting.vacuum(11, full=full)
        assert done.keys == (0 if full else 20)
        assert done.before > 0
        assert done.after > 0
    with old.engine.reading() as reader:
        assert reader.key_answer("tool", "key", 1) is not None
        assert reader.key_answer("tool", "old 1", 1) is None
    assert old.store.verify() == []


def test_a_machine_whose_clock_is_ahead_forgets_no_key_of_a_server(postgres: Ground) -> None:
    in_an_hour_ms = time.time_ns() // 1_000_000 + 3_600_000
    postgres.engine.commit(WriteSet((), (), KEY._replace(expires_ms=in_an_hour_ms)))
    assert postgres.lasting.vacuum(in_an_hour_ms + 1).keys == 0
    assert postgres.lasting.vacuum(in_an_hour_ms - 7_200_000).keys == 0


def test_a_lease_from_the_future_ends_like_any_other_after_a_move(sqlite: Ground, postgres: Ground) -> None:
    """The file's own lease clock may be ahead of the server's."""
    far_ms = time.time_ns() // 1_000_000 + 10 * 365 * 86_400_000
    put(sqlite.store, lease("own", stream="s1", holder="anna", fence=1, expires_ms=far_ms + 90_000, renewed_ms=far_ms))
    with sqlite.lasting.still() as still:
        postgres.lasting.fill(still.rows)
    moved = found(postgres.store, Lease, "own")
    assert moved is not None
    assert abs(moved.renewed_ms - time.time_ns() // 1_000_000) < 60_000
    assert moved.expires_ms - moved.renewed_ms == 90_000


def test_a_store_that_has_moved_is_not_vacuumed(old: Ground, target: str) -> None:
    moved(old.store, target)
    with pytest.raises(StoreUnusable, match="has moved to"):
        old.lasting.vacuum(1)


def test_sizes_tell_of_what_there_is(old: Ground) -> None:
    filled(old)
    sizes = {size.what: size for size in old.lasting.sizes()}
    assert (sizes["events"].rows, sizes["keys"].rows, sizes["task"].rows) == (5, 1, 1)
    assert "gate" not in sizes
    assert all(size.bytes is None or size.bytes >= 0 for size in sizes.values())
    assert (sizes["events"].bytes or 0) > 0
