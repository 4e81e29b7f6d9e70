"""For every client: with an empty home, `handrail init --yes`, then the written file is read the way that client reads
it, the server is started exactly as it says, and a task is completed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.setup.clients import CLIENTS
from tests.process.peer import ServerProcess

HANDRAIL = [sys.executable, "-m", "handrail"]


def strict(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_as(name: str, project: Path, home: Path) -> tuple[list[str], Path]:
    """The command and the folder a client would start the server with, from its own file and by its own rules. Written
    anew for each: what init believes about a client is not asked."""
    if name in ("claude-code", "copilot", "mcp-json"):
        server = strict(project / ".mcp.json")["mcpServers"]["handrail"]
        assert server["type"] == "stdio"
    elif name == "codex":
        server = tomllib.loads((project / ".codex/config.toml").read_text())["mcp_servers"]["handrail"]
    elif name == "cursor":
        server = strict(project / ".cursor/mcp.json")["mcpServers"]["handrail"]
    elif name == "vscode":
        server = strict(project / ".vscode/mcp.json")["servers"]["handrail"]
        assert server["type"] == "stdio"
    elif name == "opencode":
        whole = strict(project / "opencode.json")
        assert list(whole) == ["$schema", "mcp"], "what OpenCode would add itself is there already"
        server = whole["mcp"]["handrail"]
        assert (server["type"], server["enabled"]) == ("local", True)
        return server["command"], project
    elif name in ("gemini", "qwen"):
        server = strict(project / f".{name}/settings.json")["mcpServers"]["handrail"]
    elif name == "windsurf":
        server = strict(home / ".codeium/windsurf/mcp_config.json")["mcpServers"]["handrail"]
    elif name == "zed":
        server = strict(project / ".zed/settings.json")["context_servers"]["handrail"]
    else:
        folder = "Library/Application Support" if sys.platform == "darwin" else ".config"
        server = strict(home / folder / "Claude/claude_desktop_config.json")["mcpServers"]["handrail"]
    words = [server["command"], *server["args"]]
    if name in ("cursor", "vscode"):
        words = [word.replace("${workspaceFolder}", str(project)) for word in words]
    # These start servers wherever they happen to be themselves.
    elsewhere = name in ("cursor", "windsurf", "zed", "claude-desktop")
    return words, Path("/") if elsewhere else project


@pytest.fixture
def home(_empty_home: Path) -> Path:
    return _empty_home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = (tmp_path / "my project").resolve()
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def called(server: ServerProcess, tool: str, **arguments: Any) -> Any:
    reply = server.ask("tools/call", {"name": tool, "arguments": arguments})
    assert not reply["result"].get("isError"), reply
    return reply["result"]["structuredContent"]


@pytest.mark.parametrize("name", [client.name for client in CLIENTS])
def test_a_client_completes_a_task_with_what_init_wrote(name: str, project: Path, home: Path) -> None:
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [*HANDRAIL, "init", "--yes", "--client", name],
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words, folder = read_as(name, project, home)
    assert Path(words[0]).is_absolute()
    with ServerProcess(words, cwd=folder, env={"HOME": str(home)}) as server:
        assert server.initialize()["result"]["serverInfo"]["name"] == "handrail"
        workflow = called(server, "start_workflow", name="Try it")
        task = called(server, "start_task", workflow_id=workflow["workflow_id"], name="One", goal="a file")
        (project / "new.txt").write_text("hello\n", encoding="utf-8")
        outcome = {"summary": "Made a file.", "achievements": [], "limitations": []}
        ended = called(server, "complete_task", task_id=task["task_id"], status="success", outcome=outcome)
        assert ended["files_changed"]["added"] == ["new.txt"]
    assert (project / ".handrail" / "handrail.db").is_file()


def test_a_folder_called_handrail_in_the_project_is_not_taken_for_it(project: Path, home: Path) -> None:
    (project / "handrail").mkdir()
    (project / "handrail" / "__init__.py").write_text("raise SystemExit('somebody else')\n", encoding="utf-8")
    (project / "msgspec.py").write_text("raise SystemExit('somebody else')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "handrail", "init", "--yes", "--client", "claude-code"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words, folder = read_as("claude-code", project, home)
    with ServerProcess(words, cwd=folder) as server:
        assert server.initialize()["result"]["serverInfo"]["name"] == "handrail"
