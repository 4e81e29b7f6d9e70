"""What a copy of a store consists of, whichever engines it goes from and to: the ledger with its positions, hashes and
heads, idempotency keys, every row. Engine-free.

Values are copied as stored: both engines hold texts, integers and bytes, and nothing is decoded on the way. Positions
stay the same, so anyone following the ledger continues in the copy where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from handrail.store.tables import TABLES, Table

PAGE = 1000
"""Rows between two progress reports."""

EMPTY_ONLY = "name a file that is not there, or an empty database; nothing was changed"
Tell = Callable[[str, int, int], None]
"""Receives what is being done, how much of it is done, and how much there is."""


def report_nothing(_what: str, _done: int, _total: int) -> None:
    """For callers that want no progress reports."""


_TWOFOLD = ("event", "idempotency")
"""Tables whose first two columns are the key."""


class TableCopy(NamedTuple):
    """One table of a store."""

    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    """text, int or bytes, for each column."""

    @property
    def listed(self) -> str:
        return ", ".join(self.columns)

    @property
    def ordered(self) -> str:
        """The columns of its primary key."""
        return ", ".join(self.columns[:2] if self.name in _TWOFOLD else self.columns[:1])


_PLAIN = {"text": "text", "json": "text", "int": "int", "flag": "int"}
STREAM = TableCopy("stream", ("name", "head", "hash"), ("text", "int", "text"))
EVENT = TableCopy(
    "event",
    ("stream", "seq", "position", "kind", "actor", "channel", "at_ms", "body", "hash"),
    ("text", "int", "int", "text", "text", "text", "int", "bytes", "text"),
)
KEY = TableCopy(
    "idempotency",
    ("scope", "key", "request_hash", "response", "expires_ms"),
    ("text", "text", "text", "bytes", "int"),
)
COPIED: tuple[TableCopy, ...] = (
    STREAM,
    EVENT,
    KEY,
    *(TableCopy(table.name, table.columns, tuple(_PLAIN[kind] for kind in table.kinds)) for table in TABLES),
)


_BY_NAME = {table.name: table for table in COPIED}


def copied(table: Table) -> TableCopy:
    """A table of records as a copy sees it."""
    return _BY_NAME[table.name]


class Rows(Protocol):
    """One consistent read of a whole store, to copy from or compare with."""

    def count(self, table: TableCopy) -> int: ...

    def rows(self, table: TableCopy) -> Iterator[Sequence[Any]]: ...

    def last_position(self) -> int:
        """The last position that was given out; new events come after it."""
        ...


class Still(Protocol):
    """A store that nobody writes to for the moment."""

    rows: Rows

    def mark(self, moved_to: str) -> None:
        """Marks it as moved, for good. This ends the standstill."""
        ...


class Copying:
    """Counts what is copied and reports progress."""

    def __init__(self, source: Rows, tell: Tell) -> None:
        self.counts = {table.name: source.count(table) for table in COPIED}
        self._source = source
        self._tell = tell
        self._total = sum(self.counts.values())
        self._done = 0

    def rows(self, table: TableCopy) -> Iterator[Sequence[Any]]:
        for row in self._source.rows(table):
            if self._done % PAGE == 0:
                self._tell("copying", self._done, self._total)
            self._done += 1
            yield row


def differences(source: Rows, copy: Rows) -> list[str]:
    """What a copy lacks or has too much of: rows of every table, the head of every stream."""
    problems = []
    for table in COPIED:
        there, here = source.count(table), copy.count(table)
        if there != here:
            problems.append(f"{table.name}: {here} rows were copied, there are {there}")
    heads = {row[0]: tuple(row) for row in source.rows(STREAM)}
    for row in copy.rows(STREAM):
        if heads.pop(row[0], None) != tuple(row):
            problems.append(f"{row[0]}: its head is not the one that was copied")
    problems += [f"{name}: its head was not copied" for name in heads]
    return problems
