"""A store on a PostgreSQL server, read with the same statements as a file. Loaded only for such a store: the driver
takes longer than all the rest of a hook.

One transaction that cannot write, and short limits: a server that is away is no store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg

from handrail.store.addresses import check_readable

CONNECT_S = 2
STATEMENT_MS = 1500
_LIMITS = f"SELECT set_config('statement_timeout', '{STATEMENT_MS}', true)"
_NOW = "SELECT floor(extract(epoch FROM now()) * 1000)::bigint"
_SCHEMA = "SELECT value FROM meta WHERE key = 'schema'"
_NAMED = re.compile(r"(?<!:):([a-z_]\w*)")


class ServerRows:
    """The rows of one answer, as apsw gives them."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._rows, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._rows)

    @property
    def get(self) -> Any:
        """The first row, or the only value in it; None without any."""
        row = self.fetchone()
        return row[0] if row is not None and len(row) == 1 else row


class ServerReading:
    """One transaction on a server."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection
        self.execute(_LIMITS)
        self.now_ms = int(self.execute(_NOW).get)
        """The server's time, by which everything in it is judged."""

    def execute(self, text: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> ServerRows:
        asked = _NAMED.sub(r"%(\1)s", text) if isinstance(values, Mapping) else text.replace("?", "%s")
        cursor = self._connection.execute(asked.encode(), values or None)
        return ServerRows(cursor.fetchall())

    def close(self) -> None:
        self._connection.close()


def open_server(address: str, *, oldest: int, moved: int) -> ServerReading | None:
    """The store at an address; None if it has none that can be read here. Raises if the server does not answer."""
    check_readable(address)
    connection = psycopg.connect(address, connect_timeout=CONNECT_S)
    connection.read_only = True
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    reading = ServerReading(connection)
    schema = str(reading.execute(_SCHEMA).get)
    if schema.isascii() and schema.isdigit() and oldest <= int(schema) < moved:
        return reading
    reading.close()
    return None
