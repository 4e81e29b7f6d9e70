"""The ledger for people: when, who, through what, and what they did, by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.surfaces.cli.main import cli


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def run(project: Path, *argv: str) -> str:
    home = {"HOME": str(project.parent / "home"), "LOGNAME": "ann", "COLUMNS": "80"}
    done = click.testing.CliRunner(env=home).invoke(cli, [*argv, "--root", str(project)])
    assert done.exit_code == 0, done.output
    return done.stdout


def call(project: Path, tool: str, **values: Any) -> Any:
    return msgspec.json.decode(run(project, "call", tool, msgspec.json.encode(values).decode(), "--json"))


def story(project: Path) -> str:
    """A workflow with one task, claimed and failed by Anna. The workflow's id."""
    plan = {"tasks": [{"name": "Wrap the fetch", "description": "x", "sequence": 1}], "summary": "s", "approach": "a"}
    made: str = call(project, "workflow_create", name="Import", source_type="prompt", source_content="x")["id"]
    call(project, "workflow_set_plan", id=made, plan=plan)
    agent = call(project, "agent_register", name="Anna \x1b[2J", runtime="codex")["id"]
    task = call(project, "workflow_next_tasks")["tasks"][0]["id"]
    call(project, "task_claim", task_id=task, agent_id=agent, start=True)
    call(project, "task_update_status", id=task, status="failed", error="the proxy\nhangs", agent_id=agent)
    return made


def test_each_line_says_when_who_through_what_and_what_by_name(project: Path) -> None:
    story(project)
    head, *lines = run(project, "log").splitlines()
    assert head.split("  ")[0] == "when"
    assert all(re.match(r"(a moment|\d+ seconds?) ago +", line) for line in lines)
    words = [re.split(r" {2,}", line)[1:] for line in lines]
    assert ["ann (call)", "created “Import”"] in words
    assert ["Anna [2J (call)", "started “Wrap the fetch”"] in words
    assert ["Anna [2J (call)", "failed at “Wrap the fetch”: the proxy hangs"] in words
    assert "\x1b" not in "\n".join(lines)


def test_programs_get_what_they_always_got(project: Path) -> None:
    made = story(project)
    first = msgspec.json.decode(run(project, "log", "--json"))[0]
    assert (first["position"], first["stream"], first["kind"]) == (1, made, "workflow.created")
    assert {"at_ms", "actor", "channel", "seq", "data", "changes"} <= set(first)


def test_what_was_taken_back_is_said_by_name(project: Path) -> None:
    call(project, "workflow_create", name="A mistake", source_type="prompt", source_content="x")
    told = run(project, "undo")
    assert "created “A mistake”" in told
    assert "workflow.created, event 1" in " ".join(told.split())
    lines = run(project, "log").splitlines()
    assert lines[1].endswith("created “A mistake”"), "it is not there any more, and still has its name"
    assert lines[2].endswith("took back: created “A mistake”")


def test_undo_goes_on_step_by_step_and_says_what_each_step_was(project: Path) -> None:
    for name in ("a", "b", "c"):
        call(project, "workflow_create", name=name, source_type="prompt", source_content="x")
    assert [run(project, "undo").split("“")[1][0] for _ in range(3)] == ["c", "b", "a"]
    refused = click.testing.CliRunner(env={"LOGNAME": "ann"}).invoke(cli, ["undo", "--root", str(project)])
    assert "what ann wrote last is all taken back" in refused.output
    assert [line.split("  ")[-1] for line in run(project, "log").splitlines()[-3:]] == [
        "took back: created “c”",
        "took back: created “b”",
        "took back: created “a”",
    ]


def test_the_end_of_a_workflow_is_told_in_words(project: Path) -> None:
    call(project, "workflow_create", name="Import", source_type="prompt", source_content="x")
    run(project, "done", "Import", "--abandon")
    assert run(project, "log").splitlines()[-1].endswith("abandoned “Import”")
    assert "abandoned “Import”" in run(project, "undo")


def test_who_registers_an_agent_is_told_with_its_name(project: Path) -> None:
    call(project, "agent_register", name="Anna", runtime="codex")
    assert run(project, "log").splitlines()[-1].endswith("registered “Anna”")
