"""SQLite: the default engine. Many processes on one file, each a writer now and then.

Writers queue at a gate (a lock on a file beside the database) before they begin, because SQLite's own waiting is a
lottery that can starve one of them; the kernel opens the gate again when its holder dies. Threads of one process that
write at the same time are committed together. What is acknowledged has been committed.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from handrail.kernel.errors import StoreRefused, StoreTooNew, StoreUnusable
from handrail.store import statements as sql
from handrail.store.gate import Gate
from handrail.store.migrations import LATEST, STEPS, statements
from handrail.store.places import OTHER_FILE, Files, check_place
from handrail.store.reading import EngineInfo, Reader
from handrail.store.sqlite_reading import SqliteReader
from handrail.store.sqlite_refusals import refusal_for, refuse, translated
from handrail.store.writes import Conflict, RowWrite, StreamWrite, WriteSet

OLDEST_SQLITE = (3, 51, 3)
"""Older ones can lose committed pages when many processes checkpoint one file."""

APPLICATION_ID = 0x48524C31
BUSY_MS = 30_000
GROUP = 64
"""Units of one process that are committed together."""
WAIT_STEPS_S = (0.002, 0.005, 0.01, 0.025, 0.05)

_CONNECTION_PRAGMAS = (
    "wal_autocheckpoint = 4000",
    "journal_size_limit = 67108864",
    "cache_size = -16384",
    "temp_store = MEMORY",
    "trusted_schema = OFF",
    "cell_size_check = ON",
)


class _Pending:
    """A write set on its way into a transaction."""

    __slots__ = ("done", "error", "position", "writes")

    def __init__(self, writes: WriteSet) -> None:
        self.writes = writes
        self.done = False
        self.position = 0
        self.error: BaseException | None = None


class SqliteEngine:
    """A store in one file."""

    def __init__(self, path: Path, *, version: str, durable: bool = False, busy_ms: int = BUSY_MS) -> None:
        """Opens the file, creating or upgrading it where needed. A current file is not written to."""
        _check_library()
        check_place(path)
        self._path = path
        self._synchronous = "FULL" if durable else "NORMAL"
        self._version = version
        self._busy_ms = busy_ms
        self._process = os.getpid()
        self._readers: list[apsw.Connection] = []
        self._queue: deque[_Pending] = deque()
        self._leader = threading.RLock()
        self._alone_on: int | None = None
        """The thread that keeps all others out, those of its own process too."""
        self._own_version = -1
        """The file's version as our last commit left it."""
        self._news = threading.Condition()
        self._listeners = 0
        self._closed = False
        real = os.path.realpath(path)  # SQLite too keeps its files beside what a link points to
        self._gate = Gate(Path(f"{real}.gate"), busy_ms / 1000)
        with translated(path):
            self._writer = self._connect()
            self._execute = self._writer.cursor().execute
            try:
                self._make_current()
                self._files = Files(path, Path(f"{real}-wal"))
            except BaseException:
                self.close()
                raise

    def info(self) -> EngineInfo:
        return EngineInfo("sqlite", str(self._path), apsw.sqlite_lib_version(), LATEST)

    # -- opening ----------------------------------------------------------------------------------------------------

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path), statementcachesize=256)
        connection.set_busy_timeout(self._busy_ms)
        # A plan that looks at the values is made anew for every value: reading a task took ten times as long.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        for pragma in _CONNECTION_PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.execute(f"PRAGMA synchronous = {self._synchronous}").fetchall()
        return connection

    def _schema(self) -> int:
        return int(self._writer.execute("PRAGMA user_version").get)

    def _make_current(self) -> None:
        found = self._look()
        if found > LATEST:
            self._refuse_newer(found)
        if found == LATEST and self._writer.execute("PRAGMA journal_mode").get == "wal":
            return
        with self._gate.held():
            if self._writer.execute("PRAGMA journal_mode").get != "wal":
                self._writer.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
                self._writer.execute("PRAGMA journal_mode = WAL").fetchall()
            for step in STEPS:
                self._take(step.number, step.sql, step.since)

    def _look(self) -> int:
        """The file's schema. A file that holds something must be ours."""
        self._writer.execute("BEGIN")  # one look: another process may be making the tables right now
        try:
            found = self._schema()
            ours = self._writer.execute("PRAGMA application_id").get == APPLICATION_ID
            if not ours and (found or self._writer.execute("SELECT count(*) FROM sqlite_schema").get):
                raise StoreUnusable(f"{self._path} is a database of something else", hint=OTHER_FILE)
        finally:
            self._roll_back()
        return found

    def _take(self, number: int, text: str, since: str) -> None:
        """One step in one transaction; another process may have taken it while we waited."""
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            if self._schema() < number:
                for statement in statements(text):
                    self._writer.execute(statement)
                keep = (
                    "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
                )
                self._writer.execute(keep, ("needs", since))
                self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._writer.execute(f"PRAGMA user_version = {number}")
            self._writer.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _refuse_newer(self, found: int) -> None:
        row = self._writer.execute("SELECT value FROM meta WHERE key = 'needs'").fetchone()
        needed = row[0] if row is not None else "a newer one"
        raise StoreTooNew(
            f"{self._path} has schema {found}, this Handrail ({self._version}) knows {LATEST}",
            hint=f"use Handrail {needed} or newer",
            needs=needed,
        )

    # -- reading ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self, *, aside: bool = False) -> Iterator[Reader]:
        self._check_process()
        connection = self._writer
        # The writer's own connection where nobody needs it: its pages are warm, another's would be read anew.
        own = not aside and self._leader.acquire(blocking=False)
        try:
            if not own or connection.in_transaction:
                connection = self._borrow()
            connection.execute("BEGIN")
            try:
                yield SqliteReader(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")
        except apsw.Error as error:
            refuse(error, self._path)
        finally:
            if connection is not self._writer:
                self._readers.append(connection)
            if own:
                self._leader.release()

    def _borrow(self) -> apsw.Connection:
        """A connection that nobody else uses until it is put back."""
        try:
            return self._readers.pop()
        except IndexError:
            return self._connect()

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[apsw.Connection]:
        self._check_process()
        with translated(self._path):
            connection = self._borrow()
        try:
            yield connection
        finally:
            self._readers.append(connection)

    def _check_process(self) -> None:
        """SQLite's locks and the gate belong to the process that took them; a fork has neither."""
        if os.getpid() != self._process:
            raise StoreUnusable(f"{self._path} was opened before this process was forked", hint="open it again here")

    # -- writing ----------------------------------------------------------------------------------------------------

    def commit(self, writes: WriteSet) -> int:
        self._check_process()
        pending = _Pending(writes)
        if self._alone_on == threading.get_ident():
            self._commit_group([pending])
        else:
            self._queue.append(pending)
            with self._leader:  # whoever comes first commits for all that have queued up meanwhile
                while not pending.done:  # more than one group may be ahead of ours
                    if not self._queue:  # whoever took it out was interrupted before anything came of it
                        raise _interrupted()
                    self._commit_group(self._next_group())
        if pending.error is not None:
            raise pending.error
        if self._listeners:
            with self._news:
                self._news.notify_all()
        return pending.position

    def _next_group(self) -> list[_Pending]:
        return [self._queue.popleft() for _ in range(min(GROUP, len(self._queue)))]

    def _commit_group(self, batch: list[_Pending]) -> None:
        depth = self._gate.depth
        try:
            self._gate.enter()
            self._transact(batch)
            self._gate.leave_to(depth)
        except BaseException as error:
            self._gate.leave_to(depth)
            told = self._told(error)
            for pending in batch:
                pending.error = pending.error or told
            if not isinstance(error, Exception):
                raise
        finally:
            for pending in batch:
                pending.done = True

    def _told(self, error: BaseException) -> Exception:
        """What the writers of a group are told of an error that befell the one who wrote for them."""
        if isinstance(error, apsw.Error):
            return refusal_for(error, self._path) or error
        return error if isinstance(error, Exception) else _interrupted()

    def _transact(self, batch: list[_Pending]) -> None:
        self._files.check()
        self._execute("BEGIN IMMEDIATE")
        try:
            if self._writer.data_version() != self._own_version:
                self._check_schema()
            if len(batch) == 1:
                batch[0].position = self._apply(batch[0].writes)
            else:
                for pending in batch:
                    self._apply_within(pending)
            self._execute("COMMIT")
            self._own_version = self._writer.data_version()
        except Conflict as conflict:
            batch[0].error = conflict
            self._roll_back()
        except BaseException:
            self._roll_back()
            raise

    def _check_schema(self) -> None:
        """Others have written since our last commit, and one of them may be a newer Handrail."""
        if (found := self._schema()) != LATEST:
            self._refuse_newer(found)

    def _apply_within(self, pending: _Pending) -> None:
        """One of several: its failure takes back only its own."""
        self._execute("SAVEPOINT unit")
        try:
            pending.position = self._apply(pending.writes)
        except Conflict as conflict:
            pending.error = conflict
            self._execute("ROLLBACK TO unit")
        self._execute("RELEASE unit")

    def _apply(self, writes: WriteSet) -> int:
        execute = self._execute
        try:
            count = self._move_heads(writes.streams)
            position = int(execute(sql.TAKE_POSITIONS, (count,)).get) if count else 0
            place = position - count
            for stream in writes.streams:
                for event in stream.events:
                    place += 1
                    execute(sql.INSERT_EVENT, (*event, place))
            for row in writes.rows:
                self._write_row(row)
            if writes.key is not None:
                key = writes.key
                execute(sql.FORGET_KEY, (key.scope, key.key, key.now_ms))
                execute(sql.SWEEP_KEYS, (key.now_ms,))
                execute(sql.KEEP_KEY, key[:5])
        except apsw.ConstraintError as taken:
            raise Conflict(str(taken)) from None
        return position

    def _move_heads(self, streams: tuple[StreamWrite, ...]) -> int:
        """The number of events to come. Raises Conflict where a stream does not stand where it was seen."""
        count = 0
        for name, expected, events in streams:
            last = events[-1]
            if expected.seq == 0:
                self._execute(sql.NEW_HEAD, (name, last.seq, last.hash))
            else:
                self._execute(sql.MOVE_HEAD, (last.seq, last.hash, name, *expected))
            if self._writer.changes() != 1:
                raise Conflict(name)
            count += len(events)
        return count

    def _write_row(self, row: RowWrite) -> None:
        """Only what differs: a column that is written again takes every index it stands in along."""
        if row.values is None:
            self._execute(sql.REMOVE[row.table], (row.key,))
            return
        if row.changed is not None:
            text, chosen = sql.change(row.table, row.changed)
            if not text:
                return
            self._execute(text, chosen(row.values))
            if self._writer.changes() == 1:
                return
        self._execute(sql.PUT[row.table], row.values)

    def _roll_back(self) -> None:
        if self._writer.in_transaction:  # a full disk has rolled back already
            self._writer.execute("ROLLBACK")

    def renew(self, holder: str, now_ms: int, expires_ms: int) -> int:
        self._check_process()
        with self._leader, translated(self._path), self._gate.held():
            self._files.check()
            self._execute(sql.RENEW, (expires_ms, now_ms, holder, now_ms))
            return self._writer.changes()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with self._leader, self._gate.held():
            before, self._alone_on = self._alone_on, threading.get_ident()
            try:
                yield
            finally:
                self._alone_on = before

    # -- news -------------------------------------------------------------------------------------------------------

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        steps = iter(WAIT_STEPS_S)
        step = next(steps)
        left = timeout_s
        while not cancelled() and not self._closed:
            if self._position() > position:
                return True
            if left <= 0:
                return False
            pause = min(step, left)
            with self._news:
                self._listeners += 1
                self._news.wait(pause)
                self._listeners -= 1
            left -= pause
            step = next(steps, WAIT_STEPS_S[-1])
        return False

    def _position(self) -> int:
        with self._borrowed() as connection, translated(self._path):
            return int(connection.execute(sql.POSITION).get)

    # -- upkeep -----------------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        found: list[str] = []
        with self._borrowed() as connection, translated(self._path):
            try:
                found.extend(row[0] for row in connection.execute("PRAGMA integrity_check"))
            except apsw.CorruptError as error:  # too damaged to look on
                found.append(str(error))
        return [] if found == ["ok"] else found

    def backup(self, target: str) -> None:
        """A consistent copy, made while others write."""
        with self._borrowed() as connection, translated(Path(target)):
            connection.execute("VACUUM INTO ?", (target,))

    def restore(self, source: str) -> None:
        """Takes a backup's content in place of our own, in one step that other processes see as any other write."""
        with translated(Path(source)):
            kept = apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            with (
                self._leader,
                translated(self._path),
                self._gate.held(),
                self._writer.backup("main", kept, "main") as copying,
            ):
                copying.step(-1)
        finally:
            kept.close()

    def close(self) -> None:
        if os.getpid() != self._process:  # not ours to close
            return
        self._closed = True
        with self._news:
            self._news.notify_all()
        for connection in (*self._readers, self._writer):
            connection.close()
        self._readers.clear()
        self._gate.close()


def _interrupted() -> StoreRefused:
    return StoreRefused(
        "the thread that was writing for this one was interrupted", hint="look whether it is there, then call again"
    )


def _check_library() -> None:
    found = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if found < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnusable(
            f"SQLite {apsw.sqlite_lib_version()} can lose data here", hint=f"install apsw with {needed}+"
        )
