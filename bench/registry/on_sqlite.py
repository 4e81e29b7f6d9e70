"""A worker on one SQLite file: `python -m bench.registry.on_sqlite KIND FILE SIZE`.

The raw kinds use apsw with the engine's own tables, indexes and pragmas, and nothing else of it: rows that are ready go
in, and rows come out as they are. SIZE is the number of events a commit.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import apsw
import msgspec

from bench.registry.ledger import FOLLOWED, PAGE, RARE, RARELY, READS, Appends, RawAppends, Watch, fill, store_over
from bench.store.on_sqlite import raw_connection
from bench.store.slices import Prepare, Step, grow_log, serve
from handrail.domain.board.entry import board_stream
from handrail.store import statements as sql
from handrail.store.sqlite import SqliteEngine

_FEED = f"SELECT {sql.EVENT} FROM event WHERE position > ? ORDER BY position LIMIT {PAGE}"


def raw_appends(connection: apsw.Connection, size: int) -> Prepare:
    made, execute = RawAppends("raw"), connection.execute
    position = 0

    def prepare(lane: int, count: int) -> Step:
        waiting = iter([made.next(size) for _ in range(count)])

        def step() -> None:
            nonlocal position
            execute("BEGIN IMMEDIATE")
            for event, row in next(waiting):
                position += 1
                execute(sql.INSERT_EVENT, (*event, position))
                execute(sql.PUT["board"], row)
            execute("COMMIT")

        return step

    return prepare


def raw_pages(
    connection: apsw.Connection, text: str, given: tuple[object, ...], column: int, *, decoded: bool = False
) -> Prepare:
    """Page after page, the rows as they come; `column` is what to go on after. `decoded` reads the JSON in them
    too, and makes nothing of it."""
    after, decode = 0, msgspec.json.Decoder().decode

    def step() -> None:
        nonlocal after
        page = connection.execute(text, (*given, after)).fetchall()
        if decoded:
            for row in page:
                decode(row[7])
        after = page[-1][column] if len(page) == PAGE else 0

    return lambda lane, count: step


def main(kind: str, path: Path, size: int) -> None:
    engine = SqliteEngine(path, version="0")
    store = store_over(engine)
    grower = raw_connection(path, "NORMAL")
    grow_log(lambda text: grower.execute(text).fetchall())
    grower.close()
    if kind == "append":
        appends = Appends(store, "ours", size)
        serve(lambda lane, count: appends)
    elif kind == "raw-append":
        serve(raw_appends(raw_connection(path, "NORMAL"), size))
    else:
        fill(store)
        connection = raw_connection(path, "NORMAL")
        if kind in ("raw-feed", "raw-decoded"):
            serve(raw_pages(connection, _FEED, (), 2, decoded=kind == "raw-decoded"))
        elif kind == "raw-stream":
            text = sql.STREAM_EVENTS.replace("LIMIT ?", f"LIMIT {PAGE}")
            serve(raw_pages(connection, text, (board_stream(FOLLOWED),), 1))
        else:
            if kind.endswith(RARE):
                gc.set_threshold(RARELY)
            watch = Watch(store, READS[kind.removesuffix(RARE)])
            serve(lambda lane, count: watch)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
