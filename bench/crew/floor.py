"""The least a server of shared writes can do: `python -m bench.crew.floor FILE|ADDRESS`.

It reads a line, inserts a row, commits and answers. No checks, no order, no threads, no other tools: apsw or psycopg
and a loop. SQLite as Handrail has it by default: a write-ahead log, synchronous NORMAL.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

Insert = Callable[[str, str], object]
_MARKS = "SELECT mark FROM message"


def _sqlite(path: str) -> Any:
    import apsw

    connection = apsw.Connection(path)
    connection.set_busy_timeout(60_000)
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY, mark TEXT, body TEXT)")
    return connection


def _postgres(address: str) -> Any:
    import psycopg

    connection = psycopg.connect(address, autocommit=True)
    connection.prepare_threshold = 1
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(1)")  # several create it at once
        connection.execute("CREATE TABLE IF NOT EXISTS message (id bigserial PRIMARY KEY, mark text, body text)")
    return connection


def inserter(address: str) -> Insert:
    """One row and its commit."""
    if "://" in address:
        execute = _postgres(address).execute
        return lambda mark, body: execute("INSERT INTO message (mark, body) VALUES (%s, %s)", (mark, body))
    execute = _sqlite(address).execute
    return lambda mark, body: execute("INSERT INTO message (mark, body) VALUES (?, ?)", (mark, body))


def marks_in(address: str) -> list[str]:
    """What was inserted there."""
    connection = _postgres(address) if "://" in address else _sqlite(address)
    try:
        return [row[0] for row in connection.execute(_MARKS).fetchall()]
    finally:
        connection.close()


def main(address: str) -> None:
    insert = inserter(address)
    decode, encode = msgspec.json.decode, msgspec.json.encode
    read, write = sys.stdin.buffer.readline, sys.stdout.buffer
    while line := read():
        message = decode(line)
        if "id" not in message:
            continue
        result: dict[str, Any] = {}
        if message["method"] == "tools/call":
            given = message["params"]["arguments"]
            insert(given["mark"], given["body"])
            result = {"content": [{"type": "text", "text": given["mark"]}]}
        write.write(encode({"jsonrpc": "2.0", "id": message["id"], "result": result}) + b"\n")
        write.flush()


if __name__ == "__main__":
    main(sys.argv[1])
