"""`handrail doctor` on what a client gets to see: the folder it trusts, the folder it is started in, the instructions
that it really reads, and its plugin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click.testing
import pytest

from handrail.domain.setup.blocks import block
from handrail.outside.client_files import ClientFiles, this_machine
from handrail.setup.client_checks import check_clients, check_hooks, check_instructions
from handrail.setup.findings import Finding, Patient
from tests.setup.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def patient(desk: Desk, **more: Any) -> Patient:
    environ = {"HOME": str(desk.home), "PATH": ""}
    files = ClientFiles(desk.project, this_machine(desk.home, environ))
    return Patient(project=desk.project, home=desk.home, environ=environ, files=files, now_ms=0, **more)


def server(desk: Desk, name: str) -> None:
    """A client's server that nobody starts: it is reached at an address."""
    desk.write(name, json.dumps({"mcpServers": {"handrail": {"url": "http://127.0.0.1:1/mcp"}}}))


def told(findings: list[Finding]) -> str:
    return "\n".join(f"{one.level} {one.what} / {one.fix}" for one in findings)


@pytest.mark.parametrize(
    ("client", "sign", "trusting"),
    [
        ("codex", "~/.codex/config.toml", '[projects."{project}"]\ntrust_level = "trusted"\n'),
        ("gemini", "~/.gemini/trustedFolders.json", '{{"{project}": "TRUST_FOLDER"}}'),
        ("gemini", "~/.gemini/settings.json", '{{"security": {{"folderTrust": {{"enabled": false}}}}}}'),
    ],
)
def test_a_folder_that_is_not_trusted_is_told(desk: Desk, client: str, sign: str, trusting: str) -> None:
    if client == "codex":
        desk.write(".codex/config.toml", '[mcp_servers.handrail]\nurl = "http://127.0.0.1:1/mcp"\n')
    else:
        server(desk, ".gemini/settings.json")
    said = told(list(check_clients(patient(desk))))
    assert "does not trust this one yet" in said
    assert f"start {client} in {desk.project} once and say yes" in said
    desk.write(sign, trusting.format(project=desk.project))
    assert "trust" not in told(list(check_clients(patient(desk))))


def test_in_a_subfolder_it_says_what_a_client_misses_there(desk: Desk) -> None:
    server(desk, ".mcp.json")
    server(desk, ".gemini/settings.json")
    assert "started in" not in told(list(check_clients(patient(desk))))
    said = told(list(check_clients(patient(desk, below=f"{desk.project}/src"))))
    assert (
        f"Claude Code, started in {desk.project}/src: the server and the commands are found, the hooks are not" in said
    )
    assert f"Gemini CLI, started in {desk.project}/src: the server is not found" in said


def test_the_command_knows_that_it_is_in_a_subfolder(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from handrail.surfaces.cli.main import cli

    server(desk, ".gemini/settings.json")
    below = desk.project / "src"
    below.mkdir()
    monkeypatch.chdir(below)
    runner = click.testing.CliRunner(env={"HOME": str(desk.home), "HANDRAIL_HTTP": "127.0.0.1:0"})
    said = runner.invoke(cli, ["doctor", "--json"], prog_name="handrail").stdout
    assert f"started in {below}: the server is not found" in said


def test_the_file_that_a_client_really_reads_is_looked_at(desk: Desk) -> None:
    server(desk, ".mcp.json")
    desk.write("AGENTS.md", block() + "\n")
    said = told(list(check_instructions(patient(desk))))
    assert f"ok {desk.project}/AGENTS.md: current" in said
    assert f"look {desk.project}/CLAUDE.md (for Claude Code) does not tell agents of Handrail / handrail init" in said
    desk.write("CLAUDE.md", "# Ours\n@AGENTS.md\n")
    said = told(list(check_instructions(patient(desk))))
    assert f"ok {desk.project}/AGENTS.md (for Claude Code): current" in said
    assert "CLAUDE.md" not in said


def test_without_a_client_no_missing_file_is_missed(desk: Desk) -> None:
    assert list(check_instructions(patient(desk))) == []


def test_a_plugin_counts_as_a_server_and_two_are_told(desk: Desk) -> None:
    desk.write("~/.claude/settings.json", '{"enabledPlugins": {"handrail@handrail": true}}')
    assert "ok Claude Code has the plugin" in told(list(check_clients(patient(desk))))
    server(desk, ".mcp.json")
    assert "two servers of the same name" in told(list(check_clients(patient(desk))))


def test_one_file_of_several_clients_is_told_once(desk: Desk) -> None:
    server(desk, ".mcp.json")
    checks = [one.check for one in check_clients(patient(desk))]
    assert checks == ["claude-code"]


def test_hooks_of_this_installation_need_no_trial(desk: Desk) -> None:
    desk.well("--client", "codex", "--yes")
    (finding,) = [one for one in check_hooks(patient(desk)) if ".codex" in one.what]
    assert finding.level == "ok"
