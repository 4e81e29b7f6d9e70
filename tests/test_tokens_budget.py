"""What a toolset costs a client that loads every schema, counted with a real vocabulary. Budgets may shrink, not
grow."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from rs_bpe.bpe import openai

from handrail.catalog import PROFILES, TOOLSETS, whole_catalog
from handrail.kernel.tokens import estimate_tokens
from handrail.selection import Selection, published, select
from handrail.surfaces.mcp.tools import tool_of
from handrail.wiring import instructions

BUDGETS = {
    "introspection": 70,
    "guide": 430,
    "journal": 810,
    "workflow": 1420,
    "task": 500,
    "checkpoint": 230,
    "context": 230,
    "orchestration": 140,
    "repository": 150,
    "template": 550,
    "dynamic": 100,
    "agent": 760,
    "message": 850,
    "workspace": 560,
    "pipeline": 700,
    "resources": 240,
    "events": 400,
    "blackboard": 490,
    "idempotency": 5,
    "cancellation": 140,
    "children": 370,
    "plan-lifecycle": 460,
    "values": 770,
    "assist": 520,
    "tx": 700,
    "diff-patch": 430,
    "locks": 180,
    "bulk": 430,
}
"""o200k tokens of what a model gets of each toolset's `tools/list` entries. `bulk` grew when any JSON got a type."""

DEFAULT_PROFILE = 1800
"""The whole default profile as a model gets it, with the instructions every client gets."""

DEFAULT_ON_THE_WIRE = 2300
"""The same with the annotations, which clients read and no model does."""

INSTRUCTIONS = 120
"""What an agent is told at connection time, whichever profile: every turn of its model pays for it."""


def on_the_wire(selection: Selection) -> list[dict[str, Any]]:
    return [tool_of(entry, whole=False) for entry in published(selection)]


def listing(selection: Selection) -> str:
    """What clients hand on to their model: everything but the annotations."""
    tools = [{name: tool[name] for name in tool if name != "annotations"} for tool in on_the_wire(selection)]
    return msgspec.json.encode(tools).decode()


def o200k(text: str) -> int:
    return len(openai.o200k_base().encode(text))


@pytest.mark.parametrize("toolset", TOOLSETS, ids=lambda toolset: toolset.name)
def test_a_toolset_stays_within_its_budget(toolset: object) -> None:
    (found,) = [known for known in TOOLSETS if known is toolset]
    assert o200k(listing(Selection((found,)))) <= BUDGETS[found.name]


def test_the_default_profile_stays_within_its_budget() -> None:
    selection = select(profile="solo", toolsets=(), enable=(), dynamic=False)
    assert len(published(selection)) <= 18
    told = o200k(instructions(selection))
    assert o200k(listing(selection)) + told <= DEFAULT_PROFILE
    assert o200k(msgspec.json.encode(on_the_wire(selection)).decode()) + told <= DEFAULT_ON_THE_WIRE


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("profile", PROFILES)
def test_instructions_stay_within_their_budget(profile: str, dynamic: bool) -> None:
    selection = select(profile=profile, toolsets=(), enable=(), dynamic=dynamic)
    told = instructions(selection)
    assert 0 < o200k(told) <= INSTRUCTIONS
    for line in told.splitlines():
        assert line.endswith(".")


@pytest.mark.parametrize("profile", PROFILES)
def test_instructions_name_tools_that_are_on_and_miss_no_toolset(profile: str) -> None:
    selection = select(profile=profile, toolsets=(), enable=(), dynamic=False)
    told = instructions(selection)
    on = {entry.name for entry in published(selection)}
    known = {operation.name for operation in whole_catalog()}
    assert (set(re.findall(r"[a-z_]+", told)) & known) <= on
    assert len(told.splitlines()) == sum(bool(toolset.instructions) for toolset in selection.toolsets)


def test_the_estimate_is_within_a_tenth_of_the_vocabulary() -> None:
    text = listing(select(profile="all", toolsets=(), enable=(), dynamic=True))
    assert abs(estimate_tokens(text) - o200k(text)) <= o200k(text) / 10
