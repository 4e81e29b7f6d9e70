"""The clients that Handrail knows, as data: where each keeps its servers, in which shape, and how to tell that it is in
use. When a client changes, a line changes here.

Files in the project are preferred, because they are visible and travel with the project. The user's own files are used
only for clients that have no others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from handrail.domain.setup.edits import value_at

SERVER = "handrail"
AGENTS = "AGENTS.md"
WORKSPACE = "${workspaceFolder}"
"""The placeholder that VS Code and Cursor replace with the open folder."""


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """What lets a client call Handrail's tools without asking its user each time."""

    says: str
    """The setting, in the client's words, as it is offered to a person."""
    key: str = ""
    """A key of the server's own entry, or else:"""
    file: str = ""
    path: tuple[str, ...] = ()
    """a list in another file of the project."""
    value: str | bool


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One client."""

    name: str
    title: str
    files: tuple[str, ...]
    """Where its servers are kept: the first file that exists, or else the first. A leading ~ is the home folder, and
    {config} the folder where this system keeps programs' settings."""
    path: tuple[str, ...]
    """The path of names to the servers in that file."""
    form: Literal["json", "toml"] = "json"
    shape: Literal["plain", "stdio", "opencode", "zed"] = "plain"
    root: Literal["cwd", "workspace", "project"] = "cwd"
    """How the server learns which project it is for: from the folder it is started in, from a placeholder the client
    fills in, or from the project's path, if a client starts servers in arbitrary folders."""
    signs: tuple[str, ...]
    """Files and folders, in the project or under ~, that exist if the client is used."""
    programs: tuple[str, ...]
    note: str = ""
    """What a person still has to do."""
    instructions: tuple[str, ...] = (AGENTS,)
    """Where it looks for a project's instructions: the first of these that exists is the one for our block."""
    makes: str = AGENTS
    """The one to make if none exists; a client without instructions has none."""
    follows: bool = False
    """Whether a line `@file` in its instructions brings in another file."""
    context_names: tuple[str, ...] = ()
    """Settings in which `context.fileName` may name other instruction files; the first that says so counts."""
    allowance: Allowance | None = None
    """None: it does not ask, or has no such setting in a project's files."""
    plugin_file: str = ""
    """The user's file that says, or by being there shows, that the client has our plugin or extension."""
    plugin_tells: bool = False
    """Whether that brings the instructions, too."""
    schema: str = ""
    """The `$schema` that the client itself adds to its file."""
    trust_file: str = ""
    """The user's file that says which folders are trusted, if the project's files count only in those."""
    subfolder: str = ""
    """What is missing if it is started in a folder below the project's."""

    @property
    def is_personal(self) -> bool:
        """Whether its file belongs to the user rather than the project."""
        return self.files[0].startswith(("~", "{config}"))


