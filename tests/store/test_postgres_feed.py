"""What a follower of PostgreSQL's feed may rely on while a writer is stopped at the worst moment."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable

import psycopg
import pytest

from handrail.kernel.ledger import NewEvent
from handrail.store.postgres import PostgresEngine
from handrail.store.postgres_writes import statement
from handrail.store.store import Store
from handrail.store.writes import NEW_STREAM, WriteSet, chained
from tests.store.ground import VERSION, Ground, postgres_ground
from tests.store.records import happened
from tests.store.server import running, schema_of_its_own

NewSchema = Callable[[], contextlib.AbstractContextManager[str]]
WRITERS = 4
FROZEN_S = 0.003


def test_a_number_whose_holder_is_not_shown_yet_keeps_the_feed_back(new_schema: NewSchema) -> None:
    """The server hands a transaction its number a moment before it lists whose it is. Here that moment lasts."""
    with new_schema() as address:
        ground = postgres_ground(address)
        ground.tamper("CREATE VIEW pg_locks AS SELECT * FROM pg_catalog.pg_locks WHERE locktype <> 'transactionid'")
        with psycopg.connect(address) as slow:
            schema = slow.execute("SELECT current_schema()").fetchone()
            assert schema is not None
            blind = PostgresEngine(f"{address}%20-csearch_path%3D{schema[0]},pg_catalog", version=VERSION)
            follower = Store(blind, clock=ground.clock, ids=ground.ids)
            slow.execute(*statement(happened("slow", NEW_STREAM, "first")))
            ground.engine.commit(happened("fast", NEW_STREAM, "first"))
            assert follower.feed() == []
            assert not follower.wait(0, 0)
            slow.commit()
        for _ in range(20):  # whoever else writes on this server meanwhile holds a blind follower up as well
            if follower.feed() or follower.wait(0, 5):
                break
        assert [event.stream for event in follower.feed()] == ["slow", "fast"]
        blind.close()
        ground.close()


# -- late in a look: something else was read first --------------------------------------------------------------------


def late_feed(engine: PostgresEngine, meanwhile: Callable[[], object] = lambda: None) -> list[str]:
    """The streams of the feed, asked for by a look that has begun before `meanwhile`."""
    with engine.reading() as reader:
        assert reader.head("nothing") == NEW_STREAM
        meanwhile()
        return [event.stream for event in reader.feed(0, 10)]


def settled_feed(engine: PostgresEngine) -> list[str]:
    """The same once something is shown: the server's own housekeeping may hold a look up for a moment."""
    return next((found for found in (late_feed(engine) for _ in range(200)) if found), [])


def test_late_in_a_look_the_feed_does_not_wait_for_transactions_that_write_no_events(postgres: Ground) -> None:
    with psycopg.connect(postgres.address) as foreign:
        foreign.execute("CREATE TABLE theirs (id bigint)")
        postgres.another().engine.commit(happened("fast", NEW_STREAM, "first"))
        assert settled_feed(_engine(postgres)) == ["fast"]
        foreign.rollback()


@pytest.mark.parametrize("ends", [False, True])
def test_late_in_a_look_the_feed_stops_before_events_under_way(postgres: Ground, ends: bool) -> None:
    """Also when they are written by the time the feed is asked for: this look will never show them."""
    with psycopg.connect(postgres.address) as slow:
        slow.execute(*statement(happened("slow", NEW_STREAM, "first")))
        postgres.another().engine.commit(happened("fast", NEW_STREAM, "first"))
        assert late_feed(_engine(postgres), slow.commit if ends else lambda: None) == []
    assert settled_feed(_engine(postgres)) == ["slow", "fast"]


