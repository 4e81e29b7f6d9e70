"""`handrail init`, client by client: instructions in the file that each really reads, permission only as it was given,
what a client would add itself, and what its plugin brings already."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.setup.clients import CLIENTS, SERVER
from handrail.outside.client_files import ClientFiles, this_machine
from tests.setup.desk import Desk

MARK = "handrail:begin"
BY_NAME = {client.name: client for client in CLIENTS}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def marked(desk: Desk) -> set[str]:
    """The files of the project that have the block."""
    files = [path for path in desk.project.rglob("*.md") if MARK in path.read_text(encoding="utf-8")]
    return {path.relative_to(desk.project).as_posix() for path in files}


# -- instructions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "made"),
    [
        ("claude-code", {"CLAUDE.md"}),
        ("codex", {"AGENTS.md"}),
        ("cursor", {"AGENTS.md"}),
        ("vscode", {".github/copilot-instructions.md"}),
        ("opencode", {"AGENTS.md"}),
        ("gemini", {"GEMINI.md"}),
        ("qwen", {"AGENTS.md"}),
        ("copilot", {"AGENTS.md"}),
        ("zed", {"AGENTS.md"}),
        ("windsurf", {"AGENTS.md"}),
        ("mcp-json", {"AGENTS.md"}),
        ("claude-desktop", set()),
    ],
)
def test_the_block_is_where_the_client_reads_it(desk: Desk, client: str, made: set[str]) -> None:
    desk.well("--client", client, "--yes")
    assert marked(desk) == made
    desk.well("--remove", "--yes")
    assert marked(desk) == set()


def test_every_client_has_a_line_above() -> None:
    (marks,) = [mark for mark in test_the_block_is_where_the_client_reads_it.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert {row[0] for row in marks.args[1]} == set(BY_NAME)


@pytest.mark.parametrize(
    ("client", "there", "used"),
    [
        ("claude-code", [".claude/CLAUDE.md"], {".claude/CLAUDE.md"}),
        ("codex", ["AGENTS.override.md", "CLAUDE.md"], {"AGENTS.override.md"}),
        ("opencode", ["CLAUDE.md"], {"CLAUDE.md"}),
        ("qwen", ["QWEN.md"], {"QWEN.md"}),
        ("copilot", [".github/copilot-instructions.md"], {".github/copilot-instructions.md"}),
        ("zed", ["GEMINI.md", "CLAUDE.md"], {"CLAUDE.md"}),
        ("gemini", ["AGENTS.md"], {"AGENTS.md", "GEMINI.md"}),
    ],
)
def test_a_file_that_is_there_is_used(desk: Desk, client: str, there: list[str], used: set[str]) -> None:
    for name in there:
        desk.write(name, "# Rules\n")
    desk.well("--client", client, "--yes")
    assert marked(desk) == used


def test_without_a_client_no_instructions_are_made(desk: Desk) -> None:
    desk.well("--yes")
    assert marked(desk) == set()


def test_a_file_that_brings_in_another_has_the_block_there(desk: Desk) -> None:
    desk.write("AGENTS.md", "# Rules\n")
    desk.write("CLAUDE.md", "@AGENTS.md\n")
    desk.write("GEMINI.md", "@./AGENTS.md\n")
    desk.well("--client", "claude-code", "--client", "gemini", "--yes")
    assert marked(desk) == {"AGENTS.md"}


def test_a_gemini_that_reads_another_file_has_the_block_there(desk: Desk) -> None:
    desk.write(".gemini/settings.json", '{"context": {"fileName": ["CONTEXT.md", "AGENTS.md"]}}')
    desk.well("--client", "gemini", "--yes")
    assert marked(desk) == {"CONTEXT.md"}


@pytest.mark.parametrize("name", ["../out.md", "/etc/x.md", "a/b.md", "setup.py", 7, None])
def test_settings_of_a_repository_lead_to_no_strange_file(desk: Desk, name: object) -> None:
    desk.write(".gemini/settings.json", json.dumps({"context": {"fileName": name}}))
    desk.well("--client", "gemini", "--yes")
    assert marked(desk) == {"GEMINI.md"}


def test_an_old_block_is_renewed_wherever_it_is(desk: Desk) -> None:
    desk.well("--client", "claude-code", "--yes")
    old = desk.text("CLAUDE.md")
    desk.well("--client", "codex", "--yes")
    assert desk.text("CLAUDE.md") == old
    assert marked(desk) == {"CLAUDE.md", "AGENTS.md"}


# -- permission -------------------------------------------------------------------------------------------------------


def permission(desk: Desk, client: str) -> Any:
    if client == "claude-code":
        file = desk.project / ".claude/settings.json"
        return json.loads(file.read_text(encoding="utf-8")).get("permissions")
    if client == "codex":
        return tomllib.loads(desk.text(".codex/config.toml"))["mcp_servers"][SERVER].get("default_tools_approval_mode")
    return json.loads(desk.text(f".{client}/settings.json"))["mcpServers"][SERVER].get("trust")


GIVEN = {"claude-code": {"allow": ["mcp__handrail"]}, "codex": "approve", "gemini": True, "qwen": True}


@pytest.mark.parametrize("client", GIVEN)
def test_permission_is_written_only_if_it_was_given(desk: Desk, client: str) -> None:
    before = desk.everything()
    said = desk.well("--client", client, "--yes")
    assert permission(desk, client) is None, "never silently"
    assert "`handrail init --allow-tools` ends that" in " ".join(said.split())
    desk.well("--client", client, "--yes", "--no-allow-tools")
    assert permission(desk, client) is None
    said = desk.well("--client", client, "--yes", "--allow-tools")
    assert permission(desk, client) == GIVEN[client]
    assert "--allow-tools" not in said
    assert "nothing to do" in desk.well("--client", client, "--yes", "--allow-tools")
    desk.well("--remove", "--yes")
    assert desk.everything() == before


def test_at_a_terminal_it_is_asked_and_named(desk: Desk) -> None:
    told = desk.init("--client", "codex", "--approvals", "human", answer="y\ny\n")
    assert 'Codex: default_tools_approval_mode = "approve" for this server in .codex/config.toml' in told.output
    assert permission(desk, "codex") == "approve"
    again = desk.init("--client", "codex", "--profile", "team", answer="y\n")
    assert "without asking" not in again.output, "it is decided"
    assert again.exit_code == 0
    assert permission(desk, "codex") == "approve", "another profile takes no permission back"


def test_enter_means_no(desk: Desk) -> None:
    told = desk.init("--client", "gemini", "--approvals", "human", answer="\ny\n")
    assert told.exit_code == 0
    assert permission(desk, "gemini") is None


def test_who_decided_otherwise_is_left_alone(desk: Desk) -> None:
    desk.well("--client", "codex", "--yes")
    file = desk.project / ".codex/config.toml"
    file.write_text(file.read_text() + 'default_tools_approval_mode = "prompt"\n')
    desk.well("--client", "codex", "--yes", "--allow-tools")
    assert permission(desk, "codex") == "prompt"
    desk.write(".claude/settings.json", '{"permissions": {"allow": ["Bash(ls)"], "deny": ["WebFetch"]}}')
    desk.well("--client", "claude-code", "--yes", "--allow-tools")
    assert permission(desk, "claude-code") == {"allow": ["Bash(ls)", "mcp__handrail"], "deny": ["WebFetch"]}


@pytest.mark.parametrize(
    ("client", "old", "new"),
    [
        ("codex", '"serve"]\n', '"serve"]\nstartup_timeout_sec = 40\n'),
        ("gemini", '"command"', '"timeout": 40, "env": {"A": "b"}, "command"'),
    ],
)
def test_what_else_a_user_says_of_the_server_stays(desk: Desk, client: str, old: str, new: str) -> None:
    desk.well("--client", client, "--yes", "--allow-tools")
    file = Path(next(str(desk.project / name) for name in BY_NAME[client].files))
    file.write_text(file.read_text().replace(old, new, 1))
    desk.well("--client", client, "--yes", "--profile", "team")
    whole = tomllib.loads(file.read_text())["mcp_servers"] if client == "codex" else json.loads(file.read_text())
    (server,) = [whole[SERVER]] if client == "codex" else [whole["mcpServers"][SERVER]]
    assert server["args"][-2:] == ["--profile", "team"]
    assert server.get("startup_timeout_sec", server.get("timeout")) == 40
    assert permission(desk, client) == GIVEN[client]
    desk.well("--remove", "--yes")
    assert not file.exists()


# -- what a client adds itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", ['{\n  "$schema": "https://opencode.ai/config.json"\n}', '{"$version": 3}'])
def test_a_file_that_init_made_goes_with_what_the_client_added(desk: Desk, left: str) -> None:
    client = "opencode" if "opencode" in left else "qwen"
    desk.well("--client", client, "--yes")
    file = desk.project / ("opencode.json" if client == "opencode" else ".qwen/settings.json")
    file.write_text(json.dumps({**json.loads(left), **json.loads(file.read_text())}, indent=4))
    desk.well("--remove", "--yes")
    assert not file.exists()


def test_a_schema_of_ones_own_stays(desk: Desk) -> None:
    desk.write("opencode.json", '{"$schema": "https://here/own.json"}')
    desk.well("--client", "opencode", "--yes")
    assert json.loads(desk.text("opencode.json"))["$schema"] == "https://here/own.json"


# -- trust, subfolders, plugins ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "file", "trusting"),
    [
        ("codex", "~/.codex/config.toml", '[projects."{project}"]\ntrust_level = "trusted"\n'),
        ("gemini", "~/.gemini/trustedFolders.json", '{{"{project}": "TRUST_FOLDER"}}'),
    ],
)
def test_who_needs_trust_is_told_until_it_is_there(desk: Desk, client: str, file: str, trusting: str) -> None:
    assert "once you trust the folder" in desk.well("--client", client, "--yes")
    desk.well("--remove", "--yes")
    desk.write(file, trusting.format(project=desk.project))
    assert "once you trust" not in desk.well("--client", client, "--yes")


def test_where_a_client_must_be_started_is_said(desk: Desk) -> None:
    said = desk.well("--client", "claude-code", "--client", "gemini", "--client", "cursor", "--yes")
    assert f"Claude Code: start it in {desk.project}; in a folder below" in said
    assert f"Gemini CLI: start it in {desk.project}; in a folder below, the server is not found" in said
    assert "Cursor: start it" not in said


PLUGINS = {
    "claude-code": ("~/.claude/settings.json", '{"enabledPlugins": {"handrail@handrail": true}}', ".mcp.json"),
    "codex": ("~/.codex/config.toml", '[plugins."handrail@handrail"]\nenabled = true\n', ".codex"),
    "gemini": ("~/.gemini/extensions/handrail/gemini-extension.json", "{}", ".gemini"),
}


@pytest.mark.parametrize("client", PLUGINS)
def test_a_plugin_is_not_doubled_unless_the_client_is_named(desk: Desk, client: str) -> None:
    sign, text, written = PLUGINS[client]
    desk.write(sign, text)
    assert "its plugin brings the server" in desk.well("--yes")
    assert not (desk.project / written).exists()
    assert marked(desk) == {"claude-code": {"CLAUDE.md"}, "codex": {"AGENTS.md"}, "gemini": set()}[client]
    desk.well("--client", client, "--yes")
    assert (desk.project / written).exists()


@pytest.mark.parametrize("text", ["", "{", '{"enabledPlugins": {"handrail@x": false}}', '{"enabledPlugins": []}'])
def test_a_plugin_that_is_off_or_unreadable_counts_for_nothing(desk: Desk, text: str) -> None:
    desk.write("~/.claude/settings.json", text)
    files = ClientFiles(desk.project, this_machine(desk.home, {}))
    assert not files.has_plugin(BY_NAME["claude-code"])


def test_three_clients_of_one_file_share_one_server(desk: Desk) -> None:
    desk.well("--client", "claude-code", "--client", "copilot", "--client", "mcp-json", "--yes")
    whole = json.loads(desk.text(".mcp.json"))
    assert list(whole["mcpServers"]) == [SERVER]
    desk.well("--remove", "--yes")
    assert not (desk.project / ".mcp.json").exists()


def test_a_permission_that_is_there_is_not_passed_over(desk: Desk) -> None:
    desk.well("--client", "claude-code", "--yes", "--allow-tools")
    said = desk.init("--client", "claude-code", "--yes", "--no-allow-tools").output
    assert "permissions.allow" in said
    assert "--remove" in said
    assert "mcp__handrail" in desk.text(".claude/settings.json")
