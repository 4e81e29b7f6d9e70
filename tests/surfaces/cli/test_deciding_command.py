"""`handrail approve`, `handrail reject` and `handrail pipeline` as a person uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.surfaces.cli.main import cli


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def run(project: Path, *argv: str, **env: str) -> click.testing.Result:
    home = {"HOME": str(project.parent / "home"), "COLUMNS": "90", "NO_COLOR": "1", **env}
    return click.testing.CliRunner(env=home).invoke(cli, [*argv, "--root", str(project)], prog_name="handrail")


def call(project: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    done = run(project, "call", tool, msgspec.json.encode(arguments).decode(), "--json")
    assert done.exit_code == 0, done.output
    answer: dict[str, Any] = msgspec.json.decode(done.stdout)
    return answer


def waiting(project: Path) -> str:
    """A run that waits at its first gate; its workspace."""
    ready = call(
        project,
        "pipeline_init_with_context",
        workspace=".specs/20260401-x",
        task_text="Fix the auth timeout",
        user_confirmation={"effort": "S", "workspace_slug": "fix-auth"},
    )
    workspace: str = ready["workspace"]
    for name in ("analysis.md", "design.md"):
        call(project, "pipeline_next_action", workspace=workspace)
        (project / workspace / name).write_text("# Text\n\n## Part\n", encoding="utf-8")
        action = call(project, "pipeline_next_action", workspace=workspace, previous_action_complete=True)
    assert action["name"] == "checkpoint-a"
    return workspace


def test_a_person_opens_the_gate_and_the_run_goes_on(project: Path) -> None:
    workspace = waiting(project)
    assert "waits for you at checkpoint-a" in run(project, "pipeline").stdout
    assert run(project, "approve").stdout.startswith("checkpoint-a: approve.")
    assert call(project, "pipeline_next_action", workspace=workspace)["phase"] == "phase-4"


def test_what_is_said_with_a_rejection_reaches_the_next_agent(project: Path) -> None:
    workspace = waiting(project)
    run(project, "reject", workspace, "--say", "Use a token bucket.")
    action = call(project, "pipeline_next_action", workspace=workspace)
    assert action["phase"] == "phase-3"
    assert "Use a token bucket." in action["prompt"]


def test_without_a_gate_there_is_nothing_to_open(project: Path) -> None:
    refused = run(project, "approve")
    assert refused.exit_code == 1
    assert "no gate waits" in refused.stderr


def test_where_people_decide_a_pipe_is_no_person(project: Path) -> None:
    workspace = waiting(project)
    (project / ".handrail" / "config.toml").write_text('approvals = "human"\n', encoding="utf-8")
    refused = run(project, "approve")
    assert refused.exit_code == 1
    assert "NOT_ALLOWED" in refused.stderr
    assert call(project, "pipeline_next_action", workspace=workspace)["name"] == "checkpoint-a"


def test_a_run_is_shown_phase_by_phase_and_given_up(project: Path) -> None:
    workspace = waiting(project)
    lines = run(project, "pipeline", "show", workspace).stdout
    assert "✓ Situation Analysis phase-1" in lines
    assert "– Investigation phase-2" in lines
    assert "It waits for you at checkpoint-a" in lines
    assert "abandoned" in run(project, "pipeline", "abandon", workspace).stdout
    assert call(project, "pipeline_next_action", workspace=workspace)["type"] == "done"
    assert "no gate waits" in run(project, "approve").stderr
