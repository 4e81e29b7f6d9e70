"""The schema's history: numbered steps, each written once and never changed. Both dialects read the same text.

The text is SQLite's; `for_postgres` translates the few words in which PostgreSQL differs. A file written by a newer
version is refused, naming the version that understands it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from handrail.store.migrations.step_0001 import STEP_0001
from handrail.store.migrations.step_0002 import STEP_0002
from handrail.store.migrations.step_0003 import STEP_0003
from handrail.store.migrations.step_0004 import STEP_0004
from handrail.store.migrations.step_0005 import STEP_0005
from handrail.store.migrations.step_0006 import STEP_0006
from handrail.store.migrations.step_0007 import STEP_0007
from handrail.store.migrations.step_0008 import STEP_0008
from handrail.store.migrations.step_0009 import STEP_0009
from handrail.store.migrations.step_0010 import STEP_0010


class Migration(NamedTuple):
    """One step: its number, the first Handrail that has it, and its statements."""

    number: int
    since: str
    sql: str


STEPS: tuple[Migration, ...] = (
    Migration(1, "0.1.0", STEP_0001),
    Migration(2, "0.2.0", STEP_0002),
    Migration(3, "0.2.0", STEP_0003),
    Migration(4, "0.3.0", STEP_0004),
    Migration(5, "0.3.0", STEP_0005),
    Migration(6, "0.3.0", STEP_0006),
    Migration(7, "0.4.0", STEP_0007),
    Migration(8, "0.4.0", STEP_0008),
    Migration(9, "0.5.0", STEP_0009),
    Migration(10, "0.7.0", STEP_0010),
)
LATEST = STEPS[-1].number


def statements(sql: str) -> list[str]:
    """The statements of a step, one by one."""
    return [statement.strip() for statement in sql.split(";") if statement.strip()]


_ADDED = re.compile(
    r"ALTER TABLE (?P<table>\w+) ADD COLUMN (?P<column>\w+) \w+(?: NOT NULL)?"
    r"(?: DEFAULT (?:'(?P<text>[^']*)'|(?P<number>-?\d+)))?$"
)


@lru_cache(maxsize=1)
def _defaults() -> dict[tuple[str, str], str | int | None]:
    found = (_ADDED.match(statement) for step in STEPS for statement in statements(step.sql))
    return {
        (added["table"], added["column"]): int(added["number"]) if added["number"] else added["text"]
        for added in found
        if added is not None
    }


def default_of(table: str, column: str) -> str | int | None:
    """What a column holds in rows that are older than the step that added it."""
    return _defaults().get((table, column))


def for_postgres(sql: str) -> str:
    """SQLite's text for PostgreSQL: wider integers, byte strings, text ordered by its bytes, no storage hints."""
    sql = re.sub(r"\bINTEGER\b", "BIGINT", sql)
    sql = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', sql)
    sql = re.sub(r"\bBLOB\b", "BYTEA", sql)
    sql = re.sub(r"\binstr\b", "strpos", sql)
    return re.sub(r"\)\s*STRICT(?:, WITHOUT ROWID)?", ")", sql)
