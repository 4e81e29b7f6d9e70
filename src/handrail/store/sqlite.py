"""SQLite: the default engine. Many processes share one file, and each writes now and then.

Writers queue at a gate (a lock on a file beside the database) before they begin, because SQLite's own waiting is a
lottery that can starve one of them; the kernel opens the gate when its holder dies. Threads of one process that write
at the same time are committed together. Whatever is acknowledged has been committed.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.provenance import MachineKey
from handrail.store import origin
from handrail.store import sqlite_upkeep as upkeep
from handrail.store import statements as sql
from handrail.store.lease_clock import ANCHOR_KEY, LeaseClock, MachineTime, anchor_of, machine_time, new_anchor
from handrail.store.marks import is_moved, moved
from handrail.store.migrations import LATEST, STEPS, statements
from handrail.store.origin import APPLICATION_ID as APPLICATION_ID  # noqa: PLC0414 - callers know it from here
from handrail.store.origin import BUSY_MS as BUSY_MS  # noqa: PLC0414 - as above
from handrail.store.places import OTHER_FILE, Files, check_place, make_private
from handrail.store.ports import EngineInfo, Reader, Size, Vacuumed
from handrail.store.shapes import check_shape
from handrail.store.sqlite_connections import check_library, connect, end_look, inert
from handrail.store.sqlite_copy import SqliteRows, SqliteStill, moved_to
from handrail.store.sqlite_copy import fill as fill_from
from handrail.store.sqlite_reads import SqliteReader
from handrail.store.sqlite_refusals import interrupted, opening, refusal_for, refuse, refuse_schema, translated
from handrail.store.store_copy import Rows, Still, Tell, differences, report_nothing
from handrail.store.write_lock import WriteLock
from handrail.store.writes import Conflict, PendingWrites, RowWrite, StreamWrite, WriteSet

GROUP, RESTORE_PAGES = 64, 1000
"""How many units of one process are committed together; pages between two progress reports of a restore."""
KEEP_IDLE = 16
"""How many idle read connections are kept for the next reader: each has its own cache of up to 16 MB."""
WAIT_STEPS_S = (0.002, 0.005, 0.01, 0.025, 0.05)


class SqliteEngine:
    """A store in one file."""

    def __init__(
        self,
        path: Path,
        *,
        version: str,
        durable: bool = False,
        busy_ms: int = BUSY_MS,
        time: Callable[[], MachineTime] = machine_time,
        key: MachineKey | None = None,
    ) -> None:
        """Opens the file, creating or upgrading it if needed. A file with the current schema is not written to. With a
        key, a file that does not carry its mark is refused."""
        check_library()
        check_place(path)
        self._path = path
        self._key = key
        self._durable = durable
        self._version = version
        self._busy_ms = busy_ms
        self._clock = LeaseClock(time)
        self._process = os.getpid()
        self._readers: list[apsw.Connection] = []
        self._queue: deque[PendingWrites] = deque()
        self._leader = threading.RLock()
        self._alone_on: int | None = None
        """The thread that keeps all others out, including those of its own process."""
        self._own_version = -1
        """The file's version as our last commit left it."""
        self._cookie = -1
        """Changes with every change of the file's schema; as it was when the schema was last compared."""
        self._news = threading.Condition()
        self._listeners = 0
        self._closed = False
        real = os.path.realpath(path)  # SQLite, too, keeps its files beside the target of a link
        self._gate = WriteLock(Path(f"{real}.gate"), busy_ms / 1000)
        make_private(Path(real))
        with opening(), translated(path):
            self._open_writer()
            try:
                self._make_current()
                self._files = Files(path, Path(f"{real}-wal"))
            except BaseException:
                self.close()
                raise

    def info(self) -> EngineInfo:
        return EngineInfo("sqlite", str(self._path), apsw.sqlite_lib_version(), LATEST)

    # -- opening ----------------------------------------------------------------------------------------------------

    def clock_remark(self) -> str | None:
        return self._clock.remark

    def _open_writer(self) -> None:
        self._writer = self._connect()
        self._execute = self._writer.cursor().execute

    def _check_files(self) -> None:
        """Raises StoreUnusable if our files are gone. One that could only be read when it was opened is opened again,
        because it may be writable by now."""
        self._files.check()
        if self._writer.readonly("main"):
            self._writer.close()
            self._open_writer()

    def _connect(self) -> apsw.Connection:
        return connect(self._path, busy_ms=self._busy_ms, durable=self._durable)

    def _schema(self) -> int:
        return int(self._writer.execute("PRAGMA user_version").get)

    def _make_current(self) -> None:
        found = self._own_schema()
        if found > LATEST:
            refuse_schema(found, self._path, self._writer, self._version)
        if found == LATEST and self._writer.execute("PRAGMA journal_mode").get == "wal":
            return
        with self._gate.held():
            if self._writer.execute("PRAGMA journal_mode").get != "wal":
                self._writer.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
                self._writer.execute("PRAGMA journal_mode = WAL").fetchall()
            for step in STEPS:
                self._apply_migration(step.number, step.sql, step.since)

    def _own_schema(self) -> int:
        """The file's schema. Refuses a file that holds something and is not ours, or holds more than a store does."""
        self._writer.execute("BEGIN")  # one consistent read: another process may be creating the tables right now
        try:
            found = self._schema()
            ours = self._writer.execute("PRAGMA application_id").get == APPLICATION_ID
            if not (ours and found) and (found or self._writer.execute("SELECT count(*) FROM sqlite_schema").get):
                raise StoreUnusable(f"{self._path} is a database of something else", hint=OTHER_FILE)
            if ours and found <= LATEST:
                self._cookie = self._writer.execute("PRAGMA schema_version").get
                check_shape(self._writer, str(self._path), found)
            if found:
                origin.check_mark(self._writer, self._path, self._key)
        finally:
            self._roll_back()
        return found

    def _apply_migration(self, number: int, text: str, since: str) -> None:
        """Takes one step in one transaction; another process may have taken it while we waited."""
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            if self._schema() < number:
                for statement in statements(text):
                    self._writer.execute(statement)
                self._writer.execute(sql.KEEP_META, ("needs", since))
                if number == 1:  # nobody else has seen it yet
                    origin.put_mark(self._writer, self._key)
                self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._writer.execute(f"PRAGMA user_version = {number}")
            self._writer.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    # -- reading ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self, *, aside: bool = False) -> Iterator[Reader]:
        self._check_process()
        connection = self._writer
        began = self._clock.read()
        # Use the writer's own connection when it is free: its cache is warm, another's would be cold.
        own = not aside and self._leader.acquire(blocking=False)
        try:
            if not own or connection.in_transaction:
                connection = self._borrow()
            found = int(connection.execute("BEGIN; PRAGMA user_version").get)
            try:
                if is_moved(found):  # what is here is no longer current
                    raise moved(str(self._path), moved_to(connection))
                yield SqliteReader(connection, self._clock, began)
            finally:
                end_look(connection)
        except apsw.Error as error:
            refuse(error, self._path)
        finally:
            if connection is not self._writer:
                self._give_back(connection)
            if own:
                self._leader.release()

    def _borrow(self) -> apsw.Connection:
        """A connection for the caller alone until it is given back."""
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
            self._give_back(connection)

    def _give_back(self, connection: apsw.Connection) -> None:
        """Keeps a connection for the next reader; closes it if there are enough, or if the store is closed."""
        if self._closed or len(self._readers) >= KEEP_IDLE:
            connection.close()
        else:
            self._readers.append(connection)

    def _check_process(self) -> None:
        """SQLite's locks and the gate belong to the process that took them; a fork has neither."""
        if os.getpid() != self._process:
            raise StoreUnusable(f"{self._path} was opened before this process was forked", hint="open it again here")

    # -- writing ----------------------------------------------------------------------------------------------------

    def commit(self, writes: WriteSet) -> int:
        self._check_process()
        pending = PendingWrites(writes)
        if self._alone_on == threading.get_ident():
            self._commit_group([pending])
        else:
            self._queue.append(pending)
            with self._leader:  # the first to arrive commits for everyone queued by then
                while not pending.done:  # more than one group may be ahead of ours
                    if not self._queue:  # the thread that took it was interrupted before committing
                        raise interrupted()
                    self._commit_group(self._next_group())
        if pending.error is not None:
            raise pending.error
        if self._listeners:
            with self._news:
                self._news.notify_all()
        return pending.position

    def _next_group(self) -> list[PendingWrites]:
        return [self._queue.popleft() for _ in range(min(GROUP, len(self._queue)))]

    def _commit_group(self, batch: list[PendingWrites]) -> None:
        depth = self._gate.depth
        try:
            self._gate.enter()
            self._transact(batch)
            self._gate.leave_to(depth)
        except BaseException as error:
            self._gate.leave_to(depth)
            refusal = self._as_refusal(error)
            for pending in batch:
                pending.error = pending.error or refusal
            if not isinstance(error, Exception):
                raise
        finally:
            for pending in batch:
                pending.done = True

    def _as_refusal(self, error: BaseException) -> Exception:
        """The error to give a group's writers when the thread that wrote for them failed."""
        if isinstance(error, apsw.Error):
            return refusal_for(error, self._path) or error
        return error if isinstance(error, Exception) else interrupted()

    def _transact(self, batch: list[PendingWrites]) -> None:
        self._check_files()
        self._execute("BEGIN IMMEDIATE")
        try:
            if self._writer.data_version() != self._own_version:
                self._check_schema()
            if len(batch) == 1:
                batch[0].position = self._apply(batch[0].writes)
            else:
                for pending in batch:
                    self._apply_within(pending)
            if self._clock.is_due:
                self._keep_anchor()
            self._execute("COMMIT")
            self._own_version = self._writer.data_version()
        except Conflict as conflict:
            batch[0].error = conflict
            self._roll_back()
        except BaseException:
            self._roll_back()
            raise

    def _keep_anchor(self) -> None:
        """Keeps from which moment leases are judged during this start of the machine, unless somebody has."""
        at = self._clock.read()
        anchor = anchor_of(self._execute(sql.ANCHOR).get)
        if anchor is None or anchor.boot != at.boot:
            anchor = new_anchor(at, int(self._execute(sql.LAST_RENEWED).get))
            self._execute(sql.KEEP_META, (ANCHOR_KEY, anchor.text))
        self._clock.is_due = False

    def _check_schema(self) -> None:
        """Others have written since our last commit: one may be a newer Handrail, or have moved the store, or be
        something else that left a trigger behind."""
        if (found := self._schema()) != LATEST:
            refuse_schema(found, self._path, self._writer, self._version)
        if (cookie := self._writer.execute("PRAGMA schema_version").get) != self._cookie:
            check_shape(self._writer, str(self._path), LATEST)
            self._cookie = cookie

    def _apply_within(self, pending: PendingWrites) -> None:
        """Applies one of several write sets: if it fails, only its own changes are rolled back."""
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
        """Moves the heads and returns how many events will follow. Raises Conflict if a stream has moved on."""
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
        """Writes only what differs: rewriting a column also rewrites every index that contains it."""
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
        if self._writer.in_transaction:  # after a full disk, SQLite has rolled back already
            self._writer.execute("ROLLBACK")

    def renew(self, holder: str, ttl_ms: int, now_ms: int | None = None) -> int:
        self._check_process()
        with self._leader, translated(self._path), self._gate.held():
            self._check_files()
            with self._writing():
                if now_ms is None:
                    now_ms = SqliteReader(self._writer, self._clock, self._clock.read()).moment().lease_ms
                self._execute(sql.RENEW, (now_ms + ttl_ms, now_ms, holder, now_ms))
                renewed = self._writer.changes()
                self._execute("COMMIT")
            return renewed

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction of its own, in a file that may still be written to. Rolled back unless it was committed."""
        self._execute("BEGIN IMMEDIATE")
        try:
            self._check_schema()
            yield
        finally:
            self._roll_back()

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
        self._files.check()  # who waits would never hear of what is written to a file put in its place
        with self._borrowed() as connection, translated(self._path):
            if is_moved(int(connection.execute("PRAGMA user_version").get)):  # no event will ever come here
                raise moved(str(self._path), moved_to(connection))
            return int(connection.execute(sql.POSITION).get)

    # -- upkeep -----------------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        with self._borrowed() as connection, translated(self._path):
            return upkeep.damage(connection)

    def sizes(self) -> list[Size]:
        with self._borrowed() as connection, translated(self._path):
            return upkeep.sizes(connection, self._path)

    def is_empty(self) -> bool:
        with self._borrowed() as connection, translated(self._path):
            return not connection.execute("SELECT EXISTS (SELECT 1 FROM stream)").get

    def vacuum(self, now_ms: int, *, full: bool = False) -> Vacuumed:  # noqa: ARG002 - it is always full
        with self._leader, translated(self._path), self._gate.held():
            self._files.check()
            self._check_schema()
            return upkeep.vacuum(self._writer, self._path, now_ms, self._busy_ms)

    @contextlib.contextmanager
    def still(self) -> Iterator[Still]:
        with self._leader, translated(self._path), self._gate.held():
            self._files.check()
            self._execute("PRAGMA synchronous = FULL")  # a mark lost in a power cut would leave two live stores
            with self._writing():
                yield SqliteStill(self._writer)

    def fill(self, source: Rows, tell: Tell = report_nothing) -> None:
        with self._leader, translated(self._path), self._gate.held():
            fill_from(self._writer, source, tell)
        problems = differences(source, SqliteRows(self._writer))
        if problems:
            raise StoreUnusable(f"{self._path} is not a true copy: {problems[0]}", hint="remove it, and copy again")

    def backup(self, target: str, tell: Tell = report_nothing) -> None:  # noqa: ARG002 - SQLite does it in one go
        """Makes a consistent copy while others write."""
        with self._borrowed() as connection, translated(Path(target)):
            connection.execute("VACUUM INTO ?", (target,))

    def restore(self, source: str, tell: Tell = report_nothing) -> None:
        """Replaces our content with a backup's, in one step that other processes see like any other write."""
        with translated(Path(source)):
            kept = inert(source, apsw.SQLITE_OPEN_READONLY)
        try:
            with translated(Path(source)):
                check_shape(kept, source, LATEST)
            with self._leader, translated(self._path), self._gate.held():
                self._files.check()
                self._check_schema()  # it may have moved while its user was asked
                with self._writer.backup("main", kept, "main") as copying:
                    while not copying.done:
                        copying.step(RESTORE_PAGES)
                        tell("restoring pages", copying.page_count - copying.remaining, copying.page_count)
                origin.adopt(self._writer, self._key)
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
