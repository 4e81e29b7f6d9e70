"""SQLite's errors as refusals that say what to do. Decides nothing else: only the catcher of an error knows what it
undid."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import apsw

from handrail.kernel.errors import StoreAway, StoreBusy, StoreFull, StoreRefused, StoreTooNew, StoreUnusable
from handrail.store.marks import is_moved, moved
from handrail.store.migrations import LATEST
from handrail.store.places import OTHER_FILE, why_not_opened
from handrail.store.sqlite_copy import moved_to

FULL_HINT = "free some space, then call again; nothing was written"
DAMAGED_HINT = (
    "`handrail db rebuild` makes it anew if its ledger can still be read, `handrail db restore BACKUP` brings back a "
    f"copy; both keep this file beside it. Or {OTHER_FILE}"
)
_NO_ROOM = (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_TRUNCATE)


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turns errors about `path` into refusals."""
    try:
        yield
    except apsw.Error as error:
        refuse(error, path)


def too_new(path: Path, found: int, version: str, needed: str) -> StoreTooNew:
    """The refusal for a file that a newer Handrail has written."""
    return StoreTooNew(
        f"{path} has schema {found}, this Handrail ({version}) knows {LATEST}",
        hint=f"use Handrail {needed} or newer",
        needs=needed,
    )


def interrupted() -> StoreRefused:
    return StoreRefused(
        "the thread that was writing for this one was interrupted", hint="look whether it is there, then call again"
    )


def refuse(error: apsw.Error, path: Path) -> NoReturn:
    """Raises the refusal for an error about `path`."""
    refusal = refusal_for(error, path)
    if refusal is None:
        raise error
    raise refusal from error


def refusal_for(error: apsw.Error, path: Path) -> StoreRefused | None:
    """The refusal for an error about `path`; None for one that only a bug of ours can cause."""
    match error:
        case apsw.BusyError() | apsw.ProtocolError():
            message = f"{path} has been held by another process for too long"
            return StoreBusy(message, hint="end or resume that process, then call again; nothing was written")
        case apsw.FullError():
            return StoreFull(f"there is no room to write {path}", hint=FULL_HINT)
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            hint = "nothing was written: check its permissions and its folder's, then call again"
            return StoreAway(f"{path} cannot be written now", hint=hint)
        case apsw.NotADBError():
            return StoreUnusable(f"{path} is no database, or its beginning is damaged", hint=DAMAGED_HINT, damaged=True)
        case apsw.CorruptError():
            return StoreUnusable(f"{path} is damaged: {error}", hint=DAMAGED_HINT, damaged=True)
        case apsw.CantOpenError():
            return StoreAway(f"{path} cannot be opened", hint=why_not_opened(path))
        case apsw.IOError() if getattr(error, "extendedresult", 0) in _NO_ROOM:
            return StoreFull(f"{path} could not be written: no room left, or the disk fails", hint=FULL_HINT)
        case apsw.SQLError():
            message = f"the tables of {path} are not what they should be: {error}"
            return StoreUnusable(message, hint=DAMAGED_HINT, damaged=True)
        case apsw.IOError():
            hint = "nothing was written: check the disk, then call again"
            return StoreAway(f"{path} could not be used: {error}", hint=hint)
    return None


def refuse_schema(found: int, path: Path, connection: apsw.Connection, version: str) -> NoReturn:
    """Says why a file with such a schema is not written to: the store has moved, or a newer Handrail was here."""
    if is_moved(found):
        raise moved(str(path), moved_to(connection))
    row = connection.execute("SELECT value FROM meta WHERE key = 'needs'").fetchone()
    needed = row[0] if row is not None else "a newer one"
    raise StoreTooNew(
        f"{path} has schema {found}, this Handrail ({version}) knows {LATEST}",
        hint=f"use Handrail {needed} or newer",
        needs=needed,
    )


@contextlib.contextmanager
def opening() -> Iterator[None]:
    """A file that is away before it was ever opened cannot be had: nobody here knows that it was ever there."""
    try:
        yield
    except StoreAway as away:
        raise StoreUnusable(away.message, hint=away.hint) from away
