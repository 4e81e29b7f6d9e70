"""What has ended can still be named: its tasks, its workflow, and what to say where none is open any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surfaces.cli.see.test_status_next_show_why import begin, run, run_json, shown


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    begin(folder)
    shown(folder, "done", "Retry imports", "--abandon")
    return folder


@pytest.mark.parametrize("command", ["why", "show"])
@pytest.mark.parametrize("name", ["test proxy", "depl", "Retry imports", "Retry"])
def test_what_has_ended_is_known_by_its_name_and_by_its_beginning(project: Path, command: str, name: str) -> None:
    assert name in shown(project, command, name)


def test_what_is_open_comes_before_what_has_ended(project: Path) -> None:
    again = begin(project)
    assert run_json(project, "show", "wrap")["workflow_id"] == again


def test_a_wrong_name_is_compared_with_what_has_ended_too(project: Path) -> None:
    refused = run(project, "show", "deplyo").stderr
    assert "did you mean deploy?" in refused
    assert "handrail search" in refused


@pytest.mark.parametrize("command", ["report", "next"])
def test_where_all_has_ended_it_is_said_and_what_ended_is_named(project: Path, command: str) -> None:
    refused = run(project, command).stderr
    assert "no workflow is open here any more" in refused
    assert '("Retry imports")' in refused
    assert "workflow_create" not in refused


@pytest.mark.parametrize("command", ["report", "next"])
def test_where_there_was_never_one_a_person_learns_how_to_begin(tmp_path: Path, command: str) -> None:
    refused = run(tmp_path, command).stderr
    assert "there is no workflow here yet" in refused
    assert "handrail import" in " ".join(refused.split())


def test_a_report_needs_no_name_where_one_is_open(tmp_path: Path) -> None:
    begin(tmp_path)
    assert shown(tmp_path, "report") == shown(tmp_path, "report", "Retry imports")
