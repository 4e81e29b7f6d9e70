"""`handrail pipeline` as a person steers runs with it: pause, resume, fork, import, give up."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.surfaces.cli import deciding
from tests.surfaces.cli.test_deciding_command import call, run, waiting

HUMAN = 'approvals = "human"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def config(project: Path, text: str) -> None:
    (project / ".handrail").mkdir(exist_ok=True)
    (project / ".handrail" / "config.toml").write_text(text, encoding="utf-8")


def said(project: Path, *argv: str) -> Any:
    """What a command prints for programs."""
    done = run(project, "pipeline", *argv, "--json")
    assert done.exit_code == 0, done.output
    return msgspec.json.decode(done.stdout)


def refused(project: Path, *argv: str) -> str:
    done = run(project, *argv)
    assert done.exit_code != 0, done.output
    assert "Traceback" not in done.output
    return done.stderr


def begun(project: Path) -> str:
    """A run whose first agent works."""
    ready = call(
        project,
        "pipeline_init_with_context",
        workspace=".specs/20260401-x",
        task_text="Fix the auth timeout",
        user_confirmation={"effort": "S", "workspace_slug": "fix-auth"},
    )
    call(project, "pipeline_next_action", workspace=ready["workspace"])
    return str(ready["workspace"])


def ask(project: Path, workspace: str, **arguments: Any) -> dict[str, Any]:
    return call(project, "pipeline_next_action", workspace=workspace, **arguments)


def write(project: Path, workspace: str, name: str, text: str = "# Text\n\n## Part\n") -> None:
    (project / workspace / name).write_text(text, encoding="utf-8")


def test_a_run_is_paused_while_an_agent_works_and_its_report_is_taken(project: Path) -> None:
    workspace = begun(project)
    assert said(project, "pause", "20260401-fix-auth") == {"workspace": workspace, "status": "paused"}
    assert "stands still (paused)" in run(project, "pipeline").stdout
    assert "It stands still (paused)" in run(project, "pipeline", "show", workspace).stdout
    write(project, workspace, "analysis.md")
    answer = ask(project, workspace, previous_action_complete=True, previous_tokens=7)
    assert answer["report_result"]["artifact_written"] == "analysis.md"
    assert answer["stopped"]["reason"] == "paused"
    assert said(project, "list")[0]["tokens"] == 7
    assert said(project, "resume", workspace)["status"] == "in_progress"
    assert ask(project, workspace)["phase"] == "phase-3"


def test_a_gate_can_be_answered_while_its_run_is_paused(project: Path) -> None:
    workspace = waiting(project)
    said(project, "pause", workspace)
    assert ask(project, workspace)["stopped"]["reason"] == "paused"
    assert run(project, "approve").stdout.startswith("checkpoint-a: approve.")
    assert ask(project, workspace)["stopped"] == {
        "reason": "paused",
        "before_phase": "phase-4",
        "go_on_with": f"a person runs: handrail pipeline resume {workspace}",
    }
    said(project, "resume", workspace)
    assert ask(project, workspace)["phase"] == "phase-4"


def test_a_run_goes_on_until_a_phase_with_more_to_spend(project: Path) -> None:
    config(project, "[budget]\nhard_tokens = 5\n[prices]\n'*' = 1000000\n")
    workspace = begun(project)
    write(project, workspace, "analysis.md")
    stopped = ask(project, workspace, previous_action_complete=True, previous_tokens=9, previous_model="opus")
    assert stopped["stopped"]["reason"] == "budget"
    shown = run(project, "pipeline", "show", workspace).stdout
    assert "Spent: 9 tokens, 0 minutes, 9.00 of money (limits: hard_tokens 5)." in shown
    answer = said(project, "resume", workspace, "--limit", "hard_tokens=100", "--until", "phase-3")
    assert answer["limits"] == {"hard_tokens": 100.0, "until": "phase-3"}
    assert ask(project, workspace)["phase"] == "phase-3"
    write(project, workspace, "design.md")
    assert ask(project, workspace, previous_action_complete=True)["stopped"]["reason"] == "until"
    assert said(project, "resume", workspace, "--until", "end")["limits"] == {"hard_tokens": 100.0}
    assert ask(project, workspace)["name"] == "checkpoint-a"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--limit", "hard_tokens"], "hard_tokens is no limit"),
        (["--limit", "hard_token=5"], "hard_tokens"),
        (["--limit", "hard_tokens=nan"], "an amount"),
        (["--until", "phase-9"], "no phase phase-9"),
        (["--from", "phase-9"], "no phase phase-9"),
        (["--from", "phase-4"], "phases are not skipped"),
    ],
)
def test_what_cannot_be_meant_is_refused(project: Path, argv: list[str], words: str) -> None:
    workspace = waiting(project)
    assert words in refused(project, "pipeline", "resume", workspace, *argv)
    assert ask(project, workspace)["name"] == "checkpoint-a"


def test_a_run_is_sent_back_to_a_phase(project: Path) -> None:
    workspace = waiting(project)
    said(project, "resume", workspace, "--from", "phase-3")
    assert "no gate waits" in refused(project, "approve")
    assert ask(project, workspace)["phase"] == "phase-3"


def test_a_fork_has_a_place_and_documents_of_its_own(project: Path) -> None:
    workspace = waiting(project)
    made = said(project, "fork", workspace, "--from", "phase-3")
    assert made["workspace"] == f"{workspace}-2"
    assert made["branch"] == "feature/fix-auth-2"
    assert sorted(path.name for path in (project / made["workspace"]).iterdir()) == ["analysis.md", "request.md"]
    assert ask(project, made["workspace"])["phase"] == "phase-3"
    assert ask(project, workspace)["name"] == "checkpoint-a"
    named = said(project, "fork", workspace, "--from", "checkpoint-a", "--name", "With Tokens")
    assert named["workspace"] == ".specs/20260401-with-tokens"
    assert ask(project, named["workspace"])["name"] == "checkpoint-a"
    assert said(project, "show", named["workspace"])["forked_from"] == made["forked_from"]


def test_a_fork_that_cannot_be_leaves_nothing(project: Path) -> None:
    workspace = waiting(project)
    assert "phases are not skipped" in refused(project, "pipeline", "fork", workspace, "--from", "phase-4")
    assert "no phase" in refused(project, "pipeline", "fork", workspace, "--from", "phase-44")
    assert "is there already" in refused(
        project, "pipeline", "fork", workspace, "--from", "phase-3", "--name", "fix-auth"
    )
    assert [path.name for path in (project / ".specs").iterdir()] == ["20260401-fix-auth"]
    assert len(said(project, "list")) == 1


def copied(project: Path, tmp_path: Path) -> tuple[Path, str]:
    """The workspace of a waiting run in another project."""
    workspace = waiting(project)
    other = tmp_path / "other"
    shutil.copytree(project / ".specs", other / ".specs")
    (other / ".handrail").mkdir()
    return other, workspace


def test_a_run_that_was_copied_here_is_taken_over(project: Path, tmp_path: Path) -> None:
    other, workspace = copied(project, tmp_path)
    call(other, "workflow_create", name="w", source_type="prompt", source_content="c")  # makes the store
    taken = said(other, "import", workspace)
    assert taken["completed_phases"] == ["phase-1", "phase-3"]
    assert "is known here already" in refused(other, "pipeline", "import", workspace)
    assert ask(other, workspace)["name"] == "checkpoint-a"


def test_also_where_nothing_was_ever_stored(project: Path, tmp_path: Path) -> None:
    other, workspace = copied(project, tmp_path)
    taken = said(other, "import", workspace)
    assert [one["workflow_id"] for one in said(other, "list")] == [taken["workflow_id"]]
    assert "taken_over_from" not in ask(other, workspace)


def test_what_is_no_run_is_not_taken_over(project: Path) -> None:
    assert "has no state.json" in refused(project, "pipeline", "import", "nothing")
    (project / ".specs" / "evil").mkdir(parents=True)
    (project / ".specs" / "evil" / "state.json").write_text("[]", encoding="utf-8")
    assert "cannot be taken over" in refused(project, "pipeline", "import", "evil")
    assert "is no workspace" in refused(project, "pipeline", "import", ".specs/../x")
    assert said(project, "list") == []


@pytest.mark.parametrize("command", ["pause", "resume", "abandon", "show"])
def test_a_run_that_there_is_not_is_refused(project: Path, command: str) -> None:
    assert "no run has the workspace" in refused(project, "pipeline", command, "nothing")


def test_where_people_decide_a_pipe_lets_nothing_go_on(project: Path, tmp_path: Path) -> None:
    other, workspace = copied(project, tmp_path)
    for folder in (project, other):
        config(folder, HUMAN)
    for argv in (
        ["resume", workspace],
        ["resume", workspace, "--from", "phase-3"],
        ["resume", workspace, "--limit", "hard_tokens=5"],
        ["fork", workspace, "--from", "checkpoint-a"],
    ):
        assert "NOT_ALLOWED" in refused(project, "pipeline", *argv)
    assert "NOT_ALLOWED" in refused(other, "pipeline", "import", workspace)
    assert ask(project, workspace)["name"] == "checkpoint-a"
    said(project, "pause", workspace)
    said(project, "abandon", workspace)


def test_where_people_decide_a_person_does(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, workspace = copied(project, tmp_path)
    for folder in (project, other):
        config(folder, HUMAN)
    monkeypatch.setattr("handrail.surfaces.cli.deciding._is_terminal", lambda: True)
    said(other, "import", workspace)
    said(project, "pause", workspace)
    said(project, "resume", workspace)
    made = said(project, "fork", workspace, "--from", "checkpoint-a")
    for folder, place in ((project, workspace), (project, made["workspace"]), (other, workspace)):
        assert ask(folder, place)["name"] == "checkpoint-a", "and none of it opened the gate"
    assert run(project, "approve", workspace).exit_code == 0
    assert ask(project, workspace)["phase"] == "phase-4"


def test_where_people_decide_no_flow_that_asks_less_is_taken_over(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, workspace = copied(project, tmp_path)
    config(other, HUMAN)
    state = other / workspace / "state.json"
    document = msgspec.json.decode(state.read_bytes())
    document["flow"]["skip"].append("checkpoint-a")
    state.write_bytes(msgspec.json.encode(document))
    monkeypatch.setattr("handrail.surfaces.cli.deciding._is_terminal", lambda: True)
    assert "checkpoint-a (Human Reviews Design) is left out" in refused(other, "pipeline", "import", workspace)
    assert said(other, "list") == []
    config(other, f'{HUMAN}own_flows = ["light"]\n')
    said(other, "import", workspace)


def test_a_closed_standard_input_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert deciding._is_terminal() is False


def test_a_run_shows_what_others_of_its_effort_took(project: Path) -> None:
    first = begun(project)
    shown = said(project, "show", first)
    assert shown["expected"] is None
    assert shown["held_by"] is None
    assert shown["limits"] == {}
