"""A backup that somebody hands over, before it is believed. It is copied once, into a folder of our own, and everything
else looks at that copy: that it is a store and nothing besides, its pages and indexes, its ledger and every row. What
becomes of the original meanwhile does not matter, and nothing of the store in use has been touched when it is refused.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from handrail.kernel.errors import InvalidParams, StoreRefused
from handrail.store.origin import why_foreign
from handrail.store.sqlite import SqliteEngine
from handrail.store.sqlite_connections import inert
from handrail.store.sqlite_refusals import translated
from handrail.store.store_copy import Tell
from handrail.store.verification import problems_in

BEGINNING = b"SQLite format 3\0"
SHOWN = 3
"""How many of a backup's problems a refusal names."""


@contextmanager
def checked_copy(source: Path, *, version: str, tell: Tell) -> Iterator[Path]:
    """A copy of a backup with the current schema, in which nothing is wrong. Raises InvalidParams if there is, or if
    it is no backup at all."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        try:
            _take(source, copy)
            problems = _foreign(copy) or _damage(copy, version, tell)
        except StoreRefused as refusal:
            problems = [refusal.message]
        if problems:
            named = "; ".join(problems[:SHOWN]).replace(str(copy), str(source))
            more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
            raise InvalidParams(f"{source} is not a sound backup: {named}{more}", hint="nothing was changed")
        yield copy


def _take(source: Path, copy: Path) -> None:
    """Copies a file, with the log beside it if it has one: what was written last may be there."""
    beginning = _copied(source, copy)
    if beginning != BEGINNING:
        raise InvalidParams(
            f"{source} is not a sound backup: {source} is no database, or its beginning is damaged",
            hint="nothing was changed",
        )
    log = Path(f"{source}-wal")
    if os.path.lexists(log) and os.stat(log).st_size:  # noqa: PTH116 - a link to nowhere is told like the rest
        _copied(log, Path(f"{copy}-wal"))


def _copied(source: Path, copy: Path) -> bytes:
    """Copies an ordinary file and returns how it begins. A pipe would keep us waiting, a device might never end."""
    try:
        _check_ordinary(source, os.stat(source))  # noqa: PTH116 - opening a device may already do something
        descriptor = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
        with os.fdopen(descriptor, "rb") as reading, copy.open("xb") as writing:
            _check_ordinary(source, os.fstat(descriptor))
            beginning = reading.read(len(BEGINNING))
            writing.write(beginning)
            shutil.copyfileobj(reading, writing)
    except OSError as error:
        raise InvalidParams(f"{source} cannot be copied: {error.strerror}", hint="nothing was changed") from None
    return beginning


def _check_ordinary(source: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise InvalidParams(f"{source} is no ordinary file", hint="name a file that `db backup` made")
    if found.st_size == 0:
        raise InvalidParams(f"{source} is empty", hint="name a file that `db backup` made; nothing was changed")


def _foreign(copy: Path) -> list[str]:
    with translated(copy), closing(inert(str(copy))) as connection:
        return why_foreign(connection, str(copy))


def _damage(copy: Path, version: str, tell: Tell) -> list[str]:
    engine = SqliteEngine(copy, version=version)
    try:
        problems = engine.check()
        if not problems:
            with engine.reading() as reader:
                problems = problems_in(reader, lambda seen: tell("verifying", seen, 0))
    finally:
        engine.close()
    return problems
