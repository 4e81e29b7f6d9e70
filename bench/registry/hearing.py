"""One of two processes: `python -m bench.registry.hearing ROLE KIND ADDRESS`, ROLE one of write, hear.

Told by a line to act, it answers with when it did. Ours write a unit and wait for news with the store. The floor is the
least that could tell: on SQLite a row is inserted and the other side looks again and again without a pause, on
PostgreSQL the writer notifies in its own transaction and the other side is told by the server.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.registry.ledger import ACTOR, PAGE, Appends, store_over
from bench.store.slices import say
from handrail.store.store import Store

LONGEST_S = 60.0
Hear = Callable[[], Callable[[], object]]
"""Gets ready, and gives what returns once there is news."""


def ours_on_sqlite(address: str) -> tuple[Callable[[], object], Hear]:
    from handrail.store.sqlite import SqliteEngine

    return _ours(store_over(SqliteEngine(Path(address), version="0")))


def ours_on_postgres(address: str) -> tuple[Callable[[], object], Hear]:
    from handrail.store.postgres import PostgresEngine

    return _ours(store_over(PostgresEngine(address, version="0")))


def _ours(store: Store) -> tuple[Callable[[], object], Hear]:
    return Appends(store, "told", 1), lambda: _listening(store)


def _listening(store: Store) -> Callable[[], object]:
    position = store.position()

    def hear() -> None:
        assert store.wait(position, LONGEST_S)
        assert store.run(ACTOR, lambda unit: unit.feed(position, PAGE))

    return hear


def floor_on_sqlite(address: str) -> tuple[Callable[[], object], Hear]:
    from bench.store.on_sqlite import raw_connection

    execute = raw_connection(Path(address), "NORMAL").execute
    execute("PRAGMA journal_mode = WAL").fetchall()
    execute("CREATE TABLE IF NOT EXISTS told (id INTEGER PRIMARY KEY, body TEXT)")
    newest = "SELECT coalesce(max(id), 0) FROM told"

    def listening() -> Callable[[], object]:
        known = execute(newest).get

        def hear() -> None:
            while execute(newest).get == known:
                pass

        return hear

    return lambda: execute("INSERT INTO told (body) VALUES ('x')"), listening


def floor_on_postgres(address: str) -> tuple[Callable[[], object], Hear]:
    import psycopg

    connection: psycopg.Connection[Any] = psycopg.connect(address, autocommit=True)
    connection.execute("CREATE TABLE IF NOT EXISTS told (id bigserial PRIMARY KEY, body text)")

    def write() -> None:
        with connection.pipeline(), connection.transaction():
            connection.execute("INSERT INTO told (body) VALUES ('x')")
            connection.execute("NOTIFY handrail_bench")

    def listening() -> Callable[[], object]:
        connection.execute("LISTEN handrail_bench")

        def hear() -> None:
            assert list(connection.notifies(timeout=LONGEST_S, stop_after=1))
            connection.execute("SELECT max(id) FROM told").fetchone()

        return hear

    return write, listening


KINDS = {
    "ours-sqlite": ours_on_sqlite,
    "ours-postgres": ours_on_postgres,
    "floor-sqlite": floor_on_sqlite,
    "floor-postgres": floor_on_postgres,
}


def main(role: str, kind: str, address: str) -> None:
    write, listening = KINDS[kind](address)
    say({"ready": True})
    for _ in sys.stdin:
        if role == "hear":
            hear = listening()
            say({"ready": True})
            hear()
            say({"heard_ns": time.perf_counter_ns()})
        else:
            began_ns = time.perf_counter_ns()
            write()
            say({"began_ns": began_ns, "done_ns": time.perf_counter_ns()})


if __name__ == "__main__":
    main(*sys.argv[1:])
