"""`db restore` and `db move` with a backup or a store that holds more than its schema, or is no file at all: refused by
name, before anything is replaced; what it holds never runs. More kinds of strangers: tests/store/test_backups.py."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.hostile.program import create, handrail, recorded

SLY = "CREATE TRIGGER sly AFTER UPDATE ON stream BEGIN UPDATE workflow SET name = 'mine'; END"
NAMED = "trigger sly on stream is not part of a store"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with something recorded, and a backup from before that."""
    folder = tmp_path_factory.mktemp("ground")
    project = folder / "project"
    project.mkdir()
    create(project, "before")
    assert handrail(project, "db", "backup", str(folder / "backup.db")).returncode == 0
    create(project, "precious")
    return folder


@pytest.fixture
def project(ground: Path, tmp_path: Path) -> Path:
    shutil.copytree(ground / "project", tmp_path / "project")
    return tmp_path / "project"


@contextlib.contextmanager
def nothing_replaced(project: Path) -> Iterator[None]:
    before = sorted(path.name for path in (project / ".handrail").iterdir())
    yield
    assert "precious" in recorded(project)
    assert sorted(path.name for path in (project / ".handrail").iterdir()) == before


def changed(path: Path, statement: str) -> None:
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute(statement).fetchall()


def test_a_backup_with_a_trigger_is_refused(ground: Path, project: Path, tmp_path: Path) -> None:
    sly = tmp_path / "sly.db"
    shutil.copyfile(ground / "backup.db", sly)
    changed(sly, SLY)
    with nothing_replaced(project):
        done = handrail(project, "db", "restore", str(sly), "--yes")
        assert done.returncode == 2, done.stdout
        assert NAMED in done.stderr
        assert str(sly) in done.stderr


def test_a_file_that_is_none_is_refused_at_once(project: Path, tmp_path: Path) -> None:
    empty, pipe = tmp_path / "empty.db", tmp_path / "pipe.db"
    empty.touch()
    os.mkfifo(pipe)
    named = {empty: "is empty", pipe: "is no ordinary file", Path("/dev/zero"): "is no ordinary file"}
    with nothing_replaced(project):
        for source, said in named.items():
            done = handrail(project, "db", "restore", str(source), "--yes")
            assert done.returncode == 2, (source, done.stdout)
            assert said in done.stderr, source


def test_a_refused_backup_makes_no_store(ground: Path, tmp_path: Path) -> None:
    nothing, empty = tmp_path / "nothing", tmp_path / "empty.db"
    nothing.mkdir()
    empty.touch()
    assert handrail(nothing, "db", "restore", str(empty), "--yes").returncode == 2
    assert list(nothing.iterdir()) == []


def test_a_store_with_a_trigger_is_used_for_nothing_until_it_is_made_anew(project: Path, tmp_path: Path) -> None:
    changed(project / ".handrail" / "handrail.db", SLY)
    for argv in (("db", "verify"), ("db", "move", str(tmp_path / "new.db"), "--yes")):
        done = handrail(project, *argv)
        assert done.returncode == 1, argv
        assert NAMED in done.stderr
    assert not (tmp_path / "new.db").exists()
    done = handrail(project, "db", "rebuild", "--yes")
    assert done.returncode == 0, done.stderr
    create(project, "after")
    told = recorded(project)
    assert "precious" in told
    assert "mine" not in told
    assert handrail(project, "db", "verify").returncode == 0


def test_a_store_that_is_not_sound_is_not_moved(project: Path, tmp_path: Path) -> None:
    changed(project / ".handrail" / "handrail.db", "UPDATE workflow SET name = 'mine'")
    done = handrail(project, "db", "move", str(tmp_path / "new.db"), "--yes")
    assert done.returncode == 1
    assert "is not sound: workflow" in done.stderr
    assert list(tmp_path.glob("new.db*")) == []
