"""Inboxes as resources: described and never listed, read as message_list shows them, and subscribed to in both eras."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ledger import Event
from handrail.protocol.exchange import Connection
from handrail.protocol.revisions import META_CAPABILITIES, META_SUBSCRIPTION, META_VERSION, NEWEST
from handrail.protocol.server import HeldStream, Server
from handrail.protocol.wire import Request, RpcError
from handrail.surfaces.mcp import inboxes, resource_updates
from handrail.surfaces.mcp.resource_updates import Follower
from handrail.surfaces.mcp.resources import inbox_uri, touched
from handrail.wiring import LazyLedger, assemble, build_server, settings_at
from tests.world import World

UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
META = {"_meta": {META_VERSION: NEWEST, META_CAPABILITIES: {}}}
PATIENCE_S = 20.0
"""Far beyond any honest wait; reached only when nothing comes."""


class Agent:
    """A client of one server, on a connection of its own."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.heard: queue.Queue[dict[str, Any]] = queue.Queue()
        self.connection = Connection(self.heard.put)
        self.connection.revision = "2025-11-25"
        server.subscribers.attach(self.connection)

    def ask(self, method: str, params: dict[str, Any], request_id: str | int = 1) -> Any:
        request = Request(request_id, method, params)
        return self.server.serve(self.server.open(self.connection, request, self.heard.put))

    def call(self, tool: str, **arguments: Any) -> Any:
        return msgspec.json.decode(self.ask("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"])

    def register(self, name: str) -> str:
        return str(self.call("agent_register", name=name, runtime="codex")["id"])

    def read(self, uri: str, *, stateless: bool = False) -> Any:
        result = self.ask("resources/read", {"uri": uri, **(META if stateless else {})})
        (content,) = result["contents"]
        assert (content["uri"], content["mimeType"]) == (uri, "application/json")
        return msgspec.json.decode(content["text"])

    def refused(self, method: str, **params: Any) -> RpcError:
        with pytest.raises(RpcError) as refused:
            self.ask(method, params)
        return refused.value

    def refusal_code(self, method: str, **params: Any) -> Any:
        """The code in the error object of a refused call."""
        return (self.refused(method, **params).data or {})["code"]

    def listen(self, *uris: str, stream: str = "L") -> list[str]:
        """Opens a listening stream; what it will carry."""
        asked = {"notifications": {"resourceSubscriptions": list(uris)}, **META}
        assert self.ask("subscriptions/listen", asked, stream) is HeldStream.OPEN
        first = self.hears()
        assert first["method"] == ACKNOWLEDGED
        return list(first["params"]["notifications"].get("resourceSubscriptions", []))

    def hears(self) -> dict[str, Any]:
        return self.heard.get(timeout=PATIENCE_S)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, toolsets="agent,message")


def strict_world(tmp_path: Path) -> World:
    return World(tmp_path, toolsets="agent,message", identity="strict")


def send(agent: Agent, sender: str, recipient: str, body: str = "hello") -> str:
    sent = agent.call("message_send", sender_id=sender, recipient_id=recipient, message_type="query", body=body)
    return str(sent["id"])


def test_inboxes_are_described_and_never_listed(world: World) -> None:
    agent = Agent(world.server())
    agent.register("ada")
    assert agent.ask("resources/list", {}) == {"resources": []}
    (template,) = agent.ask("resources/templates/list", {})["resourceTemplates"]
    assert template["uriTemplate"] == "handrail://inbox/{agent_id}"
    assert agent.server.offer.capabilities(stateless=False)["resources"]["subscribe"] is True


def test_without_messages_there_is_nothing_to_subscribe_to(tmp_path: Path) -> None:
    agent = Agent(World(tmp_path, toolsets="task").server())
    assert "resources" not in agent.server.offer.capabilities(stateless=False)
    assert agent.refused("resources/templates/list").code == -32601
    assert agent.refused("resources/subscribe", uri=inbox_uri("ag_1")).code == -32601