def test_a_number_whose_holder_has_just_let_go_of_its_locks_keeps_the_feed_back(new_schema: NewSchema) -> None:
    """Who ends lets go of its locks one by one. Here that lasts: its number is shown, and its lock on events is not."""
    with new_schema() as address:
        ground = postgres_ground(address)
        with psycopg.connect(address) as slow:
            slow.execute(*statement(happened("slow", NEW_STREAM, "first")))
            ground.engine.commit(happened("fast", NEW_STREAM, "first"))
            schema = slow.execute("SELECT current_schema()").fetchone()
            assert schema is not None
            ground.tamper("CREATE TABLE shown AS SELECT * FROM pg_catalog.pg_locks WHERE locktype = 'transactionid'")
            ground.tamper("CREATE VIEW pg_locks AS SELECT * FROM shown")
            blind = PostgresEngine(f"{address}%20-csearch_path%3D{schema[0]},pg_catalog", version=VERSION)
            assert late_feed(blind, slow.commit) == []
        assert settled_feed(blind) == ["slow", "fast"]
        blind.close()
        ground.close()


def test_what_was_sure_before_a_look_began_is_sure_in_it(postgres: Ground) -> None:
    """A watcher asks for the position and then looks. Somebody who ends in between without a trace must not hide what
    the position has told of: nobody would tell of it again."""
    engine = _engine(postgres)
    with psycopg.connect(postgres.address) as foreign:
        foreign.execute("UPDATE counter SET position = position")  # a number, and no events
        postgres.another().engine.commit(happened("fast", NEW_STREAM, "first"))
        told = postgres.store.position()
        assert told > 0
        assert late_feed(engine, foreign.rollback) == ["fast"]


def _engine(ground: Ground) -> PostgresEngine:
    assert isinstance(ground.engine, PostgresEngine)
    return ground.engine


class Writer(threading.Thread):
    """Writes one event after the other to a stream of its own, over one connection."""

    def __init__(self, address: str, number: int, enough: threading.Event) -> None:
        super().__init__()
        self._connection = psycopg.connect(address, autocommit=True)
        self._stream = f"wf_{number}"
        self._enough = enough
        self.pid = self._connection.info.backend_pid

    def run(self) -> None:
        head = NEW_STREAM
        while not self._enough.is_set():
            write = chained(self._stream, head, [NewEvent("thing.happened", "anna", "mcp", 5, {}, ())])
            told = self._connection.execute(*statement(WriteSet((write,), ()))).fetchone()
            assert told is not None
            assert told[0] is not None
            head = write.head
        self._connection.close()


def follow(ground: Ground, written: threading.Event) -> list[tuple[int, str, int]]:
    """All events as a follower sees them, page by page, until all are written."""
    seen: list[tuple[int, str, int]] = []
    while True:
        last = written.is_set()
        page = ground.store.feed(after=seen[-1][0] if seen else 0, limit=100)
        seen += [(event.position, event.stream, event.seq) for event in page]
        if last and not page:
            return seen


def freeze_and_follow(times: int, seed: int) -> None:
    chance = random.Random(seed)
    with running(of_its_own=True) as server, schema_of_its_own(server, "frozen") as address:
        ground = postgres_ground(address)
        enough, written = threading.Event(), threading.Event()
        writers = [Writer(address, number, enough) for number in range(WRITERS)]
        seen: list[tuple[int, str, int]] = []
        follower = threading.Thread(target=lambda: seen.extend(follow(ground, written)))
        for thread in (*writers, follower):
            thread.start()
        for _ in range(times):
            pid = chance.choice(writers).pid
            os.kill(pid, signal.SIGSTOP)
            enough.wait(FROZEN_S)
            os.kill(pid, signal.SIGCONT)
            enough.wait(chance.random() * FROZEN_S)
        enough.set()
        for writer in writers:
            writer.join()
        written.set()
        follower.join()
        with ground.engine.reading() as reader:
            heads = {stream: head.seq for stream, head in reader.streams()}
        for stream, count in heads.items():
            assert [seq for _, known, seq in seen if known == stream] == list(range(1, count + 1)), f"seed {seed}"
        assert len(seen) == sum(heads.values())
        assert seen == sorted(seen)
        assert all(not writer.is_alive() for writer in writers)
        ground.close()


def test_a_follower_misses_nothing_while_writers_are_frozen_at_any_moment() -> None:
    freeze_and_follow(times=150, seed=20261119)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(3))
def test_a_follower_misses_nothing_in_five_thousand_frosts(seed: int) -> None:
    freeze_and_follow(times=5000, seed=seed)
