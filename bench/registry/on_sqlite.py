"""A worker on one SQLite file: `python -m bench.registry.on_sqlite KIND FILE SIZE`.

The raw kinds use apsw with the engine's own tables, indexes and pragmas, and nothing else of it: rows that are ready go
in, and rows come out as they are. SIZE is the number of events a commit.
"""

from __future__ import annotations

import sys
from pathlib import Path

import apsw

from bench.registry.ledger import PAGE, RawAppends, store_over
from bench.registry.serving import Raw, serve_kind
from bench.store.on_sqlite import raw_connection
from bench.store.slices import Prepare, Step, grow_log
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


def main(kind: str, path: Path, size: int) -> None:
    engine = SqliteEngine(path, version="0")
    grower = raw_connection(path, "NORMAL")
    grow_log(lambda text: grower.execute(text).fetchall())
    grower.close()
    connection = raw_connection(path, "NORMAL")
    raw = Raw(
        rows=lambda text, given: connection.execute(text, given).fetchall(),
        appends=lambda size: raw_appends(connection, size),
        feed=_FEED,
        stream=sql.STREAM_EVENTS.replace("LIMIT ?", f"LIMIT {PAGE}"),
    )
    serve_kind(kind, size, store_over(engine), raw)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