@pytest.mark.parametrize("stateless", [True, False])
def test_an_inbox_reads_as_message_list_shows_it_and_reading_marks_nothing(world: World, stateless: bool) -> None:
    ada, ben = Agent(world.server()), Agent(world.server())
    first, second = ada.register("ada"), ben.register("ben")
    send(ada, first, second)
    send(ada, first, "human")
    for owner in (second, "human"):
        listed = ben.call("message_list", agent_id=owner)
        assert ben.read(inbox_uri(owner), stateless=stateless) == listed
        assert (listed["unread_count"], listed["total"], len(listed["messages"])) == (1, 1, 1)


def test_an_address_of_nobody_is_not_found(world: World) -> None:
    agent = Agent(world.server())
    for uri in (inbox_uri("ag_9"), "handrail://inbox/", "handrail://outbox/ag_1", inbox_uri("x" * 201), "x", "\0"):
        for method in ("resources/read", "resources/subscribe"):
            error = agent.refused(method, uri=uri)
            assert (error.code, error.message) == (-32002, "Resource not found")
        assert agent.refused("resources/read", uri=uri, **META).code == -32602
    assert agent.listen(inbox_uri("ag_9"), "x") == []


def test_a_subscriber_of_the_handshake_era_hears_what_happens_in_its_inbox(world: World) -> None:
    server = world.server()
    ada, ben = Agent(server), Agent(server)
    first, second = ada.register("ada"), ben.register("ben")
    assert ben.ask("resources/subscribe", {"uri": inbox_uri(second)}) == {}
    message_id = send(ada, first, second)
    assert ben.hears() == {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": inbox_uri(second)}}
    ben.call("message_get", id=message_id)
    assert ben.hears()["params"] == {"uri": inbox_uri(second)}
    assert ada.heard.empty()


def test_each_change_is_told_once(world: World) -> None:
    ada = Agent(world.server())
    first, second = ada.register("ada"), ada.register("ben")
    for agent in (first, second):
        ada.ask("resources/subscribe", {"uri": inbox_uri(agent)})
    told = []
    for agent in (first, second, first):
        send(ada, first, agent)
        told.append(ada.hears()["params"]["uri"])
    assert told == [inbox_uri(first), inbox_uri(second), inbox_uri(first)]


def test_a_listening_stream_hears_of_the_inboxes_it_named(world: World) -> None:
    server = world.server()
    ada, ben = Agent(server), Agent(server)
    first, second = ada.register("ada"), ben.register("ben")
    assert ben.listen(inbox_uri(second), "handrail://nothing") == [inbox_uri(second)]
    send(ada, second, first, "not for ben")
    send(ada, first, second)
    assert ben.hears()["params"] == {"uri": inbox_uri(second), "_meta": {META_SUBSCRIPTION: "L"}}
    assert ben.heard.empty()


def test_what_another_process_writes_is_heard_too(world: World) -> None:
    server = world.server()
    ben = Agent(server)
    second = ben.register("ben")
    ben.ask("resources/subscribe", {"uri": inbox_uri(second)})
    other = assemble(world.place, settings_at(world.place, world.given), ledger=LazyLedger(world._open))
    assert other.ledger is not world._ledger
    ada = Agent(build_server(other))
    send(ada, second, second, "to myself")
    assert ben.hears()["params"] == {"uri": inbox_uri(second)}


def test_every_message_after_a_subscription_is_heard_of_however_often_it_is_made_anew(world: World) -> None:
    """Subscriptions begin and end the following; none may fall between."""
    server = world.server()
    ada = Agent(server)
    first = ada.register("ada")
    for number in range(25):
        ben = Agent(server)
        if number % 2:
            ben.ask("resources/subscribe", {"uri": inbox_uri(first)})
        else:
            assert ben.listen(inbox_uri(first)) == [inbox_uri(first)]
        send(ada, first, first, f"number {number}")
        assert ben.hears()["params"]["uri"] == inbox_uri(first)
        server.subscribers.detach(ben.connection)


def test_under_strict_identity_an_inbox_is_its_agents_alone(tmp_path: Path) -> None:
    server = strict_world(tmp_path).server()
    ada, ben = Agent(server), Agent(server)
    first, second = ada.register("ada"), ben.register("ben")
    send(ada, first, second)
    for uri in (inbox_uri(second), inbox_uri("human")):
        for method in ("resources/read", "resources/subscribe"):
            assert ada.refusal_code(method, uri=uri) == "IDENTITY_UNPROVEN"
        assert ada.listen(uri) == []
    assert ben.read(inbox_uri(second))["unread_count"] == 1
    assert ben.listen(inbox_uri(second)) == [inbox_uri(second)]


# -- the follower -----------------------------------------------------------------------------------------------------


def followers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "handrail-follower"]


