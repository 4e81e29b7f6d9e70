"""`handrail call` is a program's way in: what is kept of a call tells it from a person's own commands."""

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


def run(project: Path, *argv: str) -> click.testing.Result:
    home = {"HOME": str(project.parent / "home"), "LOGNAME": "ann", "NO_COLOR": "1"}
    return click.testing.CliRunner(env=home).invoke(cli, [*argv, "--root", str(project)], prog_name="handrail")


def call(project: Path, tool: str, **arguments: Any) -> Any:
    done = run(project, "call", tool, msgspec.json.encode(arguments).decode(), "--json")
    assert done.exit_code == 0, done.output
    return msgspec.json.decode(done.stdout)


def waiting(project: Path) -> str:
    """A run that waits at its first gate; its workspace."""
    begun = call(
        project,
        "pipeline_init_with_context",
        workspace=".specs/20260401-x",
        task_text="Fix the auth timeout",
        user_confirmation={"effort": "S", "workspace_slug": "fix-auth"},
    )
    workspace: str = begun["workspace"]
    for name in ("analysis.md", "design.md"):
        call(project, "pipeline_next_action", workspace=workspace)
        (project / workspace / name).write_text("# Text\n\n## Part\n", encoding="utf-8")
        call(project, "pipeline_next_action", workspace=workspace, previous_action_complete=True)
    return workspace


def answers(project: Path) -> list[tuple[str, str]]:
    """Who answered gates, and through which channel, as the ledger has it."""
    logged = msgspec.json.decode(run(project, "log", "--json", "--limit", "200").stdout)
    return [(event["actor"], event["channel"]) for event in logged if event["kind"] == "gate.answered"]


def test_an_answer_by_a_call_is_not_taken_for_a_persons(project: Path) -> None:
    workspace = waiting(project)
    call(project, "pipeline_next_action", workspace=workspace, user_response="approve")
    assert answers(project) == [("ann", "call")]


def test_a_persons_own_command_still_is_a_persons(project: Path) -> None:
    waiting(project)
    assert run(project, "approve").exit_code == 0
    assert answers(project) == [("ann", "cli")]


def test_the_persons_inbox_is_not_opened_by_a_call(project: Path) -> None:
    sent = {"sender_id": "human", "recipient_id": "human", "message_type": "query", "subject": "s", "body": {}}
    done = run(project, "call", "message_send", msgspec.json.encode(sent).decode(), "--json")
    assert (done.exit_code, "NOT_ALLOWED" in done.output) == (1, True)
