"""Moving a store to another place, within an engine or between engines: copy it while nobody writes, verify the copy,
then mark the old store. Also removing that mark, and inspecting an address before anything is opened.

Writers wait while the store is copied and verified, as they wait for any other writer; one that waits too long is
refused and has written nothing. If the move is killed at any moment, the old store is unchanged, and the new one is
empty, absent or complete.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.late import late_module
from handrail.store.marks import MOVED_KEY, is_moved
from handrail.store.migrations import LATEST
from handrail.store.open_engine import POSTGRES, check_own, database_path, open_engine, shown_address
from handrail.store.places import OTHER_FILE, check_free, check_place, whole_file
from handrail.store.ports import LastingEngine
from handrail.store.store_copy import COPIED, EMPTY_ONLY, EVENT, KEY, STREAM, Still, Tell, differences, report_nothing
from handrail.store.verification import check_sound, problems_in

if TYPE_CHECKING:
    from handrail.store import (
        postgres,
        postgres_copy,
        postgres_schema,
        sqlite,
        sqlite_connections,
        sqlite_copy,
        sqlite_refusals,
        write_lock,
    )
    from handrail.store.postgres_connections import Connections
else:
    postgres = late_module("handrail.store.postgres")
    postgres_copy = late_module("handrail.store.postgres_copy")
    postgres_schema = late_module("handrail.store.postgres_schema")
    sqlite = late_module("handrail.store.sqlite")
    sqlite_connections = late_module("handrail.store.sqlite_connections")
    sqlite_copy = late_module("handrail.store.sqlite_copy")
    sqlite_refusals = late_module("handrail.store.sqlite_refusals")
    write_lock = late_module("handrail.store.write_lock")

_LEDGER = (STREAM, EVENT, KEY)


class Moved(NamedTuple):
    """What was copied, and where to."""

    location: str
    events: int
    rows: int
    keys: int


class StoreFound(NamedTuple):
    """What is found at an address."""

    schema: int
    """0 if there is nothing yet."""
    moved_to: str | None


def move(
    source: LastingEngine, target: str, *, project: Path, version: str, keep: bool = False, tell: Tell = report_nothing
) -> Moved:
    """Moves a store to an address where nothing is yet. `keep` leaves the old store unmarked: two stores from then
    on."""
    shown = shown_address(target, project)
    check_sound(source, tell)  # before anybody has to wait, and before anything is made there
    with contextlib.ExitStack() as stack:
        filled = _free_target(source, target, project, version, stack)
        still = stack.enter_context(source.still())
        counts = {table: still.rows.count(table) for table in COPIED}
        if filled is not None:
            filled.fill(still.rows, tell)
        else:
            _into_file(source, still, database_path(target, project), version, tell)
        if found_at(target, project).schema != LATEST:  # users are about to be sent there
            raise StoreUnusable(f"{shown} is gone again", hint="look who removes it; the old store is as it was")
        if not keep:
            still.mark(shown)
    rows = sum(count for table, count in counts.items() if table not in _LEDGER)
    return Moved(shown, counts[EVENT], rows, counts[KEY])


def check_target(source: LastingEngine, target: str, *, project: Path, version: str) -> None:
    """Raises StoreUnusable if a store cannot move to `target`. Creates nothing there."""
    if target.startswith(POSTGRES) and found_at(target, project).schema == 0:
        return
    with contextlib.ExitStack() as stack:
        _free_target(source, target, project, version, stack)


def _free_target(
    source: LastingEngine, target: str, project: Path, version: str, stack: contextlib.ExitStack
) -> LastingEngine | None:
    """The opened server store to fill, or None for a file. Refuses a target that holds something."""
    if not target.startswith(POSTGRES):
        check_free(database_path(target, project))
        return None
    shown = shown_address(target, project)
    filled = postgres.PostgresEngine(target, version=version)
    stack.callback(filled.close)
    if isinstance(source, postgres.PostgresEngine) and source.is_same_place(filled):
        raise StoreUnusable(f"{shown} is where the store is already", hint=EMPTY_ONLY)
    if not filled.is_empty():
        raise StoreUnusable(f"{shown} holds something already", hint=EMPTY_ONLY)
    return filled


def _into_file(source: LastingEngine, still: Still, path: Path, version: str, tell: Tell) -> None:
    with whole_file(path) as part:
        source.backup(str(part), tell)
        copy = open_engine(str(part), project=path.parent, version=version, durable=True)
        try:
            with copy.still() as seen:
                problems = differences(still.rows, seen.rows)
            with copy.reading() as reader:
                total = still.rows.count(EVENT)
                problems = problems or problems_in(reader, lambda done: tell("verifying", done, total))
        finally:
            copy.close()
        if problems:
            raise StoreUnusable(f"{path} got no true copy: {problems[0]}", hint="nothing was changed")


def found_at(db: str, project: Path) -> StoreFound:
    """What is at an address, without changing or upgrading it."""
    if db.startswith(POSTGRES):
        connections = _connections(db)
        with contextlib.closing(connections), connections.taken() as session:
            schema, meta = postgres_schema.read_schema(session, connections.location)
            return StoreFound(schema, meta.get(MOVED_KEY))
    path = database_path(db, project)
    if not db:
        check_own(project)
    if not path.exists():
        return StoreFound(0, None)
    check_place(path)
    with sqlite_refusals.translated(path), contextlib.closing(sqlite_connections.inert(str(path))) as connection:
        schema = int(connection.execute("PRAGMA user_version").get)
        if schema and connection.execute("PRAGMA application_id").get != sqlite.APPLICATION_ID:
            raise StoreUnusable(f"{path} is a database of something else", hint=OTHER_FILE)
        return StoreFound(schema, sqlite_copy.moved_to(connection) if is_moved(schema) else None)


def release(db: str, project: Path) -> StoreFound:
    """Makes a moved store an ordinary one again; returns what was found. Raises StoreUnusable if it has not moved."""
    found = found_at(db, project)
    if not is_moved(found.schema):
        raise _not_moved(db, project)
    if db.startswith(POSTGRES):
        connections = _connections(db)
        with contextlib.closing(connections), connections.taken() as session:
            if not postgres_copy.take_mark_away(session, found.schema):
                raise _not_moved(db, project)
        return found
    path = database_path(db, project)
    gate = write_lock.WriteLock(Path(f"{os.path.realpath(path)}.gate"), sqlite.BUSY_MS / 1000)
    with (
        contextlib.closing(gate),
        sqlite_refusals.translated(path),
        gate.held(),
        contextlib.closing(sqlite_connections.inert(str(path))) as connection,
    ):
        connection.set_busy_timeout(sqlite.BUSY_MS)
        if not sqlite_copy.take_mark_away(connection):  # somebody else was first
            raise _not_moved(db, project)
    return found


def _not_moved(db: str, project: Path) -> StoreUnusable:
    return StoreUnusable(f"{shown_address(db, project)} has not moved", hint="there is nothing to release")


def _connections(db: str) -> Connections:
    return postgres.connections_to(db)


def copy_before_upgrade(path: Path, target: Path) -> None:
    """A copy of a file as it is, whatever schema it has."""
    with (
        whole_file(target) as part,
        sqlite_refusals.translated(path),
        contextlib.closing(sqlite_connections.inert(str(path))) as connection,
    ):
        connection.execute("VACUUM INTO ?", (str(part),))
