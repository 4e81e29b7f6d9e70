"""The plugins and the extension: the committed files are what the records say now, and each has what its client looks
for. `python -m handrail.setup.plugins` writes them again."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from handrail import __version__
from handrail.domain.setup.blocks import RULES
from handrail.domain.setup.hook_files import HOOK_FILES, commands_in
from handrail.domain.setup.plugins import FOLDER, HOOK_PROGRAM, plugin_files
from handrail.domain.setup.slash_commands import COMMANDS
from handrail.setup.plugins import write_plugins

ROOT = Path(__file__).parents[3]
FILES = plugin_files(__version__)


def parsed(name: str) -> Any:
    return json.loads(FILES[name])


def test_the_committed_files_are_the_generated_ones() -> None:
    there = [path for path in (ROOT / FOLDER).rglob("*") if path.is_file()]
    names = {path.relative_to(ROOT).as_posix() for path in there}
    assert names == {name for name in FILES if name.startswith(f"{FOLDER}/")}
    wrong = [name for name, text in FILES.items() if (ROOT / name).read_text(encoding="utf-8") != text]
    assert wrong == [], "python -m handrail.setup.plugins writes them again"


def test_writing_them_removes_what_is_no_longer_one(tmp_path: Path) -> None:
    old = tmp_path / FOLDER / "gemini" / "commands" / "gone.toml"
    old.parent.mkdir(parents=True)
    old.write_text("x", encoding="utf-8")
    kept = tmp_path / "mine.txt"
    kept.write_text("x", encoding="utf-8")
    assert set(write_plugins(tmp_path)) == set(FILES)
    assert not old.exists()
    assert kept.exists()


@pytest.mark.parametrize("name", ["claude-code/.mcp.json", "codex/.mcp.json", "gemini/gemini-extension.json"])
def test_each_starts_the_installed_program(name: str) -> None:
    assert parsed(f"{FOLDER}/{name}")["mcpServers"] == {"handrail": {"command": "handrail", "args": ["serve"]}}


def test_no_path_of_a_machine_is_in_them() -> None:
    assert [name for name, text in FILES.items() if "/home/" in text or str(ROOT) in text or "python" in text] == []


def test_marketplaces_lead_to_folders_with_a_manifest() -> None:
    (claude,) = parsed(".claude-plugin/marketplace.json")["plugins"]
    assert f"{claude['source'].removeprefix('./')}/.claude-plugin/plugin.json" in FILES
    (codex,) = parsed(".agents/plugins/marketplace.json")["plugins"]
    folder = codex["source"]["path"].removeprefix("./")
    manifest = parsed(f"{folder}/.codex-plugin/plugin.json")
    assert f"{folder}/{manifest['mcpServers'].removeprefix('./')}" in FILES
    assert all(f"{folder}/skills/{command.name}/SKILL.md" in FILES for command in COMMANDS)


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini"])
def test_hooks_run_a_program_that_the_wheel_installs(client: str) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    (known,) = [hooks for hooks in HOOK_FILES if hooks.client == client]
    commands = commands_in(parsed(f"{FOLDER}/{client}/hooks/hooks.json"))
    assert {command.split()[0] for _, command in commands} == {HOOK_PROGRAM} <= set(scripts)
    assert commands == [(event.event, f"{HOOK_PROGRAM} {event.word} --client {client}") for event in known.events]


def test_the_extension_tells_the_rules_itself() -> None:
    manifest = parsed(f"{FOLDER}/gemini/gemini-extension.json")
    assert FILES[f"{FOLDER}/gemini/{manifest['contextFileName']}"] == RULES
    assert manifest["version"] == __version__
