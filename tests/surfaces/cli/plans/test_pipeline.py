"""`handrail pipeline` as a person steers runs with it: pause, resume, fork, import, give up."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.surfaces.cli import options
from handrail.surfaces.cli.plans import pipeline
from tests.surfaces.cli.decide.test_approve import call, run, waiting

HUMAN = 'approvals = "human"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


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
    assert "paused before" in run(project, "pipeline").stdout
    assert "It is paused" in run(project, "pipeline", "show", workspace).stdout
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
    assert run(project, "approve").stdout.startswith("Answered checkpoint-a with approve.")
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
    assert "Spent: 9 tokens, 0 minutes, 9.00 at your prices (limits: hard_tokens 5)." in shown
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
    assert sorted(path.name for path in (project / made["workspace"]).iterdir()) == [
        "analysis.md",
        "request.md",
        "state.json",
    ]
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
    monkeypatch.setattr("handrail.surfaces.cli.decide.approve.sits_at_terminal", lambda: True)
    said(other, "import", workspace)
    said(project, "pause", workspace)
    said(project, "resume", workspace)
    made = said(project, "fork", workspace, "--from", "checkpoint-a")
    for folder, place in ((project, workspace), (project, made["workspace"]), (other, workspace)):
        assert ask(folder, place)["name"] == "checkpoint-a", "and none of it opened the gate"
    assert run(project, "approve", workspace, "--yes").exit_code == 0
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
    monkeypatch.setattr("handrail.surfaces.cli.decide.approve.sits_at_terminal", lambda: True)
    assert "checkpoint-a (Human Reviews Design) is left out" in refused(other, "pipeline", "import", workspace)
    assert said(other, "list") == []
    config(other, f'{HUMAN}own_flows = ["light"]\n')
    assert "handrail trust" in refused(other, "pipeline", "import", workspace)
    assert run(other, "trust", "--yes").exit_code == 0
    said(other, "import", workspace)


def test_a_closed_standard_input_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert options.sits_at_terminal() is False


def test_a_run_shows_what_others_of_its_effort_took(project: Path) -> None:
    first = begun(project)
    shown = said(project, "show", first)
    assert shown["expected"] is None
    assert shown["held_by"] is None
    assert shown["limits"] == {}


# -- which run, where it stands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [".specs/20260401-fix-auth/", "20260401-fix-auth", "fix-auth", "auth"])
def test_a_run_is_meant_by_its_folder_its_name_or_its_last_words(project: Path, name: str) -> None:
    workspace = begun(project)
    assert said(project, "show", name)["workspace"] == workspace
    assert said(project, "show", said(project, "show", workspace)["workflow_id"])["workspace"] == workspace
    assert "no run has the workspace" in refused(project, "pipeline", "show", "uth")
    assert "no run has the workspace" in refused(project, "pipeline", "show", "")


def test_what_could_mean_two_runs_means_none(project: Path) -> None:
    workspace = waiting(project)
    said(project, "fork", workspace, "--from", "phase-3", "--name", "other-auth")
    words = refused(project, "pipeline", "abandon", "auth")
    assert "could mean any of 2 runs" in words
    assert '.specs/20260401-other-auth ("Fix the auth timeout")' in words
    assert said(project, "show", "fix-auth")["ended"] is None


def test_a_copied_run_that_is_not_known_is_said_to_be_imported(project: Path, tmp_path: Path) -> None:
    other, workspace = copied(project, tmp_path)
    assert f"`handrail pipeline import {workspace}`" in refused(other, "pipeline", "show", workspace)
    assert f"`handrail pipeline import {workspace}`" in refused(other, "pipeline", "resume", "20260401-fix-auth")


def test_an_import_says_what_is_done_again_and_why(project: Path, tmp_path: Path) -> None:
    other, workspace = copied(project, tmp_path)
    write(other, workspace, "design.md", "# Another\n\n## Part\n")
    told = run(other, "pipeline", "import", workspace, COLUMNS="300").stdout
    assert "is taken over after phase-1." in told
    assert "design.md is not the one that was accepted, so phase-3 and all that follow are done again." in told


def test_a_fork_says_which_name_it_chose_and_can_be_copied_at_once(project: Path, tmp_path: Path) -> None:
    workspace = waiting(project)
    told = run(project, "pipeline", "fork", workspace, "--from", "phase-3", "--name", "../evil", COLUMNS="300").stdout
    assert ".specs/20260401-evil goes on from phase-3" in told
    assert "Its name is evil" in told
    plain = run(project, "pipeline", "fork", workspace, "--from", "phase-3", "--name", "plain").stdout
    assert "Its name" not in plain
    other = tmp_path / "other"
    shutil.copytree(project / ".specs", other / ".specs")
    assert said(other, "import", "20260401-evil")["completed_phases"] == ["phase-1"]


def test_a_run_that_would_stop_again_is_not_said_to_go_on(project: Path) -> None:
    config(project, "[budget]\nhard_tokens = 5\n")
    workspace = begun(project)
    write(project, workspace, "analysis.md")
    ask(project, workspace, previous_action_complete=True, previous_tokens=9)
    for argv in ([], ["--limit", "hard_tokens=9"]):
        words = refused(project, "pipeline", "resume", workspace, *argv)
        assert "would stop again at once, before phase-3" in words
        assert "--limit hard_tokens=N" in words
    assert said(project, "show", workspace)["limits"] == {"hard_tokens": 5}, "nothing is changed"
    assert "--limit hard_tokens=N" in run(project, "pipeline", "show", workspace, COLUMNS="300").stdout
    assert said(project, "resume", workspace, "--limit", "hard_tokens=10")["status"] == "in_progress"
    assert ask(project, workspace)["phase"] == "phase-3"


def test_a_run_that_is_to_stop_where_it_has_been_is_not_said_to_go_on(project: Path) -> None:
    workspace = begun(project)
    write(project, workspace, "analysis.md")
    ask(project, workspace, previous_action_complete=True)
    said(project, "pause", workspace)
    words = refused(project, "pipeline", "resume", workspace, "--until", "phase-1")
    assert "would stop again at once, before phase-3" in words
    assert "or --until end" in words
    assert said(project, "show", workspace)["stopped"] == "paused"


def test_a_run_that_does_not_stand_still_is_not_resumed(project: Path) -> None:
    workspace = waiting(project)
    words = refused(project, "pipeline", "resume", workspace)
    assert "is not stopped; it waits for you at checkpoint-a" in words
    assert "handrail approve gate_" in words
    run(project, "approve")
    assert "pipeline_next_action" in refused(project, "pipeline", "resume", workspace)


def test_a_run_that_is_over_says_how_it_ended(project: Path) -> None:
    workspace = begun(project)
    said(project, "abandon", workspace)
    assert f"{workspace}, abandoned" in run(project, "pipeline", "show", workspace).stdout.splitlines()


def test_a_fork_says_of_which_run_it_is_one(project: Path) -> None:
    workspace = waiting(project)
    said(project, "fork", workspace, "--from", "phase-3")
    assert f"a fork of {workspace}, before phase-3" in run(project, "pipeline", "show", f"{workspace}-2").stdout


def test_between_two_phases_a_run_stands_before_the_next(project: Path) -> None:
    workspace = waiting(project)
    run(project, "approve")
    for argv in (["pipeline"], ["pipeline", "show", workspace]):
        shown = run(project, *argv).stdout
        assert "before phase-4" in shown
        assert "at after" not in shown


# -- drawn ------------------------------------------------------------------------------------------------------------


def drawn(**parts: Any) -> dict[str, Any]:
    """A run as data, as `pipeline show` draws it."""
    phase = {"id": "checkpoint-a", "label": "Human Reviews Design", "status": "done", "times": 0, "tokens": 0}
    return {
        "title": "Fix the auth timeout",
        "flow": "standard",
        "effort": "M",
        "workspace": ".specs/20260401-fix-auth",
        "stands": "at phase-4",
        "forked_from": None,
        "fork_of": None,
        "held_by": None,
        "phases": [{**phase, "answer": None, **parts.pop("phase", {})}],
        "tokens": 19_000,
        "minutes": 1.0,
        "money": None,
        "limits": {},
        "expected": None,
        "waits_at": None,
        "stopped": None,
        "go_on_with": None,
        "quiet_ms": 0,
        **parts,
    }


def text_of(room: int = 200, **parts: Any) -> str:
    return "\n".join(pipeline.shown_run_lines(drawn(**parts), room))


def test_numbers_are_said_as_people_say_them() -> None:
    phase = {"times": 1, "tokens": 1000}
    shown = text_of(phase=phase, money=3.0, limits={"hard_tokens": 1_000_000.0, "hard_money": 2.5, "until": "phase-4"})
    assert "checkpoint-a  1,000 tokens in 1 turn\n" in shown
    assert (
        "Spent: 19,000 tokens, 1 minute, 3.00 at your prices (limits: hard_tokens 1,000,000, hard_money 2.50)." in shown
    )
    assert "1,000 tokens in 3 turns" in text_of(phase={"times": 3, "tokens": 1000})
    assert "19,000 tokens" in "\n".join(pipeline.listed_lines(drawn(), 80))


def test_one_run_is_no_statistic() -> None:
    tokens = {"p50": 12_000, "p90": 14_000}
    one, many = ({"runs": count, "tokens": tokens} for count in (1, 12))
    assert " The one run of this effort that has ended took 14,000 tokens." in text_of(expected=one)
    assert " Of 12 runs of this effort half took at most 12,000 tokens, nine of ten 14,000." in text_of(expected=many)


def test_who_opened_a_gate_and_who_drives_is_said() -> None:
    auto = {"gate": "checkpoint-a", "answer": "approve", "by": "handrail", "channel": "auto"}
    assert "checkpoint-a  opened by --auto" in text_of(phase={"answer": auto})
    person = {"gate": "phase-3b-limit", "answer": "approve", "by": "ada", "channel": "cli"}
    assert "checkpoint-a  approve by ada at phase-3b-limit" in text_of(phase={"answer": person})
    assert "driven by ada" in text_of(held_by={"name": "ada"})


def test_a_gate_that_opened_by_itself_is_shown_as_such(project: Path) -> None:
    ready = call(
        project,
        "pipeline_init_with_context",
        workspace=".specs/20260401-x",
        task_text="Fix the auth timeout",
        flags={"auto": True},
        user_confirmation={"effort": "M", "workspace_slug": "fix-auth"},
    )
    action = ask(project, ready["workspace"])
    while action["phase"] != "phase-4":
        verdict = "# Review\n\n## Verdict: APPROVE\n"
        write(
            project,
            ready["workspace"],
            action["output_file"],
            verdict if action["phase"] == "phase-3b" else "## Part\n",
        )
        action = ask(project, ready["workspace"], previous_action_complete=True)
    shown = run(project, "pipeline", "show", "fix-auth").stdout
    assert "✓ Human Reviews Design checkpoint-a opened by --auto" in " ".join(shown.split())


def test_a_run_is_drawn_in_the_columns_there_are(project: Path) -> None:
    workspace = waiting(project)
    call(
        project,
        "pipeline_init_with_context",
        workspace=".specs/20260401-y",
        task_text="Fix a thing that has a title " + "of very many words " * 8,
        user_confirmation={"effort": "S", "workspace_slug": "long-" * 8},
    )
    for argv in (["pipeline"], ["pipeline", "show", workspace], ["status"], ["approve", "--show"]):
        lines = run(project, *argv, COLUMNS="80").stdout.splitlines()
        assert max(map(len, lines)) <= 80, argv
    long = drawn(title="x" * 200, stands="waits for you at checkpoint-a", workspace=".specs/" + "y" * 100)
    assert max(map(len, pipeline.listed_lines(long, 80))) <= 80
    wide = {"label": "z" * 90, "times": 9, "tokens": 10**9, "answer": None}
    assert max(map(len, pipeline.shown_run_lines(drawn(phase=wide, waits_at="checkpoint-a"), 80))) <= 80
