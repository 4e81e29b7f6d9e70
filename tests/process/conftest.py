"""The stores on which real processes meet: a file, and a schema of one PostgreSQL that runs for all of them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from tests.store.server import running, schema_of_its_own

_schemas = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a running PostgreSQL."""
    with running() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def store_options(request: pytest.FixtureRequest) -> Iterator[tuple[str, ...]]:
    """What a command is told so that processes share one store: nothing where it is the project's own file."""
    if request.param == "sqlite":
        yield ()
        return
    server = request.getfixturevalue("postgres_server")
    with schema_of_its_own(server, f"processes_{os.getpid()}_{next(_schemas)}") as address:
        yield ("--db", address)