CLIENTS: tuple[Client, ...] = (
    Client(
        name="claude-code",
        title="Claude Code",
        files=(".mcp.json",),
        path=("mcpServers",),
        shape="stdio",
        signs=(".mcp.json", ".claude", "CLAUDE.md", "~/.claude", "~/.claude.json"),
        programs=("claude",),
        note="it asks once whether you trust the folder, and once for the server",
        instructions=("CLAUDE.md", ".claude/CLAUDE.md"),
        makes="CLAUDE.md",
        follows=True,
        plugin_file="~/.claude/settings.json",
        allowance=Allowance(
            says='permissions.allow: ["mcp__handrail"] in .claude/settings.json',
            file=".claude/settings.json",
            path=("permissions", "allow"),
            value=f"mcp__{SERVER}",
        ),
        subfolder="the server and the commands are found, the hooks are not",
    ),
    Client(
        name="codex",
        title="Codex",
        files=(".codex/config.toml",),
        path=("mcp_servers",),
        form="toml",
        signs=(".codex", "~/.codex"),
        programs=("codex",),
        note="it reads the project's files once you trust the folder: start codex here and say yes",
        instructions=("AGENTS.override.md", AGENTS),
        allowance=Allowance(
            says='default_tools_approval_mode = "approve" for this server in .codex/config.toml',
            key="default_tools_approval_mode",
            value="approve",
        ),
        trust_file="~/.codex/config.toml",
        plugin_file="~/.codex/config.toml",
    ),
    Client(
        name="cursor",
        title="Cursor",
        files=(".cursor/mcp.json",),
        path=("mcpServers",),
        root="workspace",
        signs=(".cursor", "~/.cursor"),
        programs=("cursor", "cursor-agent"),
        note="turn the server on in Settings, MCP",
    ),
    Client(
        name="vscode",
        title="VS Code",
        files=(".vscode/mcp.json",),
        path=("servers",),
        shape="stdio",
        root="workspace",
        signs=(".vscode", "~/.vscode", "{config}/Code"),
        programs=("code",),
        instructions=(".github/copilot-instructions.md",),
        makes=".github/copilot-instructions.md",
        note="it asks once whether you trust the server",
    ),
    Client(
        name="opencode",
        title="OpenCode",
        files=("opencode.json", "opencode.jsonc"),
        path=("mcp",),
        shape="opencode",
        signs=("opencode.json", "opencode.jsonc", ".opencode", "~/.config/opencode"),
        programs=("opencode",),
        instructions=(AGENTS, "CLAUDE.md"),
        schema="https://opencode.ai/config.json",
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        files=(".gemini/settings.json",),
        path=("mcpServers",),
        signs=(".gemini", "~/.gemini"),
        programs=("gemini",),
        note="it reads the project's files once you trust the folder: start gemini here and say yes",
        instructions=("GEMINI.md",),
        makes="GEMINI.md",
        follows=True,
        plugin_file="~/.gemini/extensions/handrail/gemini-extension.json",
        plugin_tells=True,
        context_names=(".gemini/settings.json", "~/.gemini/settings.json"),
        allowance=Allowance(says="trust: true for this server in .gemini/settings.json", key="trust", value=True),
        trust_file="~/.gemini/trustedFolders.json",
        subfolder="the server is not found",
    ),
    Client(
        name="qwen",
        title="Qwen Code",
        files=(".qwen/settings.json",),
        path=("mcpServers",),
        signs=(".qwen", "~/.qwen"),
        programs=("qwen",),
        instructions=("QWEN.md", AGENTS),
        follows=True,
        context_names=(".qwen/settings.json", "~/.qwen/settings.json"),
        allowance=Allowance(says="trust: true for this server in .qwen/settings.json", key="trust", value=True),
        subfolder="the server is not found",
    ),
    Client(
        name="copilot",
        title="Copilot CLI",
        files=(".mcp.json",),
        path=("mcpServers",),
        shape="stdio",
        signs=("~/.copilot",),
        programs=("copilot",),
        note="it reads the project's file once you trust the folder; `copilot --allow-tool handrail` asks less",
        instructions=(AGENTS, ".github/copilot-instructions.md", "CLAUDE.md", "GEMINI.md"),
    ),
    Client(
        name="windsurf",
        title="Windsurf",
        files=("~/.codeium/windsurf/mcp_config.json",),
        path=("mcpServers",),
        root="project",
        signs=(".windsurf", "~/.codeium/windsurf"),
        programs=("windsurf",),
        note="its file is yours, not the project's: the server there serves this project alone",
    ),
    Client(
        name="zed",
        title="Zed",
        files=(".zed/settings.json",),
        path=("context_servers",),
        shape="zed",
        root="project",
        signs=(".zed", "~/.config/zed", "{config}/Zed"),
        programs=("zed", "zeditor"),
        instructions=(
            ".rules",
            ".cursorrules",
            ".windsurfrules",
            ".clinerules",
            ".github/copilot-instructions.md",
            "AGENT.md",
            AGENTS,
            "CLAUDE.md",
            "GEMINI.md",
        ),
    ),
    Client(
        name="claude-desktop",
        title="Claude Desktop",
        files=("{config}/Claude/claude_desktop_config.json",),
        path=("mcpServers",),
        root="project",
        signs=("{config}/Claude",),
        programs=(),
        instructions=(),
        makes="",
        note="start it again; its file is yours, not the project's: the server there serves this project alone",
    ),
    Client(
        name="mcp-json",
        title="Any client that reads .mcp.json",
        files=(".mcp.json",),
        path=("mcpServers",),
        shape="stdio",
        signs=(),
        programs=(),
    ),
)


