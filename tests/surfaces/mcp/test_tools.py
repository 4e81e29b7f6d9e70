"""What a client sees of tools that are off, of refusals in both eras, and of a tool list that grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.ledger import Actor
from handrail.operation import HttpAddress
from handrail.protocol.exchange import Connection, Exchange
from handrail.protocol.revisions import META_CAPABILITIES, META_CLIENT, META_VERSION, NEWEST
from handrail.protocol.server import Server
from handrail.protocol.wire import Request, RpcError
from handrail.surfaces.mcp.tools import actor_of
from handrail.wiring import assemble, build_server, settings_at
from tests.world import World


def ask(server: Server, method: str, params: dict[str, Any], *, stateless: bool = False) -> Any:
    connection = Connection(lambda _: None)
    connection.revision = "2025-11-25"
    meta = {"_meta": {META_VERSION: NEWEST, META_CAPABILITIES: {}}} if stateless else {}
    return server.serve(server.open(connection, Request(1, method, {**params, **meta}), connection.send))


def refusal(server: Server, method: str, params: dict[str, Any], *, stateless: bool = False) -> RpcError:
    with pytest.raises(RpcError) as refused:
        ask(server, method, params, stateless=stateless)
    return refused.value


def test_a_tool_whose_toolset_is_off_names_the_toolset_and_the_switch(tmp_path: Path) -> None:
    server = World(tmp_path, toolsets="guide").server()
    error = refusal(server, "tools/call", {"name": "mcp_info"})
    assert error.code == -32602
    assert "introspection" in error.message
    assert "--enable-mcp-introspection" in error.message
    error = refusal(server, "mcp_info", {})
    assert (error.code, error.data) == (-32601, {"method": "mcp_info"})
    assert "--enable-mcp-introspection" in error.message


def test_a_hint_says_which_of_its_tools_are_off(tmp_path: Path) -> None:
    """The hint is the rule's own, and the rule does not know what is on."""
    given = {"workflow_id": "wf_none", "name": "x", "goal": "x", "areas": []}
    hints: dict[str, str] = {}
    for toolsets in ("journal", "journal,workflow"):
        server = World(tmp_path / toolsets, toolsets=toolsets).server()
        told = ask(server, "tools/call", {"name": "start_task", "arguments": given})
        hints[toolsets] = told["structuredContent"]["error"]["hint"]
        assert (refusal(server, "start_task", given).data or {})["hint"] == hints[toolsets]
    bare = hints["journal,workflow"]
    assert "workflow_create or start_workflow" in bare
    assert hints["journal"] == f"{bare}; off here: workflow_create (toolset workflow)"
    growing = World(tmp_path / "growing", toolsets="journal", dynamic="true").server()
    told = ask(growing, "tools/call", {"name": "start_task", "arguments": given})
    assert told["structuredContent"]["error"]["hint"] == f"{hints['journal']}; toolset_enable turns a toolset on"


def test_an_argument_in_a_hint_is_no_tool(tmp_path: Path) -> None:
    server = World(tmp_path, toolsets="journal").server()
    told = ask(server, "tools/call", {"name": "start_task", "arguments": {"workflow": "wf_1"}})
    assert "off here" not in told["structuredContent"]["error"]["hint"]


def test_a_tool_that_answers_to_another_name_here_is_named(tmp_path: Path) -> None:
    server = World(tmp_path, toolsets="workflow").server()
    error = refusal(server, "tools/call", {"name": "plan_workflow_list"})
    assert error.message == "Unknown tool: plan_workflow_list; here it is called workflow_list"
    assert refusal(server, "plan_workflow_list", {}).message == "Method not found: here it is called workflow_list"


def test_a_read_only_server_says_that_it_is_and_where_else_to_go(tmp_path: Path) -> None:
    """Whether the toolset is on or off: no switch would help."""
    world = World(tmp_path, toolsets="guide,workflow")
    address = HttpAddress("127.0.0.1", 1, "/mcp/readonly/x/guide,workflow")
    settings = settings_at(world.place, world.given)
    server = build_server(assemble(world.place, settings, http=address, read_only=True))
    for name in ("workflow_create", "checkpoint_add"):
        for error in (refusal(server, "tools/call", {"name": name}), refusal(server, name, {})):
            assert "/mcp/readonly/x/guide,workflow is read-only: call it at /mcp/x/guide,workflow" in error.message
            assert "--" not in error.message
    assert "--enable-mcp-introspection" in refusal(server, "mcp_info", {}).message


@pytest.mark.parametrize("stateless", [True, False])
@pytest.mark.parametrize(
    ("given", "kept"), [("ann", "ann"), ("n" * 100, "n" * 100), ("n" * 101, "n" * 100), ("", "agent"), (7, "agent")]
)
def test_whoever_calls_is_known_by_the_beginning_of_their_name(given: Any, kept: str, stateless: bool) -> None:
    connection = Connection(lambda _: None)
    meta = {META_VERSION: NEWEST, META_CAPABILITIES: {}, META_CLIENT: {"name": given}} if stateless else {}
    connection.client_info = {} if stateless else {"name": given}
    exchange = Exchange(connection, 1, "tools/call", {"_meta": meta}, stateless=stateless, emit=connection.send)
    assert actor_of(exchange) == Actor(kept, "mcp")


