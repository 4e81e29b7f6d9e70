"""The repository that all of these tests get, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.shipped_store.scene import Machine, Shipped, clone, ship, unpack


@pytest.fixture(scope="package")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    return ship(tmp_path_factory.mktemp("shipped"))


@pytest.fixture
def cloned(shipped: Shipped, tmp_path: Path) -> Machine:
    return clone(shipped, tmp_path)


@pytest.fixture
def unpacked(shipped: Shipped, tmp_path: Path) -> Machine:
    return unpack(shipped, tmp_path)
