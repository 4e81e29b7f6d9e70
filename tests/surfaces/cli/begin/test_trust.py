"""`handrail trust`: what it shows, whom it asks, what it keeps and takes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.surfaces.cli.begin import trust as command
from handrail.surfaces.cli.main import cli

CONFIG = (
    'http = "0.0.0.0:1"\nown_flows = ["hasty"]\ndb = "../elsewhere.db"\n[checks]\ntests = ["pytest", "-q\\u202e"]\n'
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".handrail").mkdir(parents=True)
    (folder / ".handrail" / "config.toml").write_text(CONFIG, encoding="utf-8")
    return folder


def run(project: Path, *argv: str, typed: str | None = None) -> click.testing.Result:
    runner = click.testing.CliRunner()
    return runner.invoke(cli, ["trust", *argv, "--root", str(project)], input=typed)


def listed(project: Path) -> Any:
    return msgspec.json.decode(run(project, "--list", "--json").stdout)


def test_everything_is_shown_and_asked_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "sits_at_terminal", lambda: True)
    assert run(project, typed="n\n").exit_code == 1
    assert len(listed(project)["waiting"]) == 4
    asked = run(project, typed="y\n")
    for line in (
        'check "tests": ["pytest","-q\\u202e"]',
        'http = "0.0.0.0:1"',
        'own_flows = ["hasty"]',
        "elsewhere.db",
        "weaker than []",
    ):
        assert line in asked.stdout
    again = run(project)
    assert (again.exit_code, "nothing waits" in again.stdout) == (0, True)


def test_a_pipe_is_not_asked_and_json_asks_nothing(project: Path) -> None:
    refused = run(project, typed="y\n")
    assert (refused.exit_code, "NOT_ALLOWED" in refused.stderr) == (1, True)
    assert run(project, "--json").exit_code != 0
    assert len(listed(project)["waiting"]) == 4


def test_what_is_trusted_is_listed_and_taken_back(project: Path) -> None:
    assert msgspec.json.decode(run(project, "--yes", "--json").stdout)["trusted"] == [
        "db",
        "checks",
        "own_flows",
        "http",
    ]
    known = listed(project)
    assert known["waiting"] == []
    assert known["trusted"][0]["project"] == str(project)
    assert known["trusted"][0]["follows"] == ["checks", "http"]
    assert known["trusted"][0]["never_weaker"] == {"own_flows": ["hasty"]}
    assert len(known["stores"]) == 1
    assert "checks, http" in run(project, "--list").stdout
    assert msgspec.json.decode(run(project, "--remove", "--yes", "--json").stdout)["removed"] == [
        "checks",
        "db",
        "http",
        "own_flows",
    ]
    assert sorted(one["name"] for one in listed(project)["waiting"]) == ["checks", "db", "http", "own_flows"]
    assert listed(project)["stores"] == []
    assert run(project, "--remove", "--yes").exit_code == 2


def test_what_restricts_is_kept_without_a_question_and_let_go_with_one(project: Path) -> None:
    config = project / ".handrail" / "config.toml"
    config.write_text('approvals = "human"\n', encoding="utf-8")
    assert run(project).exit_code == 0
    config.write_text("", encoding="utf-8")
    assert listed(project)["waiting"] == [{"name": "approvals", "says": None, "in_force": "human"}]
    assert run(project).exit_code == 1  # weaker: only a person
    assert run(project, "--yes").exit_code == 0
    assert listed(project) == {"project": str(project), "waiting": [], "trusted": [], "stores": []}


@pytest.mark.parametrize("wrong", [("--list", "--remove"), ("--global",), ("--db", "x.db")])
def test_what_makes_no_sense_is_refused(project: Path, wrong: tuple[str, ...]) -> None:
    assert run(project, *wrong).exit_code == 2
