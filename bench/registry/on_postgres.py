"""A worker on PostgreSQL: `python -m bench.registry.on_postgres KIND ADDRESS SIZE`. The raw kinds are psycopg alone, on
one connection that prepares its statements, with the engine's own tables and indexes."""

from __future__ import annotations

import sys
from typing import Any

import psycopg

from bench.registry.ledger import PAGE, RawAppends, store_over
from bench.registry.serving import Raw, serve_kind
from bench.store.slices import Prepare, Step
from handrail.store import statements as sql
from handrail.store.postgres import PostgresEngine

_FEED = f"SELECT {sql.EVENT} FROM event WHERE position > %s ORDER BY position LIMIT {PAGE}"


def raw_connection(address: str) -> psycopg.Connection[tuple[Any, ...]]:
    connection = psycopg.connect(address, autocommit=True)
    connection.prepare_threshold = 1
    return connection


def raw_appends(connection: psycopg.Connection[tuple[Any, ...]], size: int) -> Prepare:
    """A transaction and its statements in one round trip, as psycopg's pipeline sends them."""
    made = RawAppends("raw")
    insert, put = (text.replace("?", "%s") for text in (sql.INSERT_EVENT, sql.PUT["board"]))
    cursor = connection.cursor(binary=True)
    position = 0

    def prepare(lane: int, count: int) -> Step:
        waiting = iter([made.next(size) for _ in range(count)])

        def step() -> None:
            nonlocal position
            with connection.pipeline(), connection.transaction():
                for event, row in next(waiting):
                    position += 1
                    cursor.execute(insert, (*event, position))
                    cursor.execute(put, row)

        return step

    return prepare


def main(kind: str, address: str, size: int) -> None:
    engine = PostgresEngine(address, version="0")
    connection = raw_connection(address)
    cursor = connection.cursor(binary=True)
    raw = Raw(
        rows=lambda text, given: cursor.execute(text, given).fetchall(),
        appends=lambda size: raw_appends(connection, size),
        feed=_FEED,
        stream=sql.STREAM_EVENTS.replace("LIMIT ?", f"LIMIT {PAGE}").replace("?", "%s"),
        filled=lambda: connection.execute("ANALYZE event"),  # as the server does by itself before long
    )
    serve_kind(kind, size, store_over(engine), raw)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
