"""A small repository, made once and copied for every test; a tracker with its state beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from handrail.outside.tracking.git_tracker import GitTracker
from handrail.outside.world import RandomIds, SystemClock
from tests.outside.tracking.playground import Playground, make_base, write_global_config

_BASE: list[Path] = []


@pytest.fixture
def repo(tmp_path: Path, _empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Playground:
    write_global_config()
    if not _BASE:
        folder = tmp_path_factory.mktemp("base") / "repo"
        make_base(folder)
        _BASE.append(folder)
    top = tmp_path / "repo"
    shutil.copytree(_BASE[0], top, symlinks=True)
    return Playground(top)


@pytest.fixture
def tracker(tmp_path: Path) -> GitTracker:
    return tracker_in(tmp_path / "state")


def tracker_in(folder: Path) -> GitTracker:
    clock = SystemClock()
    return GitTracker(folder, clock=clock, ids=RandomIds(clock))
