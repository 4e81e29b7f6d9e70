"""A worker on PostgreSQL: `python -m bench.registry.on_postgres KIND ADDRESS SIZE`. The raw kinds are psycopg alone, on
one connection that prepares its statements, with the engine's own tables and indexes."""

from __future__ import annotations

import gc
import sys
from typing import Any

import msgspec
import psycopg

from bench.registry.ledger import FOLLOWED, PAGE, RARE, RARELY, READS, Appends, RawAppends, Watch, fill, store_over
from bench.store.slices import Prepare, Step, serve
from handrail.domain.board.entry import board_stream
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


def raw_pages(
    connection: psycopg.Connection[tuple[Any, ...]],
    text: str,
    given: tuple[object, ...],
    column: int,
    *,
    decoded: bool = False,
) -> Prepare:
    """Page after page, the rows as they come; `column` is what to go on after. `decoded` reads the JSON in them
    too, and makes nothing of it."""
    cursor = connection.cursor(binary=True)
    after, decode = 0, msgspec.json.Decoder().decode

    def step() -> None:
        nonlocal after
        page = cursor.execute(text, (*given, after)).fetchall()
        if decoded:
            for row in page:
                decode(row[7])
        after = page[-1][column] if len(page) == PAGE else 0

    return lambda lane, count: step


def main(kind: str, address: str, size: int) -> None:
    engine = PostgresEngine(address, version="0")
    store = store_over(engine)
    if kind == "append":
        appends = Appends(store, "ours", size)
        serve(lambda lane, count: appends)
    elif kind == "raw-append":
        serve(raw_appends(raw_connection(address), size))
    else:
        fill(store)
        connection = raw_connection(address)
        connection.execute("ANALYZE event")  # as the server does by itself before long
        if kind in ("raw-feed", "raw-decoded"):
            serve(raw_pages(connection, _FEED, (), 2, decoded=kind == "raw-decoded"))
        elif kind == "raw-stream":
            text = sql.STREAM_EVENTS.replace("LIMIT ?", f"LIMIT {PAGE}").replace("?", "%s")
            serve(raw_pages(connection, text, (board_stream(FOLLOWED),), 1))
        else:
            if kind.endswith(RARE):
                gc.set_threshold(RARELY)
            watch = Watch(store, READS[kind.removesuffix(RARE)])
            serve(lambda lane, count: watch)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
