"""A worker on one SQLite file: `python -m bench.store.on_sqlite KIND FILE SYNCHRONOUS LANE`.

The raw kinds use apsw with the engine's own tables and pragmas, and nothing else of it: no gate, no check of the
file, no queue.
"""

from __future__ import annotations

import sys
from pathlib import Path

import apsw

from bench.store.slices import Prepare, Step, grow_log, serve
from bench.store.through_store import prepared_changes, steps_of
from bench.store.work import ONE_ROW
from handrail.outside.world import RandomIds, SystemClock
from handrail.store import statements as sql
from handrail.store.sqlite_connections import CONNECTION_PRAGMAS, SqliteEngine
from handrail.store.store import Store
from handrail.store.writes import WriteSet


def raw_connection(path: Path, synchronous: str) -> apsw.Connection:
    connection = apsw.Connection(str(path), statementcachesize=256)
    connection.set_busy_timeout(30_000)
    for pragma in (*CONNECTION_PRAGMAS, f"synchronous = {synchronous}"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def raw_rows(connection: apsw.Connection) -> Prepare:
    """One row into one table, a commit each."""
    connection.execute("CREATE TABLE IF NOT EXISTS one_row (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    execute = connection.execute

    def prepare(lane: int, count: int) -> Step:
        return lambda: execute("INSERT INTO one_row (body) VALUES (?)", (ONE_ROW,))

    return prepare


def raw_units(connection: apsw.Connection, engine: SqliteEngine) -> Prepare:
    """The statements that one change of a task comes to, with the same parameters, and nothing around them."""
    clock = SystemClock()
    changes = prepared_changes(Store(engine, clock=clock, ids=RandomIds(clock)))
    execute = connection.execute

    def prepare(lane: int, count: int) -> Step:
        waiting = iter([_parameters(write_set) for write_set in changes(lane, count)])

        def step() -> None:
            head, event, row = next(waiting)
            execute("BEGIN IMMEDIATE")
            execute(sql.MOVE_HEAD, head)
            position = execute(sql.TAKE_POSITIONS, (1,)).get
            execute(sql.INSERT_EVENT, (*event, position))
            execute(*row)
            execute("COMMIT")

        return step

    return prepare


def _parameters(write_set: WriteSet) -> tuple[tuple[object, ...], ...]:
    (stream,), (row,) = write_set.streams, write_set.rows
    assert row.values is not None
    assert row.changed is not None
    text, chosen = sql.change(row.table, row.changed)
    return (*stream.head, stream.stream, *stream.expected), stream.events[0], (text, chosen(row.values))


def main(kind: str, path: Path, synchronous: str, lane: int) -> None:
    is_first = not path.exists()
    engine = SqliteEngine(path, version="0", durable=synchronous == "FULL")
    if is_first:
        grower = raw_connection(path, synchronous)
        grow_log(lambda text: grower.execute(text).fetchall())
        grower.close()
    if kind == "raw-row":
        prepare = raw_rows(raw_connection(path, synchronous))
    elif kind == "raw-unit":
        prepare = raw_units(raw_connection(path, synchronous), engine)
    else:
        prepare = steps_of(kind, engine)
    serve(prepare, lane=lane)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
