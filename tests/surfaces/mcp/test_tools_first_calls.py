"""A fresh agent does what it is told on connecting, where nothing was ever begun: no answer is an error.

What the instructions name is called in their order with what an agent can make up itself, or has just been given."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from handrail.catalog import PROFILES, whole_catalog
from handrail.selection import select
from handrail.wiring import instructions
from tests.surfaces.mcp.test_resources import Agent
from tests.world import World

TOOLS = {operation.name for operation in whole_catalog()}
DONE = {"summary": "It says hello."}
MADE_UP: dict[str, dict[str, Any]] = {
    "workflow_next": {"workflowId": "bug-hunt", "completedSteps": []},
    "workflow_validate": {
        "workflowId": "bug-hunt",
        "stepId": "symptom",
        "output": "Observed: it hangs. Expected: not.",
    },
    "start_workflow": {"name": "Say hello"},
    "start_task": {"name": "say it", "goal": "It says hello", "workflow_id": "{workflow_id}"},
    "complete_task": {"task_id": "{task_id}", "status": "success", "outcome": DONE},
    "agent_register": {"name": "Ada", "runtime": "gemini"},
    "task_claim": {"agent_id": "{id}", "task_id": "{task_id}", "start": True},
    "message_list": {"agent_id": "{id}"},
    "pipeline_init": {"arguments": "Say hello"},
    "pipeline_init_with_context": {"workspace": "{workspace}"},
    "bb_set": {"key": "greeting", "value": "hello"},
    "bb_watch": {"namespace": "default", "start_version": 0},
    "toolset_enable": {"toolsets": ["guide"]},
}
"""What each takes; `{name}` is what an earlier answer said."""
WITHOUT_WHAT_IT_NEEDS = {"task_claim": "task_id", "pipeline_next_action": "a run that a person confirmed"}
"""Named for later: on the first day there is nothing yet that they are about."""


def told(profile: str) -> list[str]:
    """The tools that the instructions of a profile name, in their order."""
    text = instructions(select(profile=profile, toolsets=(), enable=(), dynamic=True))
    named = [word for word in re.findall(r"[a-z]+(?:_[a-z]+)+", text) if word in TOOLS]
    return list(dict.fromkeys(named))


@pytest.mark.parametrize("git", [True, False], ids=["in a new repository", "without git"])
@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "workflowlookup"])
def test_each_call_by_itself_is_answered(tmp_path: Path, profile: str, git: bool) -> None:
    """Whatever needs no id is called first of all."""
    for name in told(profile):
        if "{" in str(MADE_UP.get(name, "")) or name in WITHOUT_WHAT_IT_NEEDS:
            continue
        (folder := tmp_path / name).mkdir()
        answer(fresh(folder, profile, git=git), name, MADE_UP.get(name, {}))


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "workflowlookup"])
def test_all_of_them_in_their_order_are_answered(tmp_path: Path, profile: str) -> None:
    agent = fresh(tmp_path, profile, git=True)
    known: dict[str, Any] = {}
    called = []
    for name in told(profile):
        arguments = MADE_UP.get(name, {})
        needed = set(re.findall(r"\{([a-z_]+)\}", str(arguments)))
        if name in WITHOUT_WHAT_IT_NEEDS or not needed <= known.keys():
            continue
        filled = {
            key: known[value[1:-1]] if str(value).startswith("{") and isinstance(value, str) else value
            for key, value in arguments.items()
        }
        known |= answer(agent, name, filled)
        called.append(name)
    assert len(called) >= 3
    assert not set(told(profile)) - set(called) - set(WITHOUT_WHAT_IT_NEEDS)


def fresh(folder: Path, profile: str, *, git: bool) -> Agent:
    world = World(folder, profile=profile, dynamic=True)
    if git:
        subprocess.run(["git", "init", "-q", str(world.project)], check=True)
    return Agent(world.server())


def answer(agent: Agent, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = agent.ask("tools/call", {"name": name, "arguments": arguments})
    assert not result.get("isError"), (name, result["content"][0]["text"])
    structured: dict[str, Any] = result["structuredContent"]
    return structured
