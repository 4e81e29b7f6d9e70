"""`handrail agents` and `handrail release` as a person uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.surfaces.cli.main import cli

PLAN = '{"summary": "s", "approach": "a", "tasks": [{"name": "wrap", "description": "", "sequence": 1}]}'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def run(project: Path, *argv: str) -> click.testing.Result:
    home = {"HOME": str(project.parent / "home"), "COLUMNS": "80", "NO_COLOR": "1"}
    return click.testing.CliRunner(env=home).invoke(cli, [*argv, "--root", str(project)], prog_name="handrail")


def call(project: Path, tool: str, *pairs: str) -> dict[str, Any]:
    done = run(project, "call", tool, *pairs, "--json")
    assert done.exit_code == 0, done.output
    answer: dict[str, Any] = msgspec.json.decode(done.stdout)
    return answer


def claimed(project: Path) -> tuple[str, str]:
    """An agent, and the task it holds."""
    workflow = call(project, "workflow_create", "name=W", "source_type=prompt", "source_content=c")["id"]
    call(project, "workflow_set_plan", f"id={workflow}", f"plan={PLAN}")
    agent = call(project, "agent_register", "name=Anna", "runtime=codex", "workspace_path=/srv/copies/one")["id"]
    task = call(project, "workflow_next_tasks")["tasks"][0]["id"]
    call(project, "task_claim", f"task_id={task}", f"agent_id={agent}", "start=true")
    return agent, task


def test_who_works_here_is_shown_with_the_evidence(project: Path) -> None:
    agent, task = claimed(project)
    lines = run(project, "agents").stdout
    for words in (
        "Anna  working, codex worker, last heard from",
        "wrap (in progress)",
        task,
        "last   started “wrap”",
        agent,
    ):
        assert words in lines
    assert "/srv/copies/one" in lines
    assert "1 write in its name came without its secret" in lines


def test_an_empty_crew_says_so(project: Path) -> None:
    assert "No agent is here" in run(project, "agents").stdout
    assert "No agent has registered yet" in run(project, "agents", "--all").stdout
    assert msgspec.json.decode(run(project, "agents", "--json").stdout) == []


def test_a_person_sets_a_task_free_and_its_holder_is_told(project: Path) -> None:
    agent, task = claimed(project)
    done = run(project, "release", "wrap", "--reason", "needed elsewhere")
    assert done.stdout == '"wrap" is pending and free; Anna is told.\n'
    (loss,) = call(project, "agent_heartbeat", f"agent_id={agent}")["lost"]
    assert (loss["task_id"], loss["released_by"], loss["reason"]) == (task, "human", "needed elsewhere")


def test_what_nobody_holds_cannot_be_set_free(project: Path) -> None:
    _, task = claimed(project)
    assert run(project, "release", task, "--json").exit_code == 0
    refused = run(project, "release", task)
    assert refused.exit_code == 1
    assert "nobody holds wrap" in refused.stderr


def test_the_log_calls_agents_by_their_names(project: Path) -> None:
    claimed(project)
    assert "Anna (" in run(project, "log").stdout
