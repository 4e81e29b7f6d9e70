"""A project's `.handrail/config.toml` that is not what it seems: every process that reads it refuses it at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.config_links.tricks import TRICKS, Ground, check_bounds, put

COMMANDS = {
    "settings": ("settings",),
    "serve": ("serve",),
    "doctor": ("doctor",),
    "status": ("status",),
    "init": ("init", "--client", "cursor", "--yes"),
    "up": ("up", "--http", "127.0.0.1:0"),
}
QUICK = {
    *(("settings", trick) for trick in ("endless", "out", "huge", "deep", "digits")),
    *(("serve", "stdin"), ("serve", "endless"), ("serve", "deep"), ("doctor", "pipe"), ("doctor", "digits")),
}
"""Beside hooks with every trick; the rest of the table is torture."""


def _cells() -> list[Any]:
    return [
        pytest.param(command, trick, marks=() if (command, trick) in QUICK else pytest.mark.torture)
        for command in COMMANDS
        for trick in TRICKS
    ]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.mark.parametrize(("command", "trick"), _cells())
def test_it_is_refused_by_name_with_a_reason(ground: Ground, command: str, trick: str) -> None:
    put(ground, trick, ground.repo / ".handrail" / "config.toml")
    ended = ground.handrail(*COMMANDS[command])
    check_bounds(ended)
    assert ended.code > 0 or command == "init"  # which leaves it alone, and says so
    assert ("init.json" if (command, trick) == ("init", "folder-out") else "config.toml") in ended.said
    assert re.search(TRICKS[trick].says, ended.said), ended.said
    if command not in ("doctor", "init"):
        assert "SETTING_INVALID" in ended.said


@pytest.mark.parametrize("trick", TRICKS)
def test_a_hook_says_nothing_and_ends(ground: Ground, trick: str) -> None:
    put(ground, trick, ground.repo / ".handrail" / "config.toml")
    ended = ground.hook("start")
    check_bounds(ended)
    assert (ended.code, ended.said) == (0, "")
    assert ended.megabytes < 60


def test_a_link_within_the_project_is_followed(ground: Ground) -> None:
    (ground.repo / "shared.toml").write_text('approvals = "human"\n', encoding="utf-8")
    (ground.repo / ".handrail").mkdir()
    (ground.repo / ".handrail" / "config.toml").symlink_to("../shared.toml")
    ended = ground.handrail("settings", "--json")
    assert ended.code == 0
    assert '"human"' in ended.said
