"""The command line as a person uses it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail import __version__
from handrail.surfaces.cli.main import COMMANDS, cli


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def run(project: Path, *argv: str) -> click.testing.Result:
    runner = click.testing.CliRunner(env={"HOME": str(project.parent / "home")})
    return runner.invoke(cli, [*argv, "--root", str(project)], prog_name="handrail")


def run_json(project: Path, *argv: str) -> Any:
    done = run(project, *argv, "--json")
    assert done.exit_code == 0, done.output
    return msgspec.json.decode(done.stdout)


def test_help_lists_every_command_with_its_purpose() -> None:
    done = click.testing.CliRunner().invoke(cli, ["--help"])
    assert done.exit_code == 0
    for name, (_, summary) in COMMANDS.items():
        assert name in done.output
        assert summary in done.output


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    done = click.testing.CliRunner().invoke(cli, [command, "--help"])
    assert done.exit_code == 0
    assert "Usage:" in done.output


@pytest.mark.parametrize(
    "path", ["guide list", "guide show", "guide validate", "guide new", "guide schema", "call", "tools"]
)
def test_every_command_takes_root_db_and_json(path: str) -> None:
    done = click.testing.CliRunner().invoke(cli, [*path.split(), "--help"])
    assert all(option in done.output for option in ("--root", "--db", "--json"))


def test_a_mistyped_command_gets_the_nearest(project: Path) -> None:
    done = run(project, "giude", "list")
    assert done.exit_code == 2
    assert "did you mean guide?" in done.output
    below = run(project, "db", "chek")
    assert below.exit_code == 2
    assert "there is no command db chek; did you mean check?" in below.output


def test_version(project: Path) -> None:
    assert run(project, "version").stdout == f"handrail {__version__}\n"
    assert len(run_json(project, "version")["mcp"]) == 5


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("8765", "is not HOST:PORT"),
        ("127.0.0.1:99999", "is not HOST:PORT"),
        ("0.0.0.0:0", "can be reached from other machines"),
    ],
)
def test_an_address_that_must_not_be_served_is_refused(project: Path, address: str, says: str) -> None:
    done = run(project, "up", "--http", address)
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_port_that_is_taken_is_refused_with_a_way_out(project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(project, "up", "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.exit_code == 2
    assert "127.0.0.1:0" in done.stderr


def test_a_call_takes_json_or_pairs(project: Path) -> None:
    whole = run_json(project, "call", "workflow_next", '{"workflowId": "bug-hunt", "completedSteps": []}')
    pairs = run_json(project, "call", "workflow_next", "workflowId=bug-hunt", "completedSteps=[]")
    assert whole == pairs
    assert whole["isComplete"] is False


def test_a_pairs_value_is_a_text_where_the_tool_takes_a_text(project: Path) -> None:
    verdict = run_json(
        project, "call", "workflow_validate", "workflowId=ai-task-implementation", "stepId=understand", "output=123"
    )
    assert "valid" in verdict


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (("call", "workflow_get", "id=no-such-guide"), 1, "WORKFLOW_NOT_FOUND"),
        (("call", "workflow_gte", "id=x"), 1, "did you mean workflow_get?"),
        (("call", "workflow_get"), 2, "id is required"),
        (("call", "workflow_get", "id"), 2, "neither key=value nor"),
        (("call", "workflow_get", "{"), 2, "not valid JSON"),
        (("tools", "--toolsets", "gide"), 2, "did you mean guide?"),
        (("tools", "--toolsets", "bt"), 2, "not in this version"),
        (("tools", "--profile", "sole"), 2, "did you mean solo?"),
        (("tools", "--set", "profil=solo"), 2, "did you mean profile?"),
        (("tools", "--set", "profile"), 2, "has no value"),
        (("guide", "show", "bug-hnt"), 1, "did you mean bug-hunt?"),
        (("guide", "validate", "nothing-here"), 1, "neither a file nor a guide"),
        (("guide", "new", "A B"), 2, "cannot be a guide's id"),
    ],
)
def test_exit_codes_and_messages_mean_something(project: Path, argv: tuple[str, ...], code: int, says: str) -> None:
    done = run(project, *argv)
    assert done.exit_code == code
    assert says in done.stderr
    assert done.stdout == ""


def test_a_refusal_as_json_goes_to_standard_output(project: Path) -> None:
    done = run(project, "call", "workflow_get", "id=no-such-guide", "--json")
    assert done.exit_code == 1
    assert msgspec.json.decode(done.stdout)["error"]["code"] == "WORKFLOW_NOT_FOUND"


def test_call_shows_what_a_tool_takes(project: Path) -> None:
    done = run(project, "call", "workflow_next", "--arguments")
    assert "completedSteps" in done.stdout
    assert "needed; " in done.stdout
    shown = " ".join(run(project, "call", "message_send", "--arguments").stdout.split())
    assert "priority one of high, low, normal, urgent, else" in shown
    assert run_json(project, "call", "workflow_next", "--arguments")["required"] == ["workflowId", "completedSteps"]


def test_call_shows_what_every_stored_write_takes_too(project: Path) -> None:
    identity = {"agent_id", "fence", "agent_secret"}
    listed = run(project, "call", "checkpoint_add", "--arguments").stdout.split()
    assert identity <= set(listed)
    assert identity <= set(run_json(project, "call", "checkpoint_add", "--arguments")["properties"])
    without = run_json(project, "call", "checkpoint_add", "--arguments", "--toolsets", "checkpoint")
    assert not identity & set(without["properties"]), "only where the toolset agent is on"
    assert not identity & set(run_json(project, "call", "workflow_next", "--arguments")["properties"])


def test_tools_lists_what_clients_are_shown(project: Path) -> None:
    listed = run_json(project, "tools")["tools"]
    assert [tool["name"] for tool in listed][:3] == ["mcp_info", "mcp_capabilities", "workflow_list"]
    assert "tokens" in run(project, "tools").stdout


def test_a_new_guide_is_ready_to_be_followed(project: Path) -> None:
    done = run(project, "guide", "new", "release-notes", "--name", "Release notes")
    assert done.exit_code == 0, done.output
    assert (project / ".handrail" / "guides" / "release-notes.yaml").exists()
    assert run(project, "guide", "validate", "release-notes").exit_code == 0
    listed = {entry["id"]: entry for entry in run_json(project, "guide", "list")["guides"]}
    assert (listed["release-notes"]["name"], listed["release-notes"]["source"]) == ("Release notes", "project")
    assert run_json(project, "call", "workflow_next", "workflowId=release-notes", "completedSteps=[]")["step"]["id"]
    again = run(project, "guide", "new", "release-notes")
    assert again.exit_code == 2
    assert "is there already" in again.stderr


def test_a_broken_guide_is_listed_with_file_position_and_reason(project: Path) -> None:
    folder = project / "workflows"
    folder.mkdir()
    broken = folder / "half.json"
    broken.write_text('{\n  "id": "half",\n  "name": 5\n}\n', encoding="utf-8")
    shown = run(project, "guide", "list")
    assert shown.exit_code == 0
    assert f"{broken}:3:" in shown.stdout
    (problem,) = run_json(project, "guide", "list")["problems"]
    assert (problem["id"], problem["line"], problem["path"]) == ("half", 3, "name")
    checked = run(project, "guide", "validate", str(broken))
    assert checked.exit_code == 1
    assert "name" in checked.stdout
    assert run(project, "guide", "validate").exit_code == 1
    refused = run(project, "call", "workflow_get", "id=half")
    assert (refused.exit_code, "INVALID_WORKFLOW" in refused.stderr) == (1, True)


def test_show_prints_a_guide_whole(project: Path) -> None:
    shown = run(project, "guide", "show", "code-review")
    assert shown.exit_code == 0
    assert "when " in shown.stdout
    assert run_json(project, "guide", "show", "code-review")["id"] == "code-review"


def test_the_schema_is_a_schema_that_the_bundled_guides_fit(project: Path) -> None:
    import jsonschema_rs

    validator = jsonschema_rs.validator_for(run_json(project, "guide", "schema"))
    for entry in run_json(project, "guide", "list")["guides"]:
        assert validator.is_valid(run_json(project, "guide", "show", entry["id"]))


def test_settings_shows_the_values_in_force(project: Path) -> None:
    assert run_json(project, "settings")["profile"] == "solo"
    assert "HANDRAIL_PROFILE" in run(project, "settings").stdout


def test_settings_never_shows_a_password(project: Path) -> None:
    address = "postgresql://team:hunter2@db.example/handrail"
    for done in (run(project, "settings", "--db", address), run(project, "settings", "--json", "--db", address)):
        assert "db.example" in done.stdout
        assert "hunter2" not in done.stdout