def test_a_tool_nobody_knows_gets_the_nearest_name(tmp_path: Path) -> None:
    error = refusal(World(tmp_path).server(), "tools/call", {"name": "workflow_lst"})
    assert (error.code, error.message) == (-32602, "Unknown tool: workflow_lst; did you mean workflow_list?")
    error = refusal(World(tmp_path / "b").server(), "workflow_lst", {})
    assert (error.code, error.data) == (-32601, {"method": "workflow_lst"})


@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
def test_a_name_of_any_length_is_not_repeated_in_full(tmp_path: Path, method: str) -> None:
    error = refusal(World(tmp_path).server(), method, {"name": "x" * 100_000})
    assert error.code == -32602
    assert len(error.message) + len(str(error.data)) < 3000


def test_a_guide_refusal_is_the_documents_error_on_handshake_connections(tmp_path: Path) -> None:
    server = World(tmp_path).server()
    for method, params in (
        ("workflow_get", {"id": "no-such-guide"}),
        ("tools/call", {"name": "workflow_get", "arguments": {"id": "no-such-guide"}}),
    ):
        error = refusal(server, method, params)
        assert (error.code, error.message) == (-32001, "Workflow not found")
        assert error.data is not None
        assert error.data["workflowId"] == "no-such-guide"
        assert error.data["hint"]


def test_on_2026_07_28_a_guide_refusal_is_a_result_with_the_number_in_its_details(tmp_path: Path) -> None:
    params = {"name": "workflow_get", "arguments": {"id": "no-such-guide"}}
    result = ask(World(tmp_path).server(), "tools/call", params, stateless=True)
    assert result["isError"] is True
    error = result["structuredContent"]["error"]
    assert error["code"] == "WORKFLOW_NOT_FOUND"
    assert error["details"] == {"workflowId": "no-such-guide", "number": -32001}
    bare = refusal(World(tmp_path / "b").server(), "workflow_get", {"id": "no-such-guide"}, stateless=True)
    assert bare.code == 1
    assert bare.data is not None
    assert bare.data["code"] == "WORKFLOW_NOT_FOUND"


def test_a_refusal_elsewhere_is_a_result_and_an_error_with_the_same_object(tmp_path: Path) -> None:
    server = World(tmp_path).server()
    arguments = {"toolsets": ["gide"]}
    result = ask(server, "tools/call", {"name": "toolset_enable", "arguments": arguments})
    error = refusal(server, "toolset_enable", arguments)
    assert result["isError"] is True
    assert result["structuredContent"]["error"] == error.data
    assert error.data is not None
    assert error.data["code"] == "TOOLSET_UNKNOWN"


def test_wrong_arguments_elsewhere_are_a_result_and_minus_32602_in_the_bare_style(tmp_path: Path) -> None:
    server = World(tmp_path).server()
    result = ask(server, "tools/call", {"name": "mcp_info", "arguments": {"x": 1}})
    assert result["structuredContent"]["error"]["code"] == "INVALID_PARAMS"
    assert refusal(server, "mcp_info", {"x": 1}).code == -32602


def test_output_schemas_are_listed_only_where_they_are_wanted(tmp_path: Path) -> None:
    def keys(folder: str, **given: Any) -> set[str]:
        listed = ask(World(tmp_path / folder, **given).server(), "tools/list", {})["tools"]
        return {key for tool in listed for key in tool}

    lean = {"name", "description", "inputSchema", "annotations"}
    assert keys("solo", profile="solo") == lean
    assert keys("schemas", profile="solo", output_schemas=True) == lean | {"outputSchema", "examples"}
    assert keys("guide", toolsets="guide") == lean | {"outputSchema", "examples"}


def test_a_list_of_tools_is_the_same_every_time(tmp_path: Path) -> None:
    first = ask(World(tmp_path / "a").server(), "tools/list", {})
    assert first == ask(World(tmp_path / "b").server(), "tools/list", {})


def test_turning_a_toolset_on_lengthens_the_list_and_announces_it_once(tmp_path: Path) -> None:
    server = World(tmp_path, toolsets="introspection", dynamic=True).server()
    heard: list[dict[str, Any]] = []
    connection = Connection(heard.append)
    connection.revision = "2025-11-25"
    server.subscribers.attach(connection)
    assert ask(server, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})["capabilities"][
        "tools"
    ] == {
        "listChanged": True,
        "notifyProgress": False,
    }
    before = [tool["name"] for tool in ask(server, "tools/list", {})["tools"]]
    assert before == ["mcp_info", "mcp_capabilities", "toolset_list", "toolset_enable"]
    for _ in range(2):
        ask(server, "tools/call", {"name": "toolset_enable", "arguments": {"toolsets": ["guide"]}})
    assert [note["method"] for note in heard] == ["notifications/tools/list_changed"]
    after = [tool["name"] for tool in ask(server, "tools/list", {})["tools"]]
    assert after == [*before, "workflow_list", "workflow_get", "workflow_next", "workflow_validate"]
    assert ask(server, "workflow_list", {})["workflows"]


def test_a_failed_switch_changes_nothing(tmp_path: Path) -> None:
    server = World(tmp_path, toolsets="introspection", dynamic=True).server()
    ask(server, "tools/call", {"name": "toolset_enable", "arguments": {"toolsets": ["guide", "gide"]}})
    assert len(ask(server, "tools/list", {})["tools"]) == 4
