"""`handrail db trust`: a repository's config file sends nobody's work anywhere before a person said so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click.testing
import pytest

from handrail.domain.crew.tokens import Strangers
from handrail.hooks.place import Options, find_place
from handrail.surfaces.cli.keep.db_trust import told_of_strangers
from handrail.surfaces.cli.main import cli


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".handrail").mkdir(parents=True)
    (folder / ".handrail" / "config.toml").write_text('db = "../elsewhere.db"\n')
    return folder


def run(project: Path, *argv: str, given: str = "", **variables: str) -> click.testing.Result:
    home = {"HOME": str(project.parent / "home"), "NO_COLOR": "1", "COLUMNS": "120", **variables}
    return click.testing.CliRunner(env=home).invoke(cli, [*argv, "--root", str(project)], input=given)


WRITE = ("call", "start_workflow", "name=Work", "description=d")


def test_a_store_that_a_repository_names_is_not_used_before_somebody_says_so(project: Path) -> None:
    elsewhere = project.parent / "elsewhere.db"
    refused = run(project, *WRITE)
    assert (refused.exit_code, elsewhere.exists()) == (1, False)
    assert "STORE_NOT_TRUSTED" in refused.output
    assert "handrail db trust" in refused.output
    assert run(project, "db", "trust", given="n\n").exit_code == 1
    assert run(project, *WRITE).exit_code == 1
    assert run(project, "db", "trust", given="y\n").exit_code == 0
    assert run(project, *WRITE).exit_code == 0
    assert elsewhere.exists()


def test_a_store_that_is_not_there_yet_is_not_shown_as_empty(project: Path) -> None:
    for setting in ('db = "../elsewhere.db"\n', "global_store = true\n"):
        (project / ".handrail" / "config.toml").write_text(setting)
        shown = run(project, "status")
        assert (shown.exit_code, "STORE_NOT_TRUSTED" in shown.output) == (1, True)


def test_one_credential_and_several_are_told_in_their_numbers() -> None:
    token: Any = "token"  # they are only counted
    agent: Any = "agent"
    assert "the secret of 1 agent in it was not made" in told_of_strangers(Strangers([], [agent]))
    assert "1 token in it was not made on this machine and lets" in told_of_strangers(Strangers([token], []))
    assert "the secrets of 2 agents in it were not made" in told_of_strangers(Strangers([], [agent, agent]))
    assert "1 token and the secret of 1 agent in it were" in told_of_strangers(Strangers([token], [agent]))
    assert not told_of_strangers(Strangers([], []))


def test_who_names_the_store_needs_no_trust(project: Path) -> None:
    done = run(project, *WRITE, HANDRAIL_DB="../elsewhere.db")
    assert done.exit_code == 0, done.output
    assert run(project, *WRITE, "--db", str(project.parent / "third.db")).exit_code == 0


def test_a_store_in_the_project_needs_no_trust(project: Path) -> None:
    (project / ".handrail" / "config.toml").write_text('db = "state.db"\n')
    assert run(project, *WRITE).exit_code == 0
    refused = run(project, "db", "trust", "--yes")
    assert (refused.exit_code, "nothing to trust" in refused.output) == (2, True)


def test_another_project_is_not_trusted_with_it(project: Path, tmp_path: Path) -> None:
    assert run(project, "db", "trust", "--yes").exit_code == 0
    other = tmp_path / "other"
    (other / ".handrail").mkdir(parents=True)
    (other / ".handrail" / "config.toml").write_text('db = "../elsewhere.db"\n')
    assert run(other, *WRITE).exit_code == 1


def test_doctor_says_it_and_opens_nothing(project: Path) -> None:
    (project / ".git").mkdir()
    done = run(project, "doctor")
    assert "which nobody trusted" in " ".join(done.output.split())
    assert not (project.parent / "elsewhere.db").exists()


def test_who_moves_a_store_has_said_so(tmp_path: Path) -> None:
    project = tmp_path / "moved"
    (project / ".handrail").mkdir(parents=True)
    assert run(project, *WRITE).exit_code == 0
    assert run(project, "db", "move", str(tmp_path / "new.db"), "--yes").exit_code == 0
    assert run(project, *WRITE).exit_code == 0


@pytest.mark.parametrize("argv", [("db", "upgrade"), ("db", "release", "--yes")])
def test_no_command_opens_what_nobody_trusted(project: Path, argv: tuple[str, ...]) -> None:
    elsewhere = project.parent / "elsewhere.db"
    assert run(project, *WRITE, HANDRAIL_DB="../elsewhere.db").exit_code == 0
    before = {file: file.stat().st_mtime_ns for file in elsewhere.parent.iterdir() if file != project}
    done = run(project, *argv)
    assert "names a store elsewhere" in " ".join(done.output.split())
    assert {file: file.stat().st_mtime_ns for file in elsewhere.parent.iterdir() if file != project} == before


def test_a_hook_asks_no_store_that_nobody_trusted(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project.parent / "home"))
    (project / ".git").mkdir()
    assert run(project, *WRITE, HANDRAIL_DB="../elsewhere.db").exit_code == 0
    assert find_place(str(project), Options([]), os.environ) is None
    assert run(project, "db", "trust", "--yes").exit_code == 0
    found = find_place(str(project), Options([]), os.environ)
    assert found is not None
    assert found.store == str(project.parent / "elsewhere.db")


def test_a_link_in_place_of_the_projects_own_store_leads_nowhere(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "linked", tmp_path / "elsewhere.db"
    (project / ".handrail").mkdir(parents=True)
    (project / ".handrail" / "handrail.db").symlink_to(elsewhere)
    refused = run(project, *WRITE)
    assert (refused.exit_code, elsewhere.exists()) == (1, False)
    assert "leads out of the project" in " ".join(refused.output.split())
    assert run(project, *WRITE, "--db", str(elsewhere)).exit_code == 0
    assert run(project, "status").exit_code == 1
    assert "leads out of the project" in " ".join(run(project, "doctor").output.split())
    (project / ".handrail" / "handrail.db").unlink()
    (project / ".handrail" / "handrail.db").symlink_to(project / "own.db")
    assert run(project, *WRITE).exit_code == 0
