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


def run(project: Path, *argv: str, typed: str | None = None, **env: str) -> click.testing.Result:
    home = {"HOME": str(project.parent / "home"), "COLUMNS": "90", "NO_COLOR": "1", **env}
    runner = click.testing.CliRunner(env=home)
    return runner.invoke(cli, [*argv, "--root", str(project)], input=typed, prog_name="handrail")


def call(project: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    done = run(project, "call", tool, msgspec.json.encode(arguments).decode(), "--json")
    assert done.exit_code == 0, done.output
    answer: dict[str, Any] = msgspec.json.decode(done.stdout)
    return answer


def waiting(project: Path, slug: str = "fix-auth", text: str = "Fix the auth timeout") -> str:
    """A run that waits at its first gate; its workspace."""
    ready = call(
        project,
        "pipeline_init_with_context",
        workspace=".specs/20260401-x",
        task_text=text,
        user_confirmation={"effort": "S", "workspace_slug": slug},
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
    assert run(project, "approve").stdout.startswith("Answered checkpoint-a with approve.")
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
    assert "`handrail status`" in refused.stderr


def test_where_people_decide_a_pipe_is_no_person(project: Path) -> None:
    workspace = waiting(project)
    (project / ".handrail" / "config.toml").write_text('approvals = "human"\n', encoding="utf-8")
    refused = run(project, "approve")
    assert refused.exit_code == 1
    assert "NOT_ALLOWED" in refused.stderr
    assert call(project, "pipeline_next_action", workspace=workspace)["name"] == "checkpoint-a"


def test_what_only_people_decided_when_a_run_began_no_agent_decides_later(project: Path) -> None:
    config = project / ".handrail" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text('approvals = "human"\n', encoding="utf-8")
    workspace = waiting(project)
    config.write_text('approvals = "agent"\n', encoding="utf-8")
    refused = run(project, "approve", "--yes")
    assert (refused.exit_code, "NOT_ALLOWED" in refused.stderr) == (1, True)
    arguments = msgspec.json.encode({"workspace": workspace, "user_response": "approve"}).decode()
    assert "NOT_ALLOWED" in run(project, "call", "pipeline_next_action", arguments).output
    assert call(project, "pipeline_next_action", workspace=workspace)["name"] == "checkpoint-a"


def test_a_run_is_shown_phase_by_phase_and_given_up(project: Path) -> None:
    workspace = waiting(project)
    lines = run(project, "pipeline", "show", workspace).stdout
    assert "✓ Situation Analysis phase-1" in " ".join(lines.split())
    assert "– Investigation phase-2 left out" in " ".join(lines.split())
    assert "It waits for you at checkpoint-a" in lines
    assert "abandoned" in run(project, "pipeline", "abandon", workspace).stdout
    assert call(project, "pipeline_next_action", workspace=workspace)["type"] == "done"
    assert "no gate waits" in run(project, "approve").stderr


# -- what a person sees before they answer ----------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.surfaces.cli.decide.approve.sits_at_terminal", lambda: True)


def edit(project: Path, workspace: str, text: str, name: str = "design.md") -> None:
    (project / workspace / name).write_text(text, encoding="utf-8")


def answers(project: Path, workspace: str) -> list[Any]:
    """The answers on record to the gate of the design."""
    done = run(project, "pipeline", "show", workspace, "--json")
    assert done.exit_code == 0, done.output
    return [phase["answer"] for phase in msgspec.json.decode(done.stdout)["phases"] if phase["answer"]]


def test_a_gate_is_shown_and_not_answered(project: Path) -> None:
    workspace = waiting(project)
    shown = run(project, "approve", "--show").stdout
    told = msgspec.json.decode(run(project, "approve", "--show", "--json").stdout)
    for part in ("Fix the auth timeout", f"{workspace}, at checkpoint-a", f"{workspace}/design.md", "  ## Part"):
        assert part in shown
    assert f"  {told['gate_id']}\n  content {told['content_hash']}\n" in shown
    assert (told["text"], told["changed"]) == ("# Text\n\n## Part\n", False)
    assert "waits for you at checkpoint-a" in run(project, "pipeline").stdout


@pytest.mark.usefixtures("terminal")
def test_at_a_terminal_the_document_is_shown_and_the_answer_asked_for(project: Path) -> None:
    workspace = waiting(project)
    unsure = run(project, "approve", typed="\n")
    assert unsure.exit_code == 1
    assert f"{workspace}/design.md" in unsure.stdout
    assert "approve? [y/N]" in unsure.stdout
    assert "Nothing is answered" in unsure.stdout
    assert run(project, "approve", typed="").exit_code == 1, "nobody is there"
    assert "reject? [y/N]" in run(project, "reject", "--say", "no", typed="n\n").stdout
    assert answers(project, workspace) == []
    sure = run(project, "approve", typed="y\n")
    assert sure.exit_code == 0
    assert "Answered checkpoint-a with approve." in sure.stdout
    assert [answer["answer"] for answer in answers(project, workspace)] == ["approve"]


@pytest.mark.usefixtures("terminal")
def test_who_rejects_at_a_terminal_is_asked_what_is_to_change(project: Path) -> None:
    workspace = waiting(project)
    done = run(project, "reject", typed="y\n Use a token bucket. \n")
    assert done.exit_code == 0, done.output
    assert "What should change? (press Enter to skip)" in done.stdout
    assert "Use a token bucket." in call(project, "pipeline_next_action", workspace=workspace)["prompt"]


@pytest.mark.usefixtures("terminal")
def test_who_has_said_it_or_has_nothing_to_add_is_not_held_up(project: Path) -> None:
    waiting(project, "one")
    said = run(project, "reject", "one", "--say", "Shorter.", typed="y\n")
    assert (said.exit_code, "What should change?" in said.stdout) == (0, False)
    workspace = waiting(project, "two")
    assert run(project, "reject", "two", typed="y\n\n").exit_code == 0
    assert call(project, "pipeline_next_action", workspace=workspace)["phase"] == "phase-3"


def test_every_answer_is_shown_as_the_command_that_gives_it(project: Path) -> None:
    workspace = waiting(project)
    shown = [" ".join(line.split()) for line in run(project, "approve", "--show").stdout.splitlines()]
    assert "handrail approve 20260401-fix-auth the work goes on" in shown
    assert any(line.startswith("handrail reject 20260401-fix-auth it goes back") for line in shown)
    assert any(line.startswith("handrail reject 20260401-fix-auth --abandon") for line in shown)
    assert "The run is abandoned." in run(project, "reject", "20260401-fix-auth", "--abandon").stdout
    assert call(project, "pipeline_next_action", workspace=workspace)["type"] == "done"


@pytest.mark.usefixtures("terminal")
def test_who_abandons_is_asked_for_that_word(project: Path) -> None:
    workspace = waiting(project)
    assert "abandon? [y/N]" in run(project, "reject", "--abandon", typed="n\n").stdout
    assert answers(project, workspace) == []


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("options", [["--yes"], ["--yes", "--json"]])
def test_at_a_terminal_a_script_is_not_asked(project: Path, options: list[str]) -> None:
    workspace = waiting(project)
    assert run(project, "approve", *options).exit_code == 0
    assert [answer["answer"] for answer in answers(project, workspace)] == ["approve"]


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("command", ["approve", "reject"])
def test_at_a_terminal_no_output_form_answers_what_nobody_has_seen(project: Path, command: str) -> None:
    workspace = waiting(project)
    refused = run(project, command, "--json")
    assert refused.exit_code == 2
    assert "add --yes" in msgspec.json.decode(refused.stdout)["error"]["hint"]
    assert answers(project, workspace) == []


def test_without_a_terminal_it_is_said_what_was_approved(project: Path) -> None:
    workspace = waiting(project)
    content = msgspec.json.decode(run(project, "approve", "--show", "--json").stdout)["content_hash"]
    done = run(project, "approve", COLUMNS="300")
    said = " ".join(done.stdout.split())
    assert f'"Fix the auth timeout" in {workspace}: {workspace}/design.md, content hash {content}' in said


@pytest.mark.usefixtures("terminal")
def test_at_a_terminal_what_was_changed_is_shown_and_asked_about_as_it_is(project: Path) -> None:
    workspace = waiting(project)
    edit(project, workspace, "# Better\n\n## Part\n")
    done = run(project, "approve", typed="y\n")
    assert done.exit_code == 0, done.output
    assert "# Better" in done.stdout
    assert "This was changed since it was asked about." in done.stdout
    assert call(project, "pipeline_next_action", workspace=workspace)["phase"] == "phase-4"


@pytest.mark.usefixtures("terminal")
def test_what_changes_while_it_is_read_is_asked_about_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = waiting(project)
    said = iter([True, False])

    def confirm(_: str) -> bool:
        sure = next(said)
        if sure:
            edit(project, workspace, "# Worse\n\n## Part\n")
        return sure

    monkeypatch.setattr(click, "confirm", confirm)
    done = run(project, "approve")
    assert done.exit_code == 1
    assert "# Worse" in done.stdout, "shown before it was asked about"
    assert answers(project, workspace) == []


def test_without_a_terminal_what_was_changed_is_shown_and_the_next_answer_is_to_that(project: Path) -> None:
    workspace = waiting(project)
    edit(project, workspace, "# Better\n\n## Part\n")
    refused = run(project, "approve")
    assert refused.exit_code == 1
    assert "# Better" in refused.stdout
    assert "was changed since it was asked about; nothing is answered" in refused.stderr
    assert "pipeline_next_action" not in refused.stderr
    gate = msgspec.json.decode(run(project, "approve", "--show", "--json").stdout)
    assert f"`handrail approve {gate['gate_id']}`" in refused.stderr
    assert answers(project, workspace) == []
    assert run(project, "approve", gate["gate_id"]).exit_code == 0
    assert call(project, "pipeline_next_action", workspace=workspace)["phase"] == "phase-4"


def test_a_program_is_told_which_gate_is_about_what_is_there_now(project: Path) -> None:
    workspace = waiting(project)
    edit(project, workspace, "# Better\n\n## Part\n")
    error = msgspec.json.decode(run(project, "approve", "--json").stdout)["error"]
    told = msgspec.json.decode(run(project, "approve", "--show", "--json").stdout)
    assert error["details"] == {"gate_id": told["gate_id"], "content_hash": told["content_hash"]}


def test_what_is_gone_can_be_rejected_only(project: Path) -> None:
    workspace = waiting(project)
    (project / workspace / "design.md").unlink()
    for _ in range(2):
        refused = run(project, "approve")
        assert refused.exit_code == 1
        assert "is not there any more" in refused.stderr
    run(project, "reject")
    assert run(project, "reject").exit_code == 0
    assert call(project, "pipeline_next_action", workspace=workspace)["phase"] == "phase-3"


def test_a_list_of_tasks_that_was_changed_is_judged_again_first(project: Path) -> None:
    workspace = waiting(project)
    run(project, "approve")
    tasks = "# Tasks\n\n## Task 1: {}\nmode: sequential\nfiles:\n- a.py\ndepends_on: []\n"
    for name, text in (("tasks.md", tasks.format("Do it")), ("review-tasks.md", "# Review\n\n## Verdict: APPROVE\n")):
        call(project, "pipeline_next_action", workspace=workspace)
        edit(project, workspace, text, name)
        action = call(project, "pipeline_next_action", workspace=workspace, previous_action_complete=True)
    assert action["name"] == "checkpoint-b"
    edit(project, workspace, tasks.format("Do more"), "tasks.md")
    refused = run(project, "approve")
    assert refused.exit_code == 1
    assert "tasks.md was changed since it was shown: phase-4b is done again first" in refused.stderr


def test_of_a_long_document_the_beginning_is_shown_and_where_the_rest_lies(project: Path) -> None:
    workspace = waiting(project)
    lines = "".join(f"- line {number}\n" for number in range(100))
    edit(project, workspace, f"# Text\x1b[2J\n\n## Part\n\n    deep in\n{lines}")
    shown = run(project, "approve", "--show").stdout
    assert "  - line 54" in shown.splitlines()
    assert "- line 55" not in shown
    assert f"45 more lines: the whole text is {workspace}/design.md" in shown
    assert "      deep in" in shown.splitlines()
    assert "\x1b" not in shown


def test_where_several_gates_wait_their_runs_are_named(project: Path) -> None:
    first = waiting(project)
    second = waiting(project, "other", "Say hello")
    refused = run(project, "approve")
    assert refused.exit_code == 1
    for words in (f'(checkpoint-a of "Fix the auth timeout", {first})', f'(checkpoint-a of "Say hello", {second})'):
        assert words in refused.stderr
    assert run(project, "approve", "other").exit_code == 0
    assert call(project, "pipeline_next_action", workspace=second)["phase"] == "phase-4"
    assert call(project, "pipeline_next_action", workspace=first)["name"] == "checkpoint-a"


# -- status -----------------------------------------------------------------------------------------------------------


def test_a_run_is_shown_as_a_run(project: Path) -> None:
    workspace = waiting(project)
    for argv in (["status"], ["next"], ["show", "Fix the auth timeout"]):
        shown = " ".join(run(project, *argv, COLUMNS="300").stdout.split())
        assert "give it a plan" not in shown
        assert "The pipeline light waits for you at checkpoint-a: `handrail approve 20260401-fix-auth`" in shown
    assert f'    of "Fix the auth timeout", {workspace}' in run(project, "status").stdout.splitlines()
    told = msgspec.json.decode(run(project, "status", "--json").stdout)
    assert told["questions"][0]["workspace"] == workspace
    assert told["workflows"][0]["run"]["waits_at"] == "checkpoint-a"
    run(project, "approve")
    assert "is before phase-4 (Task Decomposition)" in run(project, "status", COLUMNS="300").stdout
    call(project, "pipeline_next_action", workspace=workspace)
    assert "is at phase-4 (Task Decomposition)" in run(project, "status", COLUMNS="300").stdout
    run(project, "pipeline", "pause", workspace)
    shown = run(project, "status", COLUMNS="300").stdout
    assert f"is paused before phase-4: `handrail pipeline resume {workspace}`" in shown
