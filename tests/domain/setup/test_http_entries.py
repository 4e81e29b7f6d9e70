"""Lines for HTTP: every client that takes it has one, in its own shape, and none goes into a project's file."""

from __future__ import annotations

import json
import tomllib

import pytest

from handrail.domain.setup.clients import CLIENTS
from handrail.domain.setup.http_entries import NONE, http_lines

LINES = http_lines("http://127.0.0.1:8765/mcp", "s3cret")


def test_every_client_has_a_line_or_a_reason() -> None:
    assert {client.name for client in CLIENTS} == {*LINES, *NONE}


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("gemini", {"httpUrl": "U", "headers": "H"}),
        ("qwen", {"httpUrl": "U", "headers": "H"}),
        ("windsurf", {"serverUrl": "U", "headers": "H"}),
        ("opencode", {"type": "remote", "enabled": True, "url": "U", "headers": "H"}),
        ("vscode", {"type": "http", "url": "U", "headers": "H"}),
        ("copilot", {"type": "http", "tools": ["*"], "url": "U", "headers": "H"}),
        ("cursor", {"url": "U", "headers": "H"}),
        ("zed", {"url": "U", "headers": "H"}),
    ],
)
def test_each_in_its_shape(name: str, entry: dict[str, object]) -> None:
    (servers,) = json.loads(LINES[name][1]).values()
    filled = {"U": "http://127.0.0.1:8765/mcp", "H": {"Authorization": "Bearer s3cret"}}
    assert servers == {"handrail": {key: filled.get(str(value), value) for key, value in entry.items()}}


def test_codex_reads_its_lines() -> None:
    server = tomllib.loads(LINES["codex"][1])["mcp_servers"]["handrail"]
    assert server["http_headers"] == {"Authorization": "Bearer s3cret"}


def test_the_token_goes_into_no_file_of_a_project() -> None:
    assert [name for name, (where, _) in LINES.items() if where.startswith("into .")] == []
