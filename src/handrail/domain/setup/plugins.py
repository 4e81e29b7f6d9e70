"""Handrail as a plugin of Claude Code and Codex and as an extension of Gemini CLI: every file of them, from the records
that init uses. Pure. A plugin travels, so it starts the programs that an installation puts on the PATH, and no path of
a machine gets into it."""

from __future__ import annotations

import json
from typing import Any

from handrail.domain.setup.blocks import RULES
from handrail.domain.setup.clients import SERVER
from handrail.domain.setup.hook_files import HOOK_FILES, MODULE, entry_of
from handrail.domain.setup.slash_commands import COMMANDS, as_gemini_toml, as_markdown, as_skill

FOLDER = "plugins"
DESCRIPTION = "Plan and journal for coding agents: what is being done, what was decided, where to go on."
LICENSE = "Apache-2.0"
HOOK_PROGRAM = "handrail-hook"


def plugin_files(version: str) -> dict[str, str]:
    """Every file by its path from the root of a repository that is a marketplace."""
    files = {
        ".claude-plugin/marketplace.json": _json(_claude_marketplace(version)),
        ".agents/plugins/marketplace.json": _json(_codex_marketplace()),
    }
    for client, own in (("claude-code", _claude(version)), ("codex", _codex(version)), ("gemini", _gemini(version))):
        files |= {f"{FOLDER}/{client}/{name}": text for name, text in own.items()}
    return files


def hooks_of(client: str) -> str:
    """A client's hooks as a file of its plugin, run by the program on the PATH."""
    (hooks,) = [known for known in HOOK_FILES if known.client == client]
    listed: dict[str, list[Any]] = {}
    for event in hooks.events:
        listed.setdefault(event.event, []).append(entry_of(hooks, event, ()))
    return _json({"hooks": listed}).replace(f"-m {MODULE} ", f"{HOOK_PROGRAM} ")


def _claude(version: str) -> dict[str, str]:
    return {
        ".claude-plugin/plugin.json": _json(_identity(version)),
        ".mcp.json": _json({"mcpServers": _servers()}),
        "hooks/hooks.json": hooks_of("claude-code"),
        **{f"commands/{command.name}.md": as_markdown(command) for command in COMMANDS},
    }


def _codex(version: str) -> dict[str, str]:
    parts = {"skills": "./skills/", "mcpServers": "./.mcp.json", "hooks": "./hooks/hooks.json"}
    return {
        ".codex-plugin/plugin.json": _json({**_identity(version), **parts}),
        ".mcp.json": _json({"mcpServers": _servers()}),
        "hooks/hooks.json": hooks_of("codex"),
        **{f"skills/{command.name}/SKILL.md": as_skill(command) for command in COMMANDS},
    }


def _gemini(version: str) -> dict[str, str]:
    parts = {"mcpServers": _servers(), "contextFileName": "GEMINI.md"}
    return {
        "gemini-extension.json": _json(
            {"name": SERVER, "version": version, "description": DESCRIPTION, **parts},
        ),
        "GEMINI.md": RULES,
        "hooks/hooks.json": hooks_of("gemini"),
        **{f"commands/{SERVER}/{command.name}.toml": as_gemini_toml(command) for command in COMMANDS},
    }


def _claude_marketplace(version: str) -> dict[str, Any]:
    entry = {"name": SERVER, "source": f"./{FOLDER}/claude-code", "description": DESCRIPTION, "version": version}
    return {"name": SERVER, "owner": {"name": "Handrail"}, "metadata": {"description": DESCRIPTION}, "plugins": [entry]}


def _codex_marketplace() -> dict[str, Any]:
    entry = {
        "name": SERVER,
        "source": {"source": "local", "path": f"./{FOLDER}/codex"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Productivity",
    }
    return {"name": SERVER, "interface": {"displayName": "Handrail"}, "plugins": [entry]}


def _identity(version: str) -> dict[str, Any]:
    who = {"author": {"name": "Handrail"}, "license": LICENSE}
    return {"name": SERVER, "version": version, "description": DESCRIPTION, **who}


def _servers() -> dict[str, Any]:
    return {SERVER: {"command": "handrail", "args": ["serve"]}}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
