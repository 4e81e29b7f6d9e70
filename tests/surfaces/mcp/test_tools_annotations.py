"""What a tool says about itself to clients that ask before a call: all of it, and nothing that is not so.

A client that is told nothing expects the worst: Codex then refuses every tool that writes where it may not ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from handrail.catalog import PROFILES, whole_catalog
from handrail.operation import Effect, Operation
from tests.surfaces.mcp.test_resources import Agent
from tests.test_catalog import world_for
from tests.world import World, through_handler

HINTS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
ABOUT_THE_CALLER = "agent.unproven"
"""Recorded with whatever a caller does under a name that it did not prove to be its own."""
READING = [operation for operation in whole_catalog() if operation.effect is Effect.READ]
REPEATABLE = [operation for operation in whole_catalog() if operation.idempotent]


def kinds_after(world: World, position: int) -> list[str]:
    recorded = world.handrail().ledger.open().feed(after=position)
    return [event.kind for event in recorded if event.kind != ABOUT_THE_CALLER]


def recorded_by(operation: Operation[Any, Any], folder: Path, *, time: int) -> Sequence[str]:
    """What each example that is answered records when it is called for the first or the second time."""
    found: list[str] = []
    for number, example in enumerate(one for one in operation.examples if one.response is not None):
        (place := folder / str(number)).mkdir()
        world = world_for(operation, place)
        world.before(example.given)
        world.write(example.files)
        for _ in range(time):
            before = world.handrail().ledger.position()
            through_handler(world, operation.name, example.request)
        found += kinds_after(world, before)
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_every_tool_of_every_profile_says_all_four(tmp_path: Path, profile: str) -> None:
    effects = {operation.name: operation.effect for operation in whole_catalog()}
    agent = Agent(World(tmp_path, profile=profile).server())
    for tool in agent.ask("tools/list", {})["tools"]:
        said = tool["annotations"]
        assert said.keys() == HINTS, tool["name"]
        assert all(isinstance(value, bool) for value in said.values())
        assert said["openWorldHint"] is False
        effect = effects[
            tool["name"].removeprefix("guide_").removeprefix("plan_") if tool["name"] not in effects else tool["name"]
        ]
        assert said["readOnlyHint"] is (effect is Effect.READ)
        assert said["destructiveHint"] is (effect is Effect.DESTRUCTIVE)
        assert said["idempotentHint"] or effect is not Effect.READ


@pytest.mark.parametrize("operation", READING, ids=lambda operation: operation.name)
def test_one_that_says_it_reads_records_nothing(operation: Operation[Any, Any], tmp_path: Path) -> None:
    assert recorded_by(operation, tmp_path, time=1) == []


@pytest.mark.parametrize("operation", REPEATABLE, ids=lambda operation: operation.name)
def test_one_that_says_it_may_be_repeated_records_nothing_more(operation: Operation[Any, Any], tmp_path: Path) -> None:
    assert operation.effect is not Effect.READ, "it goes without saying"
    assert recorded_by(operation, tmp_path, time=2) == []
