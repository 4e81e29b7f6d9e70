"""The clients: where each one's program is, how it is pointed at a model on loopback, and how it is asked headless.

Nothing here is Handrail's: `handrail init` sets up the project. Each program is started directly, without the launcher
that npm puts before it, so that its process is the client.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from tests.clients.real.seat import Seat


class Client(Protocol):
    """One coding agent."""

    name: str
    """As `handrail init --client` calls it."""
    title: str
    package: str
    """Its package on npm."""
    told_at_once: bool
    """Whether a hook can reach the model in the turn in which a conversation was compacted, or with the next prompt."""
    full: int
    """How many tokens a conversation must claim to have for the client to compact it within a turn.
    0: it compacts beside the conversation, so it is told to, with `/compact`."""

    def program(self, modules: Path) -> list[str]: ...

    def environment(self, seat: Seat) -> dict[str, str]: ...

    def settle(self, seat: Seat) -> None:
        """Writes the client's own settings to its home: the model's address, the folders it trusts."""
        ...

    def command(self, seat: Seat, prompt: str, *, again: bool) -> list[str]: ...


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(value))


class ClaudeCode:
    """`claude --print`. Trust in the folder and in the project's server is noted as its dialogs would."""

    name = "claude-code"
    title = "Claude Code"
    package = "@anthropic-ai/claude-code"
    full = 990_000
    told_at_once = True

    def program(self, modules: Path) -> list[str]:
        return [str(modules / "@anthropic-ai" / "claude-code-linux-x64" / "claude")]

    def environment(self, seat: Seat) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": seat.model.address,
            "ANTHROPIC_API_KEY": "unused",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
            "MCP_CONNECT_TIMEOUT_MS": "60000",  # it would begin without a server that is slow on a busy machine
        }

    def settle(self, seat: Seat) -> None:
        write_json(seat.home / ".claude" / "settings.json", {"enabledMcpjsonServers": ["handrail"]})
        write_json(seat.home / ".claude.json", {"projects": {str(seat.project): {"hasTrustDialogAccepted": True}}})

    def command(self, seat: Seat, prompt: str, *, again: bool) -> list[str]:
        going_on = ["--continue"] if again else []
        return [*self.program(seat.installed), "--print", *going_on, "--model", "sonnet", prompt]


class Codex:
    """`codex exec`, which never asks for approval. Its hooks are vouched for, as the first start in a terminal does."""

    name = "codex"
    title = "Codex"
    package = "@openai/codex"
    full = 100_000
    told_at_once = True

    def program(self, modules: Path) -> list[str]:
        (found,) = (modules / "@openai" / "codex-linux-x64" / "vendor").glob("*/bin/codex")
        return [str(found)]

    def environment(self, seat: Seat) -> dict[str, str]:
        return {"SCRIPTED_KEY": "unused"}

    def settle(self, seat: Seat) -> None:
        path = seat.home / ".codex" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"""model = "scripted"
model_provider = "scripted"
model_auto_compact_token_limit = 50_000
check_for_update_on_startup = false
approval_policy = "never"

[model_providers.scripted]
name = "scripted"
base_url = "{seat.model.address}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"

[analytics]
enabled = false

[projects."{seat.project}"]
trust_level = "trusted"
"""
        )

    def command(self, seat: Seat, prompt: str, *, again: bool) -> list[str]:
        going_on = ["resume", "--last"] if again else []
        vouched = ["--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
        return [*self.program(seat.installed), "exec", *vouched, *going_on, prompt]


class OpenCode:
    """`opencode run`, with a provider that speaks Chat completions. The package is what `opencode-ai` installs."""

    name = "opencode"
    title = "OpenCode"
    package = "opencode-linux-x64"
    full = 99_900
    told_at_once = True

    def program(self, modules: Path) -> list[str]:
        return [str(modules / self.package / "bin" / "opencode")]

    def environment(self, seat: Seat) -> dict[str, str]:
        return {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }

    def settle(self, seat: Seat) -> None:
        model = {"name": "scripted", "tool_call": True, "limit": {"context": 100_000, "output": 1000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"{seat.model.address}/v1", "apiKey": "unused"},
            "models": {"scripted": model},
        }
        settings = {
            "provider": {"scripted": provider},
            "model": "scripted/scripted",
            "autoupdate": False,
            "snapshot": False,
            "share": "disabled",
        }
        own = seat.home / ".config" / "opencode"
        write_json(own / "opencode.json", settings)
        for folder in (own, seat.project / ".opencode"):
            # It fetches this package into every folder of plugins, and waits for that, unless it is there.
            (folder / "node_modules").mkdir(parents=True, exist_ok=True)
            fetched = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
            write_json(folder / "package-lock.json", fetched)

    def command(self, seat: Seat, prompt: str, *, again: bool) -> list[str]:
        going_on = ["--continue"] if again else []
        if prompt.startswith("/"):
            name, _, words = prompt[1:].partition(" ")
            going_on += ["--command", name]
            prompt = words
        return [*self.program(seat.installed), "run", *going_on, prompt]


class Gemini:
    """`gemini --prompt`. Trust in the folder and the use of an API key are noted as its dialogs would."""

    name = "gemini"
    title = "Gemini CLI"
    package = "@google/gemini-cli"
    full = 1_000_000
    told_at_once = False

    def program(self, modules: Path) -> list[str]:
        return ["node", str(modules / "@google" / "gemini-cli" / "bundle" / "gemini.js")]

    def environment(self, seat: Seat) -> dict[str, str]:
        return {
            "GEMINI_API_KEY": "unused",
            "GOOGLE_GEMINI_BASE_URL": seat.model.address,
            "GEMINI_TELEMETRY_ENABLED": "false",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }

    def settle(self, seat: Seat) -> None:
        settings = {
            "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
            "privacy": {"usageStatisticsEnabled": False},
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": True}},
        }
        write_json(seat.home / ".gemini" / "settings.json", settings)
        write_json(seat.home / ".gemini" / "trustedFolders.json", {str(seat.project): "TRUST_FOLDER"})

    def command(self, seat: Seat, prompt: str, *, again: bool) -> list[str]:
        going_on = ["--resume", "latest"] if again else []
        return [*self.program(seat.installed), "--model", "gemini-2.5-pro", *going_on, "--prompt", prompt]


class Copilot:
    """`copilot --prompt` with a provider of one's own, offline; Handrail's tools are allowed on the command line."""

    name = "copilot"
    title = "Copilot CLI"
    package = "@github/copilot"
    full = 0
    told_at_once = False

    def program(self, modules: Path) -> list[str]:
        return [str(modules / "@github" / "copilot-linux-x64" / "copilot")]

    def environment(self, seat: Seat) -> dict[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_BASE_URL": f"{seat.model.address}/v1",
            "COPILOT_MODEL": "scripted",
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
        }

    def settle(self, seat: Seat) -> None:
        write_json(seat.home / ".copilot" / "config.json", {"trustedFolders": [str(seat.project)]})

    def command(self, seat: Seat, prompt: str, *, again: bool) -> list[str]:
        going_on = ["--continue"] if again else []
        return [*self.program(seat.installed), "--no-color", "--allow-tool=handrail", *going_on, "--prompt", prompt]


CLIENTS: tuple[Client, ...] = (ClaudeCode(), Codex(), OpenCode(), Gemini(), Copilot())
