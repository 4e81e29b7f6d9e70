"""Slash commands: one for every prompt, whole in each client's form, and nothing in them that a client would run or
read."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

import pytest

from handrail.catalog import whole_catalog
from handrail.domain.setup.slash_commands import COMMANDS, SlashCommand, as_gemini_toml, as_markdown, as_skill

FORMS = {"markdown": as_markdown, "toml": as_gemini_toml, "skill": as_skill}
EXPANDED = re.compile(r"!`|!\{|@\{|(?<![\w`])@[\w./~]|\$\(|\$\d")
"""What some client replaces: a command's output, a file's content, an argument by its number."""


def test_every_prompt_has_one() -> None:
    prompts = {path.name.removesuffix(".md") for path in files("handrail").joinpath("prompts").iterdir()}
    assert {command.prompt for command in COMMANDS} == {name for name in prompts if not name.startswith("__")}
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_nothing_in_it_is_run_or_read_by_a_client(command: SlashCommand, form: str) -> None:
    assert EXPANDED.search(FORMS[form](command)) is None


@pytest.mark.parametrize("text", ["do !`rm x`", "see @AGENTS.md", "!{ls}", "@{a}", "$(id)", "$1"])
def test_the_test_above_would_notice(text: str) -> None:
    assert EXPANDED.search(text)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_users_words_are_in_it_once_and_whole(command: SlashCommand) -> None:
    assert as_markdown(command).count("$ARGUMENTS") == 1
    parsed = tomllib.loads(as_gemini_toml(command))
    assert parsed["prompt"].count("{{args}}") == 1
    assert parsed["description"] == command.description
    assert "{request}" not in as_skill(command) + as_markdown(command) + parsed["prompt"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_tools_it_names_exist(command: SlashCommand) -> None:
    named = set(re.findall(r"`(\w+)`", command.text)) - {"arguments", "guide_"}
    known = {operation.name for operation in whole_catalog()}
    assert named <= known, named - known
