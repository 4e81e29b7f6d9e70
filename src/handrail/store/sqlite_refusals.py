"""SQLite's errors as refusals that say what to do. Decides nothing else: only the catcher of an error knows what it
undid."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import apsw

from handrail.kernel.errors import StoreBusy, StoreFull, StoreRefused, StoreTooNew, StoreUnusable
from handrail.store.migrations import LATEST
from handrail.store.places import OTHER_FILE, why_not_opened

FULL_HINT = "free some space, then call again; nothing was written"
DAMAGED_HINT = f"`handrail db restore BACKUP` brings back a copy (keep this file aside), or {OTHER_FILE}"
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
            return StoreUnusable(f"{path} cannot be written", hint="check its permissions and its folder's")
        case apsw.NotADBError():
            return StoreUnusable(f"{path} is no database, or its beginning is damaged", hint=DAMAGED_HINT)
        case apsw.CorruptError():
            return StoreUnusable(f"{path} is damaged: {error}", hint=DAMAGED_HINT)
        case apsw.CantOpenError():
            return StoreUnusable(f"{path} cannot be opened", hint=why_not_opened(path))
        case apsw.IOError() if getattr(error, "extendedresult", 0) in _NO_ROOM:
            return StoreFull(f"{path} could not be written: no room left, or the disk fails", hint=FULL_HINT)
        case apsw.SQLError():
            return StoreUnusable(f"the tables of {path} are not what they should be: {error}", hint=DAMAGED_HINT)
        case apsw.IOError():
            return StoreUnusable(f"{path} could not be used: {error}", hint="check the disk, then call again")
    return None
