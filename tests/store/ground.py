"""What a store test stands on: an engine of one kind, a store over it, a clock, and a way to open it all again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import psycopg

from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.store.memory import MemoryEngine
from handrail.store.migrations import STEPS, statements
from handrail.store.ports import Engine, LastingEngine, lasting
from handrail.store.postgres import PostgresEngine
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store

VERSION = "0.1.0"


class Ground:
    """One kind of store. `another()` opens it again, as another process would."""

    def __init__(self, kind: str, address: str, opened: Callable[[], Engine]) -> None:
        self.kind = kind
        self.address = address
        self.clock = FixedClock()
        self.ids = CountingIds()
        self._opened = opened
        self._stores: list[Store] = []
        self.store = self.another()

    @property
    def engine(self) -> Engine:
        return self.store.engine

    @property
    def lasting(self) -> LastingEngine:
        """The engine of a kind that outlives its process."""
        return lasting(self.store.engine)

    def another(self) -> Store:
        store = Store(self._opened(), clock=self.clock, ids=self.ids)
        self._stores.append(store)
        return store

    def tamper(self, statement: str, *parameters: Any) -> None:
        """Changes the data behind the store's back."""
        if self.kind == "sqlite":
            connection = apsw.Connection(self.address)
            connection.execute(statement, parameters)
            connection.close()
        else:
            with psycopg.connect(self.address, autocommit=True) as session:
                session.execute(statement.replace("?", "%s"), parameters)

    def close(self) -> None:
        for store in self._stores:
            store.engine.close()


def memory_ground() -> Ground:
    engine = MemoryEngine()
    return Ground("memory", "", lambda: engine)


def sqlite_ground(path: Path) -> Ground:
    return Ground("sqlite", str(path), lambda: SqliteEngine(path, version=VERSION))


def postgres_ground(address: str) -> Ground:
    return Ground("postgres", address, lambda: PostgresEngine(address, version=VERSION))


def older(file: Path, schema: int) -> None:
    """Takes the last step of the schema back: what it made goes, and the number with it."""
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        for statement in reversed(statements(STEPS[-1].sql)):
            _, kind, name, *_ = statement.split()
            connection.execute(f"DROP {kind} {name}")
        connection.execute(f"PRAGMA user_version = {schema}")
