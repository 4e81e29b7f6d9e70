"""The registry's addresses as native resources: listed, described, read as the tool reads them, and heard of in both
eras; and nothing of it while their toolset is off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import StoreUnusable
from handrail.protocol.revisions import META_SUBSCRIPTION
from handrail.wiring import LazyLedger, assemble, build_server, settings_at
from tests.surfaces.mcp.test_resources import META, UPDATED, Agent
from tests.world import World

TOOLSETS = "workflow,task,checkpoint,agent,message,resources,blackboard"
TEMPLATES = [
    "handrail://inbox/{agent_id}",
    "sc://graphs/{graph_id}",
    "sc://graphs/{graph_id}@v{version}",
    "sc://snapshots/{graph_id}/{tx_id}",
    "sc://runs/{run_id}/events",
    "sc://children/{child_id}/logs",
    "sc://blackboard/{namespace}",
]
PLAN = {
    "summary": "s",
    "approach": "a",
    "tasks": [
        {"name": "wrap", "description": "", "sequence": 1},
        {"name": "test", "description": "", "sequence": 2, "depends_on": ["wrap"]},
    ],
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, toolsets=TOOLSETS)


def plan(agent: Agent, name: str = "Retry imports", **more: Any) -> str:
    created = agent.call("workflow_create", name=name, source_type="prompt", source_content="x", **more)
    agent.call("workflow_set_plan", id=created["id"], plan=PLAN)
    return str(created["id"])


def uris(agent: Agent) -> list[str]:
    return [resource["uri"] for resource in agent.ask("resources/list", {})["resources"]]


def templates(agent: Agent) -> list[str]:
    return [one["uriTemplate"] for one in agent.ask("resources/templates/list", {})["resourceTemplates"]]


def test_the_newest_are_listed_and_every_kind_is_described(world: World) -> None:
    agent = Agent(world.server())
    first, second, ada = plan(agent), plan(agent, "Other"), agent.register("ada")
    agent.call("bb_set", key="plan:next", value=1)
    listed = agent.ask("resources/list", {})["resources"]
    assert [resource["uri"] for resource in listed] == [
        *(f"sc://{kind}" for one in (second, first) for kind in (f"graphs/{one}", f"runs/{one}/events")),
        f"sc://children/{ada}/logs",
        "sc://blackboard/plan",
    ]
    assert [resource["name"] for resource in listed[2:]] == [
        "Retry imports: plan",
        "Retry imports: events",
        "ada: log",
        "plan: board",
    ]
    assert templates(agent) == TEMPLATES
    for uri in uris(agent):
        assert agent.read(uri)


def test_the_list_is_short(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.surfaces.mcp.registry_resources.LISTED", 2)
    agent = Agent(world.server())
    for number in range(4):
        plan(agent)
        agent.register(f"agent {number}")
        agent.call("bb_set", key=f"b{number}:x", value=1)
    assert uris(agent) == [
        "sc://graphs/wf_4",
        "sc://runs/wf_4/events",
        "sc://graphs/wf_3",
        "sc://runs/wf_3/events",
        "sc://children/ag_4/logs",
        "sc://children/ag_3/logs",
        "sc://blackboard/b0",
        "sc://blackboard/b1",
    ]


@pytest.mark.parametrize("stateless", [True, False])
def test_an_address_reads_as_the_tool_reads_it(world: World, stateless: bool) -> None:
    agent = Agent(world.server())
    workflow_id, ada = plan(agent), agent.register("ada")
    agent.call("bb_set", key="plan:next", value={"a": [1, None]})
    for uri in (
        f"sc://graphs/{workflow_id}",
        f"sc://graphs/{workflow_id}@v1",
        f"sc://snapshots/{workflow_id}/v1",
        f"sc://runs/{workflow_id}/events",
        f"sc://children/{ada}/logs",
        "sc://blackboard/plan",
    ):
        assert agent.read(uri, stateless=stateless) == agent.call("resources_read", uri=uri)["payload"]


def test_where_nothing_is_nobody_reads_or_hears(world: World) -> None:
    agent = Agent(world.server())
    plan(agent)
    missing = (
        "sc://graphs/wf_9",
        "sc://graphs/wf_1@v2",
        "sc://snapshots/wf_1/x",
        "sc://runs/wf_9/events",
        "sc://children/ag_9/logs",
        "sc://blackboard/no%20name",
        "sc://graphs/",
        "sc://x",
    )
    for uri in missing:
        for method in ("resources/read", "resources/subscribe"):
            error = agent.refused(method, uri=uri)
            assert (error.code, error.message) == (-32002, "Resource not found"), uri
            assert (error.data or {})["hint"]
        assert agent.refused("resources/read", uri=uri, **META).code == -32602
    assert agent.listen(*missing) == []


def test_a_subscription_is_made_to_the_address_that_is_told(world: World) -> None:
    agent = Agent(world.server())
    plan(agent)
    error = agent.refused("resources/subscribe", uri="sc://graphs/%77f_1")
    assert (error.data or {})["hint"] == "subscribe to sc://graphs/wf_1"
    assert agent.read("sc://graphs/%77f_1")["graphId"] == "wf_1"


def test_subscribers_hear_of_what_changed_and_of_nothing_else(world: World) -> None:
    server = world.server()
    agent, ada = Agent(server), Agent(server)
    workflow_id = plan(agent)
    graph, run = f"sc://graphs/{workflow_id}", f"sc://runs/{workflow_id}/events"
    assert agent.ask("resources/subscribe", {"uri": graph}) == {}
    assert ada.listen(run, graph) == sorted([run, graph])
    agent.call("checkpoint_add", task_id="task_1", type="progress", summary="half")
    assert ada.hears()["params"] == {"uri": run, "_meta": {META_SUBSCRIPTION: "L"}}
    agent.call("task_update_status", id="task_1", status="in_progress")
    assert agent.hears() == {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": graph}}
    assert {ada.hears()["params"]["uri"] for _ in range(2)} == {run, graph}
    assert agent.heard.empty()


def test_a_board_is_heard_of_before_anything_stands_on_it_and_a_log_as_it_grows(world: World) -> None:
    agent = Agent(world.server())
    ada = agent.register("ada")
    for uri in ("sc://blackboard/plan", f"sc://children/{ada}/logs"):
        agent.ask("resources/subscribe", {"uri": uri})
    agent.call("bb_set", key="other:next", value=1)  # in the agent's name, so its log tells of it
    assert agent.hears()["params"] == {"uri": f"sc://children/{ada}/logs"}
    agent.call("bb_set", key="plan:next", value=1)
    assert {agent.hears()["params"]["uri"] for _ in range(2)} == {"sc://blackboard/plan", f"sc://children/{ada}/logs"}


def test_what_another_process_writes_is_heard_too(world: World) -> None:
    agent = Agent(world.server())
    workflow_id = plan(agent)
    agent.ask("resources/subscribe", {"uri": f"sc://graphs/{workflow_id}"})
    other = assemble(world.place, settings_at(world.place, world.given), ledger=LazyLedger(world._open))
    assert other.ledger is not world._ledger
    Agent(build_server(other)).call("task_update_status", id="task_1", status="in_progress")
    assert agent.hears()["params"] == {"uri": f"sc://graphs/{workflow_id}"}


def test_while_the_toolset_is_off_there_are_no_addresses(tmp_path: Path) -> None:
    agent = Agent(World(tmp_path, toolsets="workflow,agent,message").server())
    workflow_id = plan(agent)
    assert uris(agent) == []
    assert templates(agent) == TEMPLATES[:1]
    for method in ("resources/read", "resources/subscribe"):
        assert agent.refused(method, uri=f"sc://graphs/{workflow_id}").code == -32002
    ref = {"type": "ref/resource", "uri": "sc://graphs/{graph_id}"}
    asked = {"ref": ref, "argument": {"name": "graph_id", "value": ""}}
    assert agent.ask("completion/complete", asked)["completion"]["values"] == []


def test_with_the_toolset_alone_there_is_no_inbox(tmp_path: Path) -> None:
    agent = Agent(World(tmp_path, toolsets="agent,resources").server())
    ada = agent.register("ada")
    assert templates(agent) == TEMPLATES[1:]
    assert agent.refused("resources/read", uri=f"handrail://inbox/{ada}").code == -32002
    assert agent.server.offer.capabilities(stateless=False)["resources"]["subscribe"] is True


def test_a_toolset_that_is_turned_on_later_brings_its_addresses(tmp_path: Path) -> None:
    agent = Agent(World(tmp_path, toolsets="workflow", dynamic=True).server())
    workflow_id = plan(agent)
    assert (uris(agent), templates(agent)) == ([], [])
    agent.call("toolset_enable", toolsets=["resources"])
    assert uris(agent) == [f"sc://graphs/{workflow_id}", f"sc://runs/{workflow_id}/events"]
    assert agent.ask("resources/subscribe", {"uri": f"sc://graphs/{workflow_id}"}) == {}


def test_in_a_shared_store_only_this_repositorys_workflows_are_listed(tmp_path: Path) -> None:
    agent = Agent(World(tmp_path, toolsets=TOOLSETS, global_store=True).server())
    here, there = plan(agent), plan(agent, repository_path=str(tmp_path / "elsewhere"))
    assert uris(agent) == [f"sc://graphs/{here}", f"sc://runs/{here}/events"]
    assert agent.read(f"sc://graphs/{there}")["graphId"] == there


def test_a_store_that_cannot_be_opened_is_told(world: World) -> None:
    def closed() -> Any:
        raise StoreUnusable("there is no store", hint="look for it")

    world._ledger = LazyLedger(closed)
    agent = Agent(world.server())
    for method in ("resources/read", "resources/subscribe", "resources/list"):
        assert agent.refusal_code(method, uri="sc://graphs/wf_1") == "STORE_UNUSABLE"