def test_nobody_follows_before_the_first_subscription_or_after_the_last(world: World) -> None:
    before = set(followers())
    server = world.server()
    ada, ben = Agent(server), Agent(server)
    first = ada.register("ada")
    ada.read(inbox_uri(first))
    assert set(followers()) <= before  # those of earlier tests may be about to end
    for agent in (ada, ben):
        agent.ask("resources/subscribe", {"uri": inbox_uri(first)})
    (thread,) = set(followers()) - before
    ada.ask("resources/unsubscribe", {"uri": inbox_uri(first)})
    send(ada, first, first)
    assert ben.hears()["method"] == UPDATED
    assert thread.is_alive()
    server.subscribers.detach(ben.connection)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


class FailingLedger(LazyLedger):
    """A store that cannot be read the first times."""

    failures = 2

    def wait(self, position: int, timeout_s: float, cancelled: Any) -> bool:
        if self.failures:
            self.failures -= 1
            raise StoreUnusable("the server is away")
        return super().wait(position, timeout_s, cancelled)


def test_a_store_that_is_away_for_a_while_costs_no_update(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.surfaces.mcp.resource_updates.AGAIN_S", 0.01)
    world._ledger = ledger = FailingLedger(world._open)
    ada = Agent(world.server())
    first = ada.register("ada")
    ada.ask("resources/subscribe", {"uri": inbox_uri(first)})
    send(ada, first, first)
    assert ada.hears()["params"] == {"uri": inbox_uri(first)}
    assert ledger.failures == 0


def test_a_store_that_cannot_be_opened_refuses_the_subscription(world: World) -> None:
    def closed() -> Any:
        raise StoreUnusable("there is no store", hint="look for it")

    world._ledger = LazyLedger(closed)
    agent = Agent(world.server())
    assert agent.refusal_code("resources/subscribe", uri=inbox_uri("human")) == "STORE_UNUSABLE"
    assert agent.connection.failed


def test_only_inboxes_are_touched_by_what_happens_in_inboxes(world: World) -> None:
    ada = Agent(world.server())
    first = ada.register("ada")
    send(ada, first, "human")
    events = world._ledger.open().feed()
    assert [uri for event in events for uri in inboxes.touched(event)] == [inbox_uri("human")]


def test_a_follower_that_nobody_listens_to_says_so(world: World) -> None:
    follower = Follower(world._ledger, lambda after: world._ledger.open().feed(after=after), touched)
    with follower.opening():
        assert follower.is_following
        (thread,) = [one for one in followers() if one._target == follower._follow]  # type: ignore[attr-defined]
    thread.join(PATIENCE_S)
    assert not follower.is_following


def test_an_event_that_cannot_be_told_ends_no_subscription(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(resource_updates, "AGAIN_S", 0.0)
    looks = threading.Semaphore(0)

    def broken(_: int) -> Sequence[Event]:
        looks.release()
        raise KeyError("a bug")

    follower = Follower(world._ledger, broken, touched)
    with follower.opening():
        thread = follower._thread
        assert looks.acquire(timeout=PATIENCE_S)
        assert looks.acquire(timeout=PATIENCE_S), "it looks again"
    assert thread is not None
    thread.join(PATIENCE_S)
    assert "a bug" in capsys.readouterr().err