class ClientMachine(msgspec.Struct, frozen=True, kw_only=True):
    """What must be known about a machine to find a client's files."""

    home: str
    platform: str
    """The value of sys.platform."""
    environ: Mapping[str, str]


def config_folder(machine: ClientMachine) -> str:
    """Where this system keeps programs' settings."""
    if machine.platform == "darwin":
        return f"{machine.home}/Library/Application Support"
    if machine.platform == "win32":
        return machine.environ.get("APPDATA") or f"{machine.home}/AppData/Roaming"
    return machine.environ.get("XDG_CONFIG_HOME") or f"{machine.home}/.config"


def located(name: str, project: str, machine: ClientMachine) -> str:
    """The full path of a client's file or sign."""
    if name.startswith("~/"):
        return f"{machine.home}/{name[2:]}"
    if name.startswith("{config}/"):
        return f"{config_folder(machine)}/{name[len('{config}/') :]}"
    return f"{project}/{name}"


def words_for(client: Client, project: str, launch: Sequence[str], options: Sequence[str]) -> list[str]:
    """The command that starts the server for this client, word by word."""
    root = {"cwd": [], "workspace": ["--root", WORKSPACE], "project": ["--root", project]}[client.root]
    return [*launch, "serve", *root, *options]


def entry_for(client: Client, words: Sequence[str], *, native: bool = False) -> dict[str, Any]:
    """A server entry in the client's own shape. `native` selects OpenCode's newer one."""
    command, *rest = words
    if client.shape == "opencode":
        both = {"type": "local", "command": [command, *rest]}
        return both if native else {**both, "enabled": True}
    kind = {"stdio": {"type": "stdio"}, "zed": {"source": "custom"}}.get(client.shape, {})
    return {**kind, "command": command, "args": rest}


def words_of(entry: Any) -> list[str] | None:
    """The command of a server entry in any of the shapes; None if it has none (it may be reached over HTTP)."""
    if not isinstance(entry, dict):
        return None
    command, rest = entry.get("command"), entry.get("args")
    if isinstance(command, dict):  # an older form of Zed's
        return words_of({"command": command.get("path"), "args": command.get("args")})
    first = command if isinstance(command, list) else [command]
    words: list[Any] = [*first, *(rest if isinstance(rest, list) else [])]
    return words if words and all(isinstance(word, str) for word in words) else None


def environment_of(entry: Any) -> dict[str, str]:
    """The environment variables a server is started with."""
    if not isinstance(entry, dict):
        return {}
    given = entry.get("env") or entry.get("environment")
    return {name: str(value) for name, value in given.items()} if isinstance(given, dict) else {}


def servers_path(client: Client, whole: Any) -> tuple[str, ...]:
    """Where the servers are in this file: OpenCode has two forms, and a file keeps the one it has."""
    if client.shape == "opencode" and is_native(whole):
        return (*client.path, "servers")
    return client.path


def is_native(whole: Any) -> bool:
    """Whether an OpenCode file has the newer form, with servers under a name of their own."""
    mcp = whole.get("mcp") if isinstance(whole, dict) else None
    servers = mcp.get("servers") if isinstance(mcp, dict) else None
    return isinstance(servers, dict) and "type" not in servers


def context_names(whole: Any) -> tuple[str, ...]:
    """The instruction files that a Gemini CLI's settings name in place of its usual one: plain names only, since the
    settings may have come with a repository."""
    context = whole.get("context") if isinstance(whole, dict) else None
    said = context.get("fileName") if isinstance(context, dict) else None
    names = said if isinstance(said, list) else [said]
    return tuple(name for name in names if isinstance(name, str) and re.fullmatch(r"[\w-][\w.-]*\.md", name))


def is_decided(client: Client, whole: Any) -> bool:
    """Whether a client's file already says how its user is asked about our tools. `whole` is the parsed file that the
    permission would be in."""
    if client.allowance is None:
        return True
    if client.allowance.file:
        listed = value_at(whole, client.allowance.path)
        return isinstance(listed, list) and client.allowance.value in listed
    return value_at(whole, (*client.path, SERVER, client.allowance.key)) is not None
