"""What a toolset costs a client that loads every schema, counted with a real vocabulary. Budgets may shrink, not
grow."""

from __future__ import annotations

import re

import msgspec
import pytest
from rs_bpe.bpe import openai

from handrail.catalog import PROFILES, TOOLSETS, whole_catalog
from handrail.kernel.tokens import estimate_tokens
from handrail.selection import Selection, published, select
from handrail.surfaces.mcp.tools import tool_of
from handrail.wiring import instructions

BUDGETS = {
    "introspection": 100,
    "guide": 490,
    "journal": 870,
    "workflow": 1540,
    "task": 545,
    "checkpoint": 240,
    "context": 270,
    "orchestration": 190,
    "repository": 190,
    "template": 585,
    "dynamic": 125,
    "agent": 850,
    "message": 910,
    "workspace": 640,
    "pipeline": 900,
    "resources": 280,
    "events": 410,
    "blackboard": 510,
    "idempotency": 5,
    "cancellation": 160,
    "children": 450,
    "plan-lifecycle": 510,
    "values": 805,
    "assist": 570,
    "tx": 765,
    "diff-patch": 450,
    "locks": 200,
    "bulk": 400,
}
"""o200k tokens of each toolset's `tools/list` entries."""

DEFAULT_PROFILE = 2000
"""The whole default profile, once all its toolsets exist; with the instructions every client gets."""

INSTRUCTIONS = 120
"""What an agent is told at connection time, whichever profile: every turn of its model pays for it."""


def listing(selection: Selection) -> str:
    tools = [tool_of(entry, whole=False) for entry in published(selection)]
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
    assert o200k(listing(selection)) + o200k(instructions(selection)) <= DEFAULT_PROFILE


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
