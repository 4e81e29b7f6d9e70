"""What PostgreSQL has of its own: positions that followers can trust, settings, hints, refusals, backups."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from handrail.domain.registry.tail import Bus
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import StoreAway, StoreBusy, StoreRefused, StoreUnusable
from handrail.kernel.ledger import Event, NewEvent, Only
from handrail.store import postgres as module
from handrail.store.migrations import LATEST
from handrail.store.postgres import PostgresEngine
from handrail.store.postgres_writes import FEW, statement
from handrail.store.seals import sealed
from handrail.store.store import Store
from handrail.store.unit import Unit
from handrail.store.writes import NEW_STREAM, Conflict, KeyWrite, WriteSet, chained
from tests.store.ground import VERSION, Ground, postgres_ground, sqlite_ground
from tests.store.records import ANNA, found, lease, put, remove, repository, task, workflow

NewSchema = Callable[[], contextlib.AbstractContextManager[str]]


def with_option(address: str, option: str) -> str:
    """The address with one more setting for its sessions."""
    return f"{address}%20-c{option}"


def event_in(stream: str, kind: str = "thing.happened") -> WriteSet:
    return WriteSet((chained(stream, NEW_STREAM, [NewEvent(kind, "anna", "mcp", 5, {}, ())]),), ())


# -- positions --------------------------------------------------------------------------------------------------------


def test_nothing_appears_behind_a_follower(postgres: Ground) -> None:
    """A commit that began first and ends last: until then, what came after it is not in the feed."""
    with psycopg.connect(postgres.address) as slow:
        slow.execute(*statement(event_in("slow")))
        fast = postgres.another()
        fast.engine.commit(event_in("fast"))
        assert postgres.store.feed() == []
        assert not postgres.store.wait(0, 0)
        assert [event.stream for event in fast.events("fast")] == ["fast"], "a stream waits for nobody"
        slow.commit()
    seen: list[Event] = []
    while len(seen) < 2:  # another test's transaction that just begins may be anybody's, for a moment
        after = seen[-1].position if seen else 0
        assert postgres.store.wait(after, 30)
        seen += postgres.store.feed(after=after)
    assert [event.stream for event in seen] == ["slow", "fast"]


def test_the_newest_of_a_stream_are_as_new_as_its_rows(postgres: Ground) -> None:
    """What a row shows its stream explains, in the same view, however slow another writer is."""
    with psycopg.connect(postgres.address) as slow:
        slow.execute(*statement(event_in("slow")))
        put(postgres.store, workflow())
        put(postgres.another(), workflow(name="renamed"), kind="workflow.renamed")

        def look(unit: Unit) -> tuple[str, list[int]]:
            row = unit.get(Workflow, "wf_1")
            assert row is not None
            assert unit.newest(10, Only(kinds=("workflow.",))) == [], "across streams it waits"
            return row.name, [event.seq for event in unit.newest(10, Only(streams=("wf_1",), kinds=("workflow.",)))]

        assert postgres.store.run(ANNA, look) == ("renamed", [2])
        slow.rollback()


def test_a_bus_of_a_stream_ends_where_all_filters_agree(postgres: Ground) -> None:
    """Whoever goes on after what was shown would miss what a slow writer brings."""
    for _ in range(3):
        put(postgres.store, workflow())
    with psycopg.connect(postgres.address) as slow:
        slow.execute(*statement(event_in("slow")))
        for _ in range(2):
            put(postgres.another(), workflow())

        def newest(unit: Unit, limit: int) -> list[int]:
            return [event.seq for event in Bus(unit, (Only(streams=("wf_1",)), Only(actors=("ben",)))).newest(limit)]

        assert postgres.store.run(ANNA, lambda unit: newest(unit, 2)) == [2, 3]
        assert postgres.store.run(ANNA, lambda unit: newest(unit, 10)) == [1, 2, 3]
        slow.rollback()
    assert postgres.store.run(ANNA, lambda unit: newest(unit, 2)) == [4, 5]


def test_a_feed_does_not_wait_for_transactions_that_write_no_events(postgres: Ground) -> None:
    with psycopg.connect(postgres.address) as foreign:
        foreign.execute("CREATE TABLE theirs (id bigint)")
        foreign.execute("INSERT INTO repository (id, path, name, created_at, stream) VALUES ('x', '/x', 'x', 1, 'x')")
        other = postgres.another()
        put(other, workflow())
        assert [event.stream for event in postgres.store.feed()] == ["wf_1"]
        assert [event.stream for event in postgres.store.newest(1)] == ["wf_1"]
        assert postgres.store.wait(0, 0)
        with postgres.engine.reading() as reader:
            assert reader.position() == postgres.store.feed()[-1].position
        foreign.rollback()


def test_a_follower_sees_every_event_of_eight_writers_once_and_in_order(postgres: Ground) -> None:
    writers, each = 8, 40
    seen: list[Event] = []

    def follow(store: Store) -> None:
        after = 0
        while len(seen) < writers * each and store.wait(after, 30):
            page = store.feed(after=after, limit=7)
            seen.extend(page)
            after = page[-1].position

    def write(number: int) -> None:
        store = Store(PostgresEngine(postgres.address, version=VERSION), clock=postgres.clock, ids=postgres.ids)
        for count in range(each):
            put(store, lease(f"lease_{number}", stream=f"wf_{number % 5}", fence=count), kind=f"{number}.{count}")
        store.engine.close()

    follower = threading.Thread(target=follow, args=(postgres.another(),))
    crew = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    follower.start()
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    follower.join()
    assert sorted(event.kind for event in seen) == sorted(
        f"{number}.{count}" for number in range(writers) for count in range(each)
    )
    positions = [event.position for event in seen]
    assert positions == sorted(set(positions))
    assert seen == postgres.store.feed(limit=writers * each)
    for stream in range(5):
        numbers = [event.seq for event in seen if event.stream == f"wf_{stream}"]
        assert numbers == list(range(1, len(numbers) + 1))
    assert postgres.store.verify() == []


def test_commits_to_different_streams_do_not_wait_for_each_other(postgres: Ground) -> None:
    with psycopg.connect(postgres.address) as slow:
        slow.execute(*statement(event_in("slow")))
        put(postgres.store, workflow())
        assert found(postgres.store, Workflow, "wf_1") == workflow()


def test_a_feed_holds_what_one_has_just_written_oneself(postgres: Ground) -> None:
    for number in range(20):
        put(postgres.store, workflow(updated_at=number))
        assert len(postgres.store.feed()) == number + 1
        assert postgres.store.newest(1)[0].seq == number + 1


def test_a_feed_waits_the_moment_until_what_one_wrote_oneself_is_in(
    postgres: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETTLE_S", 60.0)
    shown: list[str] = []
    with psycopg.connect(postgres.address) as slow:
        slow.execute(*statement(event_in("slow")))
        put(postgres.store, workflow())
        reader = threading.Thread(target=lambda: shown.extend(event.stream for event in postgres.store.feed()))
        reader.start()
        reader.join(0.2)
        assert reader.is_alive()
        slow.commit()
        reader.join(30)
    assert shown == ["slow", "wf_1"]


def test_positions_go_on_growing_in_a_server_that_had_counted_less(new_schema: NewSchema) -> None:
    """As after a dump from a server that has been running for years."""
    with new_schema() as address:
        ground = postgres_ground(address)
        put(ground.store, workflow())
        ground.tamper("UPDATE event SET position = position + (1::bigint << 45)")
        first = ground.store.events("wf_1")[-1].position
        other = ground.another()
        put(other, workflow(name="later"))
        feed = other.feed()
        assert [event.seq for event in feed] == [1, 2]
        assert feed[0].position == first
        ground.close()


def test_a_unit_has_a_limited_number_of_events(postgres: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_EVENTS", 0)
    with pytest.raises(AssertionError, match="too many events"):
        postgres.engine.commit(event_in("a"))


# -- the statement ----------------------------------------------------------------------------------------------------


def test_writes_of_one_shape_share_their_text() -> None:
    one, first = statement(event_in("a"))
    two, second = statement(event_in("b"))
    assert one == two
    assert first != second


def test_many_of_a_kind_share_their_text_whatever_their_number() -> None:
    def many(count: int) -> str:
        events = [NewEvent("kind", "anna", "mcp", 5, {}, ()) for _ in range(count)]
        return statement(WriteSet((chained("a", NEW_STREAM, events),), ()))[0]

    assert many(FEW) != many(FEW - 1)
    assert many(FEW + 1) == many(FEW + 50)


def test_a_key_that_is_taken_is_no_error_for_the_server(postgres: Ground) -> None:
    key = KeyWrite("tool", "key", "hash", b"", 100, 1)
    postgres.engine.commit(event_in("a")._replace(key=key))
    with psycopg.connect(postgres.address) as connection:
        assert connection.execute(*statement(event_in("b")._replace(key=key))).fetchone() == (None, str(LATEST))
        assert connection.execute("SELECT count(*) FROM stream").fetchone() == (1,)


def test_units_that_meet_in_two_streams_never_lock_each_other_out(postgres: Ground) -> None:
    names = [f"wf_{number}" for number in range(4)]
    for name in names:
        put(postgres.store, workflow(name, updated_at=0))

    def work(number: int) -> None:
        chosen = [names[(number + step) % 4] for step in (0, 1, 2)]
        for _ in range(10):

            def unit_work(unit: Unit) -> None:
                for name in chosen if number % 2 else reversed(chosen):
                    known = unit.get(Workflow, name)
                    assert known is not None
                    unit.record("workflow.touched", workflow(name, updated_at=known.updated_at + 1))

            postgres.store.run(ANNA, unit_work)

    crew = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert sum(found(postgres.store, Workflow, name).updated_at for name in names) == 6 * 10 * 3
    assert postgres.store.verify() == []


# -- settings and refusals --------------------------------------------------------------------------------------------


def setting(engine: PostgresEngine, name: str) -> str:
    with engine._connections.taken() as session:
        row = session.row("SELECT current_setting(%s)", (name,))
        assert row is not None
        return str(row[0])


def test_a_session_has_limits_and_is_durable(postgres: Ground) -> None:
    """Whatever the server's or the user's own settings are."""
    loose = with_option(with_option(postgres.address, "synchronous_commit%3Doff"), "lock_timeout%3D0")
    engine = PostgresEngine(with_option(loose, "default_transaction_isolation%3Dserializable"), version=VERSION)
    assert setting(engine, "synchronous_commit") == "on"
    assert setting(engine, "default_transaction_isolation") == "read committed"
    assert setting(engine, "lock_timeout") == "8s"
    assert setting(engine, "statement_timeout") == "1min"
    assert setting(engine, "idle_in_transaction_session_timeout") == "1min"
    engine.close()


def test_a_stronger_promise_of_the_server_is_kept(postgres: Ground) -> None:
    engine = PostgresEngine(with_option(postgres.address, "synchronous_commit%3Dremote_apply"), version=VERSION)
    assert setting(engine, "synchronous_commit") == "remote_apply"
    engine.close()


def test_an_address_is_shown_without_its_password(postgres_server: str) -> None:
    for address in (
        "postgresql://anna:s3cret@127.0.0.1:1/db",
        "postgresql://anna:s3cret@127.0.0.1:x/db",
        "postgresql://anna:s3cret@127.0.0.1:1/db?nonsense=1",
    ):
        with pytest.raises(StoreRefused) as refused:
            PostgresEngine(address, version=VERSION)
        assert "s3cret" not in str(refused.value.as_dict())
        assert refused.value.hint


def test_a_server_that_is_not_there_is_named(postgres_server: str) -> None:
    with pytest.raises(StoreAway, match=r"anna@127\.0\.0\.1:1/db does not answer") as refused:
        PostgresEngine("postgresql://anna@127.0.0.1:1/db", version=VERSION)
    assert "start the server" in refused.value.hint


def test_a_schema_that_is_not_there_is_refused(postgres_server: str) -> None:
    joined = "&" if "?" in postgres_server else "?"
    with pytest.raises(StoreUnusable, match="no schema") as refused:
        PostgresEngine(f"{postgres_server}{joined}options=-csearch_path%3Dnowhere", version=VERSION)
    assert "search_path" in refused.value.hint


def test_a_server_that_only_reads_is_read_and_refuses_to_write(postgres: Ground) -> None:
    put(postgres.store, workflow())
    engine = PostgresEngine(with_option(postgres.address, "default_transaction_read_only%3Don"), version=VERSION)
    store = Store(engine, clock=postgres.clock, ids=postgres.ids)
    assert found(store, Workflow, "wf_1") == workflow()
    with pytest.raises(StoreAway, match="cannot be written") as refused:
        put(store, workflow("wf_2"))
    assert "primary" in refused.value.hint
    engine.close()


def test_a_writer_that_never_lets_go_is_a_refusal_in_the_end(postgres: Ground) -> None:
    put(postgres.store, workflow())
    engine = PostgresEngine(postgres.address, version=VERSION)
    engine._connections.forget_idle()
    engine._connections.on_connect = lambda session: session.do("SET lock_timeout = 50")
    store = Store(engine, clock=postgres.clock, ids=postgres.ids)
    with psycopg.connect(postgres.address) as other:
        other.execute("SELECT 1 FROM stream FOR UPDATE")
        with pytest.raises(StoreBusy, match="held by another writer"):
            put(store, workflow(name="mine"))
    put(store, workflow(name="mine"))
    engine.close()


def test_a_driver_that_is_missing_is_asked_for() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from pathlib import Path\n"
        "from handrail.kernel.errors import StoreUnusable\n"
        "from handrail.store.open_engine import open_engine\n"
        "try:\n    open_engine('postgresql:///x', project=Path(), version='0', durable=False)\n"
        "except StoreUnusable as refused:\n    print(refused.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "in Handrail's checkout: .venv/bin/python -m pip install -e '.[postgres]'"


def test_the_store_tells_what_it_is(postgres: Ground) -> None:
    info = postgres.store.info()
    assert info.engine == "postgresql"
    assert info.location.startswith("postgresql://")
    assert int(info.version.partition(".")[0]) >= 14


def test_an_index_that_is_not_valid_is_a_problem(postgres: Ground) -> None:
    assert postgres.engine.check() == []
    mark = "UPDATE pg_index SET indisvalid = {} WHERE indexrelid = 'task_order'::regclass"
    postgres.tamper(mark.format("false"))
    try:
        assert postgres.engine.check() == ["index task_order is not valid"]
    finally:
        postgres.tamper(mark.format("true"))


def test_a_closed_store_says_so(new_schema: NewSchema) -> None:
    with new_schema() as address:
        ground = postgres_ground(address)
        ground.close()
        with pytest.raises(StoreUnusable, match="closed"):
            found(ground.store, Workflow, "wf_1")
        assert not ground.store.wait(0, 60)


# -- news -------------------------------------------------------------------------------------------------------------


def test_a_commit_is_told_to_whoever_listens(postgres: Ground) -> None:
    with psycopg.connect(postgres.address, autocommit=True) as listener:
        row = listener.execute("SELECT (current_schema()::regnamespace::oid)::text").fetchone()
        assert row is not None
        listener.execute(f'LISTEN "handrail_{row[0]}"')
        put(postgres.store, workflow())
        assert len(list(listener.notifies(timeout=10, stop_after=1))) == 1


def test_a_hint_wakes_a_waiter_long_before_it_would_look_again(
    postgres: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_POLL_S", 600.0)
    monkeypatch.setattr(module, "POLL_S", 600.0)
    other = postgres.another()
    put(postgres.store, workflow())
    position = postgres.store.feed()[-1].position
    woken: list[bool] = []
    waiter = threading.Thread(target=lambda: woken.append(other.wait(position, 60)))
    waiter.start()
    put(postgres.store, workflow(name="news"))
    waiter.join(60)
    assert woken == [True]


# -- backups ----------------------------------------------------------------------------------------------------------


def told(store: Store) -> list[tuple[object, ...]]:
    """The ledger without its positions, which belong to the server."""
    return [(*event[:2], *event[3:]) for event in store.feed()]


def test_a_backup_is_a_store_of_its_own_and_comes_back_as_it_was(
    postgres: Ground, new_schema: NewSchema, tmp_path: Path
) -> None:
    put(postgres.store, workflow(plan={"a": [1, None]}), task(), task("task_2", name="ü"))
    put(postgres.store, repository())
    put(postgres.store, task(status="failed"))
    remove(postgres.store, task("task_2", name="ü"))
    key = sealed(KeyWrite("tool", "key", "hash", b"\x00answer", 2_000_000_000_000, 1))
    postgres.engine.commit(event_in("keyed")._replace(key=key))
    history = told(postgres.store)

    kept = tmp_path / "backup.db"
    postgres.lasting.backup(str(kept))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.db"]
    before = kept.read_bytes()
    copy = sqlite_ground(kept)
    assert copy.store.verify() == []
    assert told(copy.store) == history
    copy.close()

    with new_schema() as address:
        other = postgres_ground(address)
        put(other.store, workflow("wf_old"))
        put(other.store, workflow("wf_old", name="still there?"))
        other.lasting.restore(str(kept))
        assert kept.read_bytes()[:100] == before[:100]
        assert told(other.store) == history
        assert found(other.store, Workflow, "wf_old") is None
        assert found(other.store, Workflow, "wf_1") == workflow(plan={"a": [1, None]})
        with other.engine.reading() as reader:
            assert reader.key_answer("tool", "key", 1) == ("hash", key.response)
        put(other.store, workflow(name="after"))
        assert told(other.store)[:-1] == history
        assert other.store.verify() == []
        other.close()


def test_a_backup_made_while_others_write_is_of_one_moment(postgres: Ground, tmp_path: Path) -> None:
    """Also of what the feed does not show yet because an older transaction is still under way."""
    with psycopg.connect(postgres.address) as slow:
        slow.execute(*statement(event_in("slow")))
        put(postgres.another(), workflow())
        postgres.lasting.backup(str(tmp_path / "backup.db"))
        slow.commit()
    copy = sqlite_ground(tmp_path / "backup.db")
    assert [event.stream for event in copy.store.feed()] == ["wf_1"]
    assert copy.store.verify() == []
    copy.close()


def test_a_conflict_names_the_stream(postgres: Ground) -> None:
    postgres.engine.commit(event_in("a"))
    with pytest.raises(Conflict, match="a"):
        postgres.engine.commit(event_in("a"))
