"""For every client that reaches servers over HTTP: where a person pastes Handrail's address, and what. Only the user's
own files are named: the token is a secret, and a project's file is soon committed."""

from __future__ import annotations

import json
import shlex
from typing import Any, NamedTuple

from handrail.domain.setup.clients import SERVER


class HttpPlace(NamedTuple):
    """Where one client keeps such a server."""

    client: str
    where: str
    path: tuple[str, ...]
    url: str = "url"
    """The name of the member with the address."""
    more: tuple[tuple[str, Any], ...] = ()


PLACES = (
    HttpPlace("cursor", "~/.cursor/mcp.json", ("mcpServers",)),
    HttpPlace("vscode", "the file of `MCP: Open User Configuration`", ("servers",), more=(("type", "http"),)),
    HttpPlace("opencode", "~/.config/opencode/opencode.json", ("mcp",), more=(("type", "remote"), ("enabled", True))),
    HttpPlace("gemini", "~/.gemini/settings.json", ("mcpServers",), url="httpUrl"),
    HttpPlace("qwen", "~/.qwen/settings.json", ("mcpServers",), url="httpUrl"),
    HttpPlace("copilot", "~/.copilot/mcp-config.json", ("mcpServers",), more=(("type", "http"), ("tools", ["*"]))),
    HttpPlace("windsurf", "~/.codeium/windsurf/mcp_config.json", ("mcpServers",), url="serverUrl"),
    HttpPlace("zed", "~/.config/zed/settings.json", ("context_servers",)),
)
NONE = ("claude-desktop", "mcp-json")
"""Clients without such a place: one takes no token, the other is only a name for a file."""


def http_lines(url: str, token: str) -> dict[str, tuple[str, str]]:
    """By a client's name: where to paste, and what."""
    bearer = f"Bearer {token}"
    header = shlex.quote(f"Authorization: {bearer}")
    codex = f'[mcp_servers.{SERVER}]\n  url = "{url}"\n  http_headers = {{ Authorization = "{bearer}" }}'
    lines = {
        "claude-code": ("in a shell", f"claude mcp add --transport http {SERVER} {url} --header {header}"),
        "codex": ("into ~/.codex/config.toml", codex),
    }
    for place in PLACES:
        value: Any = {SERVER: {**dict(place.more), place.url: url, "headers": {"Authorization": bearer}}}
        for name in reversed(place.path):
            value = {name: value}
        lines[place.client] = (f"into {place.where}", json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return lines
