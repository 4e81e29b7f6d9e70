"""The page of commands says what the commands say. That it is as written is tested with the other pages."""

from __future__ import annotations

from handrail.surfaces.cli.main import COMMANDS
from handrail.surfaces.docs import commands_page, every_leaf


def test_every_command_has_its_place_and_its_options() -> None:
    page = commands_page()
    for name in COMMANDS:
        assert f"`handrail {name}" in page
    for leaf in every_leaf():
        assert f"# `handrail {' '.join(leaf.path)}" in page


def test_options_that_all_have_are_told_once() -> None:
    assert commands_page().count("| `--json` |") == 1
