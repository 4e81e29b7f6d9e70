"""From a request to its result, without a transport."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.protocol.client_requests import RequestCancelled
from handrail.protocol.offer import Changing
from handrail.protocol.revisions import HANDSHAKE_REVISIONS, META_SERVER, META_SUBSCRIPTION
from handrail.protocol.server import HeldStream, Server
from handrail.protocol.wire import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Request, RpcError
from tests.protocol.toy import Client, ToyTools, toy_offer


@pytest.fixture
def client() -> Client:
    return Client(Server(toy_offer()))


def code_of(client: Client, method: str, params: dict[str, Any] | None = None, *, stateless: bool = False) -> int:
    with pytest.raises(RpcError) as refused:
        (client.ask_stateless if stateless else client.ask)(method, params)
    return refused.value.code


@pytest.mark.parametrize("version", HANDSHAKE_REVISIONS)
def test_initialize_settles_the_revision(client: Client, version: str) -> None:
    result = client.initialize(version)
    assert result["protocolVersion"] == version
    assert result["serverInfo"] == {"name": "toy", "version": "1.2.3", "description": "a toy"}
    assert result["capabilities"] == {"tools": {"listChanged": False}, "resources": {"listChanged": False}}


@pytest.mark.parametrize(
    ("params", "details"),
    [
        ({"capabilities": {}}, "protocolVersion is required"),
        ({"protocolVersion": "2024-11-05"}, "capabilities is required"),
        ({"protocolVersion": 5, "capabilities": {}}, "protocolVersion must be a string"),
        ({"protocolVersion": "2024-11-05", "capabilities": []}, "capabilities must be an object"),
    ],
)
def test_initialize_names_what_is_missing(client: Client, params: dict[str, Any], details: str) -> None:
    with pytest.raises(RpcError) as refused:
        client.ask("initialize", params)
    assert (refused.value.code, refused.value.data) == (INVALID_PARAMS, {"details": details})


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "shout", "shutdown", "no/such", "subscriptions/listen"])
def test_nothing_is_served_before_initialize(client: Client, method: str) -> None:
    with pytest.raises(RpcError) as refused:
        client.ask(method)
    assert (refused.value.code, refused.value.data) == (INVALID_REQUEST, {"details": "server not initialized"})
    assert client.initialize()["protocolVersion"] == "2025-11-25"


def test_ping_and_discover_are_served_before_initialize(client: Client) -> None:
    assert client.ask("ping") == {}
    assert client.ask("server/discover")["supportedVersions"] == ["2026-07-28"]


def test_both_eras_are_served_on_one_connection(client: Client) -> None:
    assert client.ask_stateless("server/discover")["resultType"] == "complete"
    assert client.initialize()["protocolVersion"] == "2025-11-25"
    assert "resultType" not in client.ask("tools/list")
    assert client.ask_stateless("tools/list")["resultType"] == "complete"


def test_a_stateless_result_carries_what_its_revision_wants(client: Client) -> None:
    listed = client.ask_stateless("tools/list")
    assert listed["_meta"][META_SERVER]["name"] == "toy"
    assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
    called = client.ask_stateless("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
    assert called["resultType"] == "complete"
    assert "ttlMs" not in called


@pytest.mark.parametrize("method", ["initialize", "ping"])
def test_handshake_methods_are_unknown_to_the_stateless_era(client: Client, method: str) -> None:
    if method == "ping":
        assert code_of(client, method, stateless=True) == METHOD_NOT_FOUND
    else:  # initialize always belongs to the handshake, whatever its _meta says
        assert code_of(client, method, stateless=True) == INVALID_PARAMS


def test_an_unknown_method_is_named(client: Client) -> None:
    client.initialize()
    with pytest.raises(RpcError) as refused:
        client.ask("non_existent_tool")
    assert (refused.value.code, refused.value.message) == (METHOD_NOT_FOUND, "Method not found")
    assert refused.value.data == {"method": "non_existent_tool"}


def test_a_method_of_the_offer_gets_its_params_without_the_envelope(client: Client) -> None:
    client.initialize()
    assert client.ask("shout", {"text": "hi"}) == {"shouted": "HI"}
    assert client.ask_stateless("shout", {"text": "hi"}) == {"shouted": "HI"}


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": "echo", "arguments": [1]}, {"name": "nope"}])
def test_a_wrong_tool_call_is_invalid_params(client: Client, params: dict[str, Any]) -> None:
    client.initialize()
    assert code_of(client, "tools/call", params) == INVALID_PARAMS


def test_long_lists_come_in_pages_that_join_to_the_whole() -> None:
    names = [f"tool_{number}" for number in range(7)]
    client = Client(Server(toy_offer(tools=ToyTools(names), page_size=3)))
    client.initialize()
    seen: list[str] = []
    params: dict[str, Any] = {}
    while True:
        page = client.ask("tools/list", params)
        seen += [tool["name"] for tool in page["tools"]]
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}
    assert seen == names


@pytest.mark.parametrize("cursor", ["1", "7", "-3", "", "x", "9" * 5000, 3, {}])
def test_a_cursor_we_never_gave_is_refused(cursor: object) -> None:
    client = Client(Server(toy_offer(tools=ToyTools([f"tool_{n}" for n in range(7)]), page_size=3)))
    client.initialize()
    assert code_of(client, "tools/list", {"cursor": cursor}) == INVALID_PARAMS


def test_progress_is_sent_only_to_who_asked_and_only_when_it_grows(client: Client) -> None:
    client.initialize()
    client.ask("tools/call", {"name": "count"})
    assert client.heard == []
    client.ask("tools/call", {"name": "count", "_meta": {"progressToken": "t"}})
    assert [note["params"]["progress"] for note in client.heard] == [1, 2, 3]
    assert client.heard[0]["params"] == {"progressToken": "t", "progress": 1, "total": 3, "message": "step 1"}


def test_a_cancelled_handler_stops_at_its_next_progress(client: Client) -> None:
    client.initialize()
    request = Request(1, "tools/call", {"name": "count", "_meta": {"progressToken": "t"}})
    exchange = client.server.open(client.connection, request, client.heard.append)
    exchange.cancelled = True
    with pytest.raises(RequestCancelled):
        client.server.serve(exchange)


def test_shutdown_answers_null_and_closes(client: Client) -> None:
    client.initialize()
    assert client.ask("shutdown") is None
    assert client.connection.closing


def test_declared_features_without_content_answer_empty_lists(client: Client) -> None:
    client.initialize()
    assert client.ask("resources/list") == {"resources": []}
    assert client.ask("resources/templates/list") == {"resourceTemplates": []}
    assert code_of(client, "resources/read", {"uri": "x://y"}) == -32002
    assert code_of(client, "resources/read", {"uri": "x://y"}, stateless=True) == INVALID_PARAMS


def test_features_the_offer_lacks_are_unknown_methods() -> None:
    client = Client(Server(toy_offer(resources=None)))
    assert "resources" not in client.initialize()["capabilities"]
    for method in ("resources/list", "prompts/list", "completion/complete"):
        assert code_of(client, method) == METHOD_NOT_FOUND


class TwoPrompts:
    def published(self) -> list[dict[str, Any]]:
        return [{"name": "greet"}]

    def get(self, exchange: Any, name: str, arguments: Any) -> dict[str, Any] | None:
        return {"messages": [{"role": "user", "content": arguments["who"]}]} if name == "greet" else None

    def complete(self, exchange: Any, reference: Any, argument: Any) -> list[str]:
        return [f"{argument['value']}{number}" for number in range(150)]


def test_prompts_and_completions_come_from_their_providers() -> None:
    client = Client(Server(toy_offer(prompts=TwoPrompts(), completions=TwoPrompts())))
    capabilities = client.initialize()["capabilities"]
    assert (capabilities["prompts"], capabilities["completions"]) == ({"listChanged": False}, {})
    assert client.ask("prompts/list") == {"prompts": [{"name": "greet"}]}
    prompt = client.ask("prompts/get", {"name": "greet", "arguments": {"who": "you"}})
    assert prompt["messages"][0]["content"] == "you"
    assert code_of(client, "prompts/get", {"name": "nope"}) == INVALID_PARAMS
    assert code_of(client, "prompts/get", {"name": "greet", "arguments": {"who": 5}}) == INVALID_PARAMS
    completion = client.ask(
        "completion/complete", {"ref": {"type": "ref/prompt"}, "argument": {"name": "a", "value": "v"}}
    )
    assert (len(completion["completion"]["values"]), completion["completion"]["total"]) == (100, 150)
    assert completion["completion"]["hasMore"] is True


def test_a_changed_tool_list_is_announced_to_each_era_in_its_way() -> None:
    server = Server(toy_offer(changing=Changing(tools=True)))
    old, new, strange = Client(server), Client(server), Client(server)
    old.initialize()
    wanted = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
    assert new.ask_stateless("subscriptions/listen", wanted, "L") is HeldStream.OPEN
    acknowledged = new.heard.pop()
    assert acknowledged["params"] == {"_meta": {META_SUBSCRIPTION: "L"}, "notifications": {"toolsListChanged": True}}
    server.subscribers.list_changed("toolsListChanged")
    assert old.heard == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
    assert new.heard[0]["params"] == {"_meta": {META_SUBSCRIPTION: "L"}}
    assert strange.heard == []
    server.subscribers.detach(old.connection)
    server.subscribers.list_changed("toolsListChanged")
    assert len(old.heard) == 1
