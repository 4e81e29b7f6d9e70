"""Real servers on standard input and output, each with a client that keeps calling, on a PostgreSQL that is killed, cut
off, made read-only, closed to its user, without its tables, or full of connections; and what must be true after it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from handrail.store.postgres import PostgresEngine
from handrail.store.store import Store
from tests.process.peer import DEADLINE_S, ServerProcess, handrail_serve
from tests.process.store_writer import LifeIds
from tests.store.server import restarted, running

ROLE, SCHEMA = "crew", "crew_store"
AWAY = "STORE_AWAY"
PLAIN = ("STORE_AWAY", "STORE_BUSY")
"""Refusals after which a call may be repeated."""


_CUT = f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '{ROLE}'"
ROOM = 25
"""How many connections there are, once the server has been started again."""


def take_all_room(stack: contextlib.ExitStack, address: str) -> None:
    """Takes connections until there are no more."""
    with contextlib.suppress(psycopg.OperationalError):
        while True:
            stack.enter_context(psycopg.connect(address, user="crowd"))


class Ground(NamedTuple):
    """A server that nobody else uses: its administrator's address, and the one that Handrail gets."""

    admin: str
    address: str

    def do(self, *statements: str) -> None:
        with psycopg.connect(self.admin, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    # -- what is done to it ---------------------------------------------------------------------------------------

    def cut(self) -> None:
        self.do(_CUT)

    def killed(self, meanwhile: Callable[[], None]) -> None:
        restarted(self.admin, meanwhile)

    def read_only(self, meanwhile: Callable[[], None]) -> None:
        self._until(
            f"ALTER ROLE {ROLE} SET default_transaction_read_only = on",
            f"ALTER ROLE {ROLE} RESET default_transaction_read_only",
            meanwhile,
        )

    def without_tables(self, meanwhile: Callable[[], None]) -> None:
        rights = f"ALL ON ALL TABLES IN SCHEMA {SCHEMA}"
        self._until(f"REVOKE {rights} FROM {ROLE}", f"GRANT {rights} TO {ROLE}", meanwhile)

    def without_schema(self, meanwhile: Callable[[], None]) -> None:
        rights = f"USAGE ON SCHEMA {SCHEMA}"
        self._until(f"REVOKE {rights} FROM {ROLE}", f"GRANT {rights} TO {ROLE}", meanwhile)

    def barred(self, meanwhile: Callable[[], None]) -> None:
        self._until(f"ALTER ROLE {ROLE} NOLOGIN", f"ALTER ROLE {ROLE} LOGIN", meanwhile)

    def crowded(self, meanwhile: Callable[[], None]) -> None:
        """Every connection is taken, except those kept for the administrator."""
        with contextlib.ExitStack() as stack:
            self.do("CREATE ROLE crowd LOGIN")
            stack.callback(self.do, "DROP ROLE crowd")
            self._until(
                f"ALTER ROLE {ROLE} NOLOGIN", f"ALTER ROLE {ROLE} LOGIN", lambda: take_all_room(stack, self.admin)
            )
            meanwhile()

    def _until(self, statement: str, back: str, meanwhile: Callable[[], None]) -> None:
        self.do(statement)
        self.cut()
        try:
            meanwhile()
        finally:
            self.do(back)
            self.cut()  # a session keeps what it was told when it began


WAYS: tuple[Callable[[Ground, Callable[[], None]], None], ...] = (
    Ground.killed,
    Ground.read_only,
    Ground.without_tables,
    Ground.without_schema,
    Ground.barred,
    Ground.crowded,
)


@contextlib.contextmanager
def ground() -> Iterator[Ground]:
    with running(of_its_own=True) as admin:
        where = conninfo_to_dict(admin)
        options = f"host={quote(str(where['host']), safe='')}&options=-csearch_path%3D{SCHEMA}"
        made = Ground(admin, f"postgresql://{ROLE}@/{where['dbname']}?{options}")
        made.do(
            f"CREATE ROLE {ROLE} LOGIN",
            f"CREATE SCHEMA {SCHEMA}",
            f"GRANT USAGE, CREATE ON SCHEMA {SCHEMA} TO {ROLE}",
            f"ALTER SYSTEM SET max_connections = {ROOM}",
        )
        yield made


class Told(NamedTuple):
    """What a client was told about one call: the id it got, or the refusal."""

    name: str
    id: str | None
    error: dict[str, Any]

    @property
    def is_unknown(self) -> bool:
        return bool(self.error) and self.error["details"].get("outcome") == "unknown"


class Caller:
    """A client of one server that makes workflows, one after the other, whatever it is told."""

    def __init__(self, number: int, server: ServerProcess, *, keyed: bool) -> None:
        self._number = number
        self.server = server
        self._keyed = keyed
        """Whether it repeats a refused call under the same idempotency key until it is done."""
        self.told: list[Told] = []
        self._calling = threading.Lock()
        self._count = 0
        server.initialize()

    def call(self) -> Told:
        """Makes one call. A keyed one is repeated until it is acknowledged, or until `once` is enough."""
        with self._calling:
            last = self.told[-1] if self.told else None
            if not (self._keyed and last is not None and last.id is None):
                self._count += 1
            name = f"w{self._number}-{self._count}"
            arguments: dict[str, Any] = {"name": name, "source_type": "prompt", "source_content": "x"}
            if self._keyed:
                arguments["idempotency_key"] = name
            reply = self.server.ask("tools/call", {"name": "workflow_create", "arguments": arguments})
            result = reply["result"]["structuredContent"]
            told = Told(name, result.get("id"), result.get("error", {}))
            self.told.append(told)
            return told


class Crew:
    """Servers and their callers on one ground."""

    def __init__(self, ground: Ground, folder: Path, size: int) -> None:
        self.ground = ground
        self._stack = contextlib.ExitStack()
        self.callers: list[Caller] = []
        options = ("--toolsets", "workflow,idempotency", "--db", ground.address)
        for number in range(size):
            home = folder / f"server_{number}"
            home.mkdir()
            server = self._stack.enter_context(handrail_serve(home, *options))
            self.callers.append(Caller(number, server, keyed=number % 2 == 1))
        self._enough = threading.Event()
        self._threads: list[threading.Thread] = []
        self._trouble: list[Exception] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._stack.close()

    def load(self) -> None:
        """From now on everybody keeps calling."""
        for caller in self.callers:
            thread = threading.Thread(target=self._call_on, args=(caller,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _call_on(self, caller: Caller) -> None:
        try:
            while not self._enough.is_set():
                if caller.call().id is None:
                    self._enough.wait(0.02)
        except (AssertionError, KeyError, OSError) as error:
            self._trouble.append(error)

    def until(self, what: Callable[[Caller], int], more: int) -> None:
        """Waits until every caller has so many more of something."""
        before = [what(caller) for caller in self.callers]
        pause = threading.Event()
        until_s = time.monotonic() + 3 * DEADLINE_S
        while time.monotonic() < until_s:
            assert not self._trouble, self._trouble
            if all(what(caller) >= was + more for caller, was in zip(self.callers, before, strict=True)):
                return
            pause.wait(0.01)
        raise AssertionError(f"{what.__name__}: {before} and not {more} more")

    def outage(self, most_s: float) -> None:
        """Lasts until everybody was refused, or so long: a write whose connection was lost is looked for meanwhile."""
        until_s = time.monotonic() + most_s
        before = [refused(caller) for caller in self.callers]
        pause = threading.Event()
        while time.monotonic() < until_s and any(
            refused(caller) == was for caller, was in zip(self.callers, before, strict=True)
        ):
            pause.wait(0.01)

    def end(self) -> None:
        """Ends the load and every server, in good order."""
        self._enough.set()
        for thread in self._threads:
            thread.join(DEADLINE_S)
        assert not self._trouble, self._trouble
        for caller in self.callers:
            while caller._keyed and caller.told and caller.told[-1].id is None:
                caller.call()
            assert caller.server.process.poll() is None, "a server died"
            caller.server.end_input()
            assert caller.server.wait() == 0
            said = caller.server.errors()
            assert "Traceback" not in said, said

    def problems(self) -> Iterator[str]:
        """What is not as it was told. Call it after `end`."""
        engine = PostgresEngine(self.ground.address, version="0")
        try:
            store = Store(engine, ids=LifeIds())
            yield from store.verify()
            made: Counter[str] = Counter()
            ids: dict[str, str] = {}
            for event in store.feed(limit=1_000_000):
                if event.kind == "workflow.created":
                    (row,) = [change.after for change in event.changes if change.table == "workflow"]
                    assert row is not None
                    made[row["name"]] += 1
                    ids[row["name"]] = event.stream
        finally:
            engine.close()
        for caller in self.callers:
            yield from _problems_of(caller, made, ids)


def _problems_of(caller: Caller, made: Counter[str], ids: dict[str, str]) -> Iterator[str]:
    done = {told.name: told.id for told in caller.told if told.id is not None}
    unknown = {told.name for told in caller.told if told.is_unknown}
    for told in caller.told:
        if told.id is None and told.error["code"] not in PLAIN:
            yield f"{told.name}: refused with {told.error['code']}: {told.error['message']}"
        if told.id is None and not told.error["hint"]:
            yield f"{told.name}: the refusal does not say what to do"
    for name, key in done.items():
        if made[name] != 1 or ids.get(name) != key:
            yield f"{name}: acknowledged as {key}, and there {made[name]} times, as {ids.get(name)}"
    for name in {told.name for told in caller.told} - done.keys():
        if made[name] > (1 if name in unknown else 0):
            yield f"{name}: refused, and there {made[name]} times"


def acknowledged(caller: Caller) -> int:
    return sum(told.id is not None for told in tuple(caller.told))


def refused(caller: Caller) -> int:
    return sum(told.id is None for told in tuple(caller.told))


def unknown(caller: Caller) -> int:
    return sum(told.is_unknown for told in tuple(caller.told))
