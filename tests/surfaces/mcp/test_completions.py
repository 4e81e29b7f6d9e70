"""Completion of the templates' arguments: what begins so and is there, the newest first, never more than is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import StoreUnusable
from handrail.wiring import LazyLedger
from tests.surfaces.mcp.test_registry_resources import TOOLSETS, plan
from tests.surfaces.mcp.test_resources import META, Agent
from tests.world import World


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(World(tmp_path, toolsets=TOOLSETS).server())


def completed(agent: Agent, template: Any, name: Any, value: Any, **known: Any) -> dict[str, Any]:
    params: dict[str, Any] = {
        "ref": {"type": "ref/resource", "uri": template},
        "argument": {"name": name, "value": value},
    }
    if known:
        params["context"] = {"arguments": known}
    answer: dict[str, Any] = agent.ask("completion/complete", params)["completion"]
    assert agent.ask("completion/complete", {**params, **META})["completion"] == answer
    return answer


def values(agent: Agent, template: Any, name: Any, value: Any, **known: Any) -> list[str]:
    return list(completed(agent, template, name, value, **known)["values"])


def test_ids_are_completed_newest_first(agent: Agent) -> None:
    for _ in range(11):
        plan(agent)
    assert values(agent, "sc://graphs/{graph_id}", "graph_id", "wf_1") == ["wf_1", "wf_11", "wf_10"]
    assert values(agent, "sc://graphs/{graph_id}@v{version}", "graph_id", "wf_1") == ["wf_1", "wf_11", "wf_10"]
    assert len(values(agent, "sc://snapshots/{graph_id}/{tx_id}", "graph_id", "")) == 11
    assert values(agent, "sc://runs/{run_id}/events", "run_id", "wf_9") == ["wf_9"]
    assert values(agent, "sc://runs/{run_id}/events", "run_id", "x") == []
    agent.register("ada")
    agent.register("ben")
    assert values(agent, "sc://children/{child_id}/logs", "child_id", "ag") == ["ag_2", "ag_1"]


def test_boards_are_completed(agent: Agent) -> None:
    for key in ("plan:a", "plan:b", "place:a", "other:a"):
        agent.call("bb_set", key=key, value=1)
    assert values(agent, "sc://blackboard/{namespace}", "namespace", "pla") == ["place", "plan"]


def test_versions_are_completed_once_the_graph_is_known(agent: Agent) -> None:
    workflow_id = plan(agent)
    for number in range(10):
        task = {"name": f"t{number}", "description": "", "sequence": 5}
        agent.call("workflow_add_tasks", id=workflow_id, tasks=[task])
    version, snapshot = "sc://graphs/{graph_id}@v{version}", "sc://snapshots/{graph_id}/{tx_id}"
    assert values(agent, version, "version", "1", graph_id=workflow_id) == ["11", "10", "1"]
    assert values(agent, version, "version", "", graph_id=workflow_id)[:2] == ["11", "10"]
    assert values(agent, snapshot, "tx_id", "v1", graph_id=workflow_id) == ["v11", "v10", "v1"]
    assert values(agent, version, "version", "1") == []
    assert values(agent, version, "version", "1", graph_id="wf_9") == []
    assert values(agent, version, "version", "1", graph_id=["wf_1"]) == []


def test_what_is_no_argument_of_ours_has_no_values(agent: Agent) -> None:
    plan(agent)
    for template, name, value in (
        ("sc://graphs/{graph_id}", "run_id", ""),
        ("sc://graphs/{graph_id}", "version", ""),
        ("sc://nothing/{graph_id}", "graph_id", ""),
        ("handrail://inbox/{agent_id}", "child_id", ""),
        (["sc://graphs/{graph_id}"], "graph_id", ""),
        ("sc://graphs/{graph_id}", "graph_id", "\0"),
        ("sc://graphs/{graph_id}", "graph_id", "\ud800"),
        ("sc://graphs/{graph_id}", "graph_id", "w" * 5000),
        ("sc://graphs/{graph_id}", "graph_id", 7),
        ("sc://graphs/{graph_id}", None, ""),
    ):
        assert values(agent, template, name, value) == []


def test_inboxes_are_completed_too_while_there_are_any(agent: Agent, tmp_path: Path) -> None:
    inbox = "handrail://inbox/{agent_id}"
    agent.register("ada")
    assert values(agent, inbox, "agent_id", "ag") == ["ag_1"]
    (tmp_path / "other").mkdir()
    other = Agent(World(tmp_path / "other", toolsets="agent,resources").server())
    other.register("ada")
    assert values(other, inbox, "agent_id", "ag") == []


def test_what_is_turned_on_later_is_completed_later(tmp_path: Path) -> None:
    agent = Agent(World(tmp_path, toolsets="agent", dynamic=True).server())
    agent.register("ada")
    assert values(agent, "sc://children/{child_id}/logs", "child_id", "ag") == []
    agent.call("toolset_enable", toolsets=["resources"])
    assert values(agent, "sc://children/{child_id}/logs", "child_id", "ag") == ["ag_1"]


def test_no_more_than_a_hundred_are_shown_and_that_there_are_more_is_said(agent: Agent) -> None:
    for number in range(103):
        agent.call("workflow_create", name=f"w{number}", source_type="prompt", source_content="x")
    found = completed(agent, "sc://graphs/{graph_id}", "graph_id", "wf")
    assert (len(found["values"]), found["hasMore"]) == (100, True)


def test_a_store_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    def closed() -> Any:
        raise StoreUnusable("there is no store", hint="look for it")

    world = World(tmp_path, toolsets=TOOLSETS)
    world._ledger = LazyLedger(closed)
    reference = {"type": "ref/resource", "uri": "sc://graphs/{graph_id}"}
    argument = {"name": "graph_id", "value": ""}
    code = Agent(world.server()).refusal_code("completion/complete", ref=reference, argument=argument)
    assert code == "STORE_UNUSABLE"
