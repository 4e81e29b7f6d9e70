"""The shape of a SQLite store: every object in it, exactly as the numbered steps make it. Anything else (a trigger, a
view, another table, a column with a rule of its own) was not made by Handrail and may act on the next write, so it is
named. Comparing costs one query and one hash; only a store that differs is looked at more closely."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import apsw

from handrail.kernel.errors import StoreUnusable
from handrail.store.migrations import STEPS, statements

DIGESTS: dict[int, str] = {
    1: "b1e31b38351fdad490dd332f86e9efd6",
    2: "baae321f8f022597306e0c09011b745e",
    3: "8c3d008406373dd6c2d94f41fdb7f53f",
    4: "f4eb572c58938ff3c0dc5c8b5f16ca5d",
    5: "6cded4c81bd02f5fdc772137affd2323",
    6: "051705d1a24db1c25f3530afe120cf58",
    7: "ca83effc01a73a712ea54ae2536bcfa3",
    8: "1c11308c2ffc1dad310abfdd7ef5597d",
    9: "edbb6ea6e1738803c5f868e4c5985372",
    10: "42063e5f0cd24cf1132815bc7a51e3c8",
}
"""The hash of each schema, by its number. One that is missing here is made in memory to compare, which takes longer."""

_BYTES = "CAST(CASE typeof({0}) WHEN 'text' THEN {0} ELSE '~' || typeof({0}) END AS BLOB)"
_OBJECTS = f"SELECT {', '.join(map(_BYTES.format, ('type', 'name', 'tbl_name', 'sql')))} FROM sqlite_schema"  # noqa: S608 - our own names
_Object = tuple[bytes, bytes, bytes]
_Shape = dict[_Object, bytes]
"""The text that made each object, by type, name and table."""


def digest(shape: _Shape) -> str:
    whole = b"\0".join(b"\1".join((*key, text)) for key, text in sorted(shape.items()))
    return hashlib.blake2b(whole, digest_size=16).hexdigest()


def shape_of(connection: apsw.Connection) -> _Shape:
    """Everything in a file's schema. How many spaces and ends of lines are between words does not count."""
    shape: _Shape = {}
    found: Any = connection.execute(_OBJECTS)
    for kind, name, table, text in found:
        words = b" ".join(filter(None, text.replace(b"\n", b" ").split(b" ")))
        key = (kind, name, table)
        shape[key] = words if key not in shape else shape[key] + b" twice " + words
    return shape


@lru_cache(maxsize=4)
def made_by_steps(number: int) -> _Shape:
    """The shape that the steps up to a number make, in a database of its own."""
    with contextlib.closing(_made(number)) as connection:
        return shape_of(connection)


def _made(number: int) -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    for step in STEPS[:number]:
        for statement in statements(step.sql):
            connection.execute(statement)
    return connection


def strangers(connection: apsw.Connection, number: int) -> list[str]:
    """What is in a file and not in a store of this schema, what is missing, and what is not as it was made."""
    found = shape_of(connection)
    encoding = str(connection.execute("PRAGMA encoding").get)
    odd = [] if encoding == "UTF-8" else [f"its texts are kept as {encoding}, not as UTF-8"]
    if digest(found) == DIGESTS.get(number):
        return odd
    made = made_by_steps(number)
    for key in sorted(found.keys() - made.keys()):
        odd.append(f"{_named(key)} is not part of a store")
    for key in sorted(made.keys() - found.keys()):
        odd.append(f"{_named(key)} is missing")
    for key in sorted(found.keys() & made.keys()):
        if found[key] != made[key]:
            odd.append(f"{_named(key)} is not as Handrail makes it")
    return odd


def check_shape(connection: apsw.Connection, location: str, number: int) -> None:
    """Raises StoreUnusable if a file holds anything that a store of this schema does not."""
    odd = strangers(connection, number)
    if odd:
        more = f", and {len(odd) - 1} more" if len(odd) > 1 else ""
        raise StoreUnusable(
            f"{location} was changed by something other than Handrail: {odd[0]}{more}; nothing was read or written",
            hint="if you trust what it records, `handrail db rebuild` makes a clean store from its ledger; "
            "`handrail db restore BACKUP` brings back a copy",
            damaged=True,
            strangers=odd,
        )


def _named(key: _Object) -> str:
    kind, name, table = (part.decode(errors="replace") for part in key)
    return f"{kind} {name}" if name == table else f"{kind} {name} on {table}"


class MadeTable(NamedTuple):
    """A table as the steps make it: enough to compare another engine's with."""

    name: str
    columns: list[tuple[str, str, bool, str | None]]
    """Name, type, whether it must hold something, and the text of its default."""
    indexes: list[tuple[str, bool, tuple[str | None, ...], str]]
    """Name (none for those of a key), whether it is unique, columns (None for an expression), and its condition."""


def made_tables() -> list[MadeTable]:
    """Every table of the newest schema."""
    with contextlib.closing(_made(len(STEPS))) as connection:
        names = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return [MadeTable(name, _columns(connection, name), list(_indexes(connection, name))) for name in names]


def _columns(connection: apsw.Connection, table: str) -> list[tuple[str, str, bool, str | None]]:
    asked: Any = connection.execute(
        'SELECT name, type, "notnull" OR pk, dflt_value FROM pragma_table_info(?)', (table,)
    )
    return [(name, kind, bool(needed), default) for name, kind, needed, default in asked]


def _indexes(connection: apsw.Connection, table: str) -> Iterator[tuple[str, bool, tuple[str | None, ...], str]]:
    listed: Any = connection.execute(
        "SELECT l.name, l.\"unique\", coalesce(s.sql, '') FROM pragma_index_list(?) l "
        "JOIN sqlite_schema s ON s.name = l.name WHERE l.origin <> 'pk'",
        (table,),
    ).fetchall()
    keys: Any = connection.execute("SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (table,)).fetchall()
    yield "", True, tuple(name for (name,) in keys), ""  # the table itself is in the order of its key
    for name, unique, text in listed:
        asked: Any = connection.execute(
            'SELECT name, "desc" FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno', (name,)
        )
        columns = tuple(f"{column} DESC" if turned else column for column, turned in asked)
        yield ("" if name.startswith("sqlite_") else name), bool(unique), columns, text.partition(" WHERE ")[2]
