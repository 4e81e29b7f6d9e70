"""A store elsewhere that a project's own file names: used only after its user said so, once for each project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handrail.kernel.errors import PlaceUnusable
from handrail.outside.trusted_stores import (
    FILE,
    about_file,
    agree,
    agreements,
    is_agreed,
    is_trusted,
    lies_outside,
    trust,
    withdraw,
)

SERVER = "postgresql://team:hunter2@db.example/handrail"


@pytest.mark.parametrize(
    ("db", "outside"),
    [
        ("", False),
        ("state.db", False),
        (".handrail/other.db", False),
        ("../state.db", True),
        ("sub/../../state.db", True),
        ("/somewhere/state.db", True),
        (SERVER, True),
        ("postgres://db.example/handrail", True),
    ],
)
def test_what_lies_outside(tmp_path: Path, db: str, outside: bool) -> None:
    assert lies_outside(db, tmp_path) is outside


def test_a_link_that_leads_out_lies_outside(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "inside").symlink_to(tmp_path)
    assert lies_outside("inside/state.db", project)


def test_links_in_a_circle_lie_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    assert not lies_outside("one/state.db", tmp_path)


def test_a_word_is_kept_for_one_store_of_one_project(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    assert not is_trusted(SERVER, project=project, home=home)
    trust(SERVER, project=project, home=home)
    trust(SERVER, project=project, home=home)
    assert is_trusted(SERVER, project=project, home=home)
    assert not is_trusted(SERVER, project=tmp_path / "another", home=home)
    assert not is_trusted(SERVER + "2", project=project, home=home)
    kept = home / FILE
    assert len(kept.read_text().split()) == 1
    assert "hunter2" not in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_home_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".handrail").write_text("no folder")
    with pytest.raises(PlaceUnusable, match="cannot be written"):
        trust(SERVER, project=tmp_path, home=tmp_path)
    assert not is_trusted(SERVER, project=tmp_path, home=tmp_path)
    assert os.listdir(tmp_path) == [".handrail"]  # noqa: PTH208 - names


def test_agreements_are_listed_and_can_be_withdrawn(tmp_path: Path) -> None:
    project, home, file = tmp_path / "project", tmp_path / "home", tmp_path / "a b.db"
    trust(SERVER, project=project, home=home, shown="postgresql://team@db.example/handrail")
    agree(about_file(file, "tracked"), home, f"{file} (tracked)")
    first, second = agreements(home)
    assert (first.shown, second.shown) == (
        f"{project} in postgresql://team@db.example/handrail",
        f"{file} (tracked)",
    )
    assert is_agreed(about_file(file, "tracked"), home)
    assert not is_agreed(about_file(file, "owner"), home)
    assert withdraw(first, home)
    assert not withdraw(first, home)
    assert not is_trusted(SERVER, project=project, home=home)
    assert agreements(home) == [second]
    assert (home / FILE).stat().st_mode & 0o777 == 0o600


def test_what_others_could_have_written_is_no_agreement(tmp_path: Path) -> None:
    trust(SERVER, project=tmp_path, home=tmp_path)
    (tmp_path / FILE).parent.chmod(0o755)
    (tmp_path / FILE).chmod(0o666)
    assert not is_trusted(SERVER, project=tmp_path, home=tmp_path)
    with pytest.raises(PlaceUnusable, match="others may write"):
        trust(SERVER + "2", project=tmp_path, home=tmp_path)
