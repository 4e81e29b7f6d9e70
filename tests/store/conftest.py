"""The grounds store tests stand on. One PostgreSQL server for the whole run; every test has a schema of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.store.ground import Ground, memory_ground, postgres_ground, sqlite_ground
from tests.store.server import empty, running, schema_of_its_own

_numbers = count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a running PostgreSQL."""
    with running() as address:
        yield address


@pytest.fixture(scope="session")
def new_schema(postgres_server: str) -> Callable[[], contextlib.AbstractContextManager[str]]:
    """Makes addresses with an empty schema each."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    return lambda: schema_of_its_own(postgres_server, f"test_{worker}_{os.getpid()}_{next(_numbers)}")


@pytest.fixture(scope="session")
def used_schema(new_schema: Callable[[], contextlib.AbstractContextManager[str]]) -> Iterator[str]:
    """An address whose tables are made once, and emptied for whoever comes next."""
    with new_schema() as address:
        yield address


def _ground(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    with contextlib.ExitStack() as stack:
        if kind == "postgres":
            address = request.getfixturevalue("used_schema")
            stack.callback(empty, address)
            ground = postgres_ground(address)
        else:
            ground = memory_ground() if kind == "memory" else sqlite_ground(tmp_path / "handrail.db")
        stack.callback(ground.close)
        yield ground


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    """Every kind of store."""
    yield from _ground(request.param, request, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    """The kinds that outlive a process."""
    yield from _ground(request.param, request, tmp_path)


@pytest.fixture
def postgres(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    yield from _ground("postgres", request, tmp_path)


@pytest.fixture
def sqlite(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    yield from _ground("sqlite", request, tmp_path)
