"""A small repository, made once and copied for every test, with room for worktrees beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.outside.tracking.playground import Playground, make_base, write_global_config
from tests.outside.worktrees.grove import Grove

_BASE: list[Path] = []


def copied_base(folder: Path, factory: pytest.TempPathFactory) -> Playground:
    write_global_config()
    if not _BASE:
        _BASE.append(factory.mktemp("base") / "repo")
        make_base(_BASE[0])
    shutil.copytree(_BASE[0], folder, symlinks=True)
    return Playground(folder)


@pytest.fixture
def grove(tmp_path: Path, _empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Grove:
    return Grove(copied_base(tmp_path / "repo", tmp_path_factory))
