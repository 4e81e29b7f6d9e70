"""A worker on PostgreSQL: `python -m bench.store.on_postgres KIND ADDRESS LANE`. The raw kind is psycopg alone."""

from __future__ import annotations

import sys

import psycopg

from bench.store.slices import Prepare, Step, serve
from bench.store.through_store import steps_of
from bench.store.work import ONE_ROW
from handrail.store.postgres import PostgresEngine


def raw_rows(address: str) -> Prepare:
    """One row into one table, a commit each, on one connection that prepares its statement."""
    connection = psycopg.connect(address, autocommit=True)
    connection.execute("CREATE SCHEMA IF NOT EXISTS bench_raw")
    connection.execute("CREATE TABLE IF NOT EXISTS bench_raw.one_row (id bigserial PRIMARY KEY, body bytea NOT NULL)")
    connection.prepare_threshold = 1
    cursor = connection.cursor(binary=True)

    def prepare(lane: int, count: int) -> Step:
        return lambda: cursor.execute("INSERT INTO bench_raw.one_row (body) VALUES (%s)", (ONE_ROW,))

    return prepare


def main(kind: str, address: str, lane: int) -> None:
    if kind == "raw-row":
        serve(raw_rows(address), lane=lane)
        return
    engine = PostgresEngine(address, version="0")
    serve(steps_of(kind, engine), lane=lane)
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
