"""Who hears of changes: only those who asked, each era in its way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import Changing
from handrail.protocol.revisions import META_CAPABILITIES, META_LOG_LEVEL, META_SUBSCRIPTION, META_VERSION, NEWEST
from handrail.protocol.server import HeldStream, Server
from handrail.protocol.subscriptions import LIST_CHANGES
from handrail.protocol.tasks import TASKS_EXTENSION
from handrail.protocol.wire import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from tests.protocol.test_server import TwoPrompts
from tests.protocol.toy import Client, toy_offer

ALL_CHANGES = Changing(tools=True, prompts=True, resources=True, resource_updates=True)
UPDATED = "notifications/resources/updated"


@pytest.fixture
def server() -> Server:
    return Server(toy_offer(changing=ALL_CHANGES, prompts=TwoPrompts(), tasks=True))


def old_client(server: Server, *uris: str) -> Client:
    client = Client(server)
    client.initialize()
    for uri in uris:
        assert client.ask("resources/subscribe", {"uri": uri}) == {}
    return client


def listener(server: Server, stream: str = "L", **wanted: Any) -> Client:
    client = Client(server)
    listen(client, stream, **wanted)
    client.heard.clear()
    return client


def listen(client: Client, stream: str, **wanted: Any) -> dict[str, Any]:
    meta = {META_VERSION: NEWEST, META_CAPABILITIES: {"extensions": {TASKS_EXTENSION: {}}}}
    assert client.ask("subscriptions/listen", {"notifications": wanted, "_meta": meta}, stream) is HeldStream.OPEN
    acknowledged = client.heard[-1]
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["_meta"] == {META_SUBSCRIPTION: stream}
    granted = acknowledged["params"]["notifications"]
    assert isinstance(granted, dict)
    return granted


def methods(client: Client) -> list[str]:
    return [note["method"] for note in client.heard]


def test_a_resource_update_reaches_only_who_subscribed(server: Server) -> None:
    asked, other, silent = old_client(server, "toy://a"), old_client(server, "toy://b"), old_client(server)
    new, elsewhere = listener(server, resourceSubscriptions=["toy://a"]), listener(server, resourceSubscriptions=["x"])
    lists_only = listener(server, resourcesListChanged=True)
    server.subscribers.resource_updated("toy://a")
    assert asked.heard == [{"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "toy://a"}}]
    assert new.heard[0]["params"] == {"uri": "toy://a", "_meta": {META_SUBSCRIPTION: "L"}}
    assert [methods(client) for client in (other, silent, elsewhere, lists_only)] == [[], [], [], []]


def test_a_client_that_unsubscribed_hears_no_more(server: Server) -> None:
    client = old_client(server, "toy://a", "toy://b")
    assert client.ask("resources/unsubscribe", {"uri": "toy://a"}) == {}
    assert client.ask("resources/unsubscribe", {"uri": "toy://never"}) == {}
    server.subscribers.resource_updated("toy://a")
    server.subscribers.resource_updated("toy://b")
    assert [note["params"]["uri"] for note in client.heard] == ["toy://b"]


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_list_change_reaches_every_handshake_client_and_the_listeners_that_named_it(
    server: Server, change: str
) -> None:
    old, before_handshake = old_client(server), Client(server)
    named = listener(server, "L", **{change: True})
    others = listener(server, "L", **{other: True for other in LIST_CHANGES if other != change})
    server.subscribers.list_changed(change)
    assert methods(old) == methods(named) == [LIST_CHANGES[change]]
    assert named.heard[0]["params"] == {"_meta": {META_SUBSCRIPTION: "L"}}
    assert (methods(before_handshake), methods(others)) == ([], [])


def test_a_task_note_reaches_only_who_named_the_task(server: Server) -> None:
    old = old_client(server)
    named, other = listener(server, taskIds=["t1"]), listener(server, taskIds=["t2"])
    server.subscribers.task_changed("t1", {"taskId": "t1", "status": "completed"})
    assert named.heard[0]["method"] == "notifications/tasks"
    assert named.heard[0]["params"] == {
        "taskId": "t1",
        "status": "completed",
        "_meta": {META_SUBSCRIPTION: "L"},
    }
    assert (methods(old), methods(other)) == ([], [])


def test_two_streams_of_one_connection_are_told_apart(server: Server) -> None:
    client = Client(server)
    listen(client, "one", resourceSubscriptions=["toy://a"])
    listen(client, "two", resourceSubscriptions=["toy://a"], toolsListChanged=True)
    client.heard.clear()
    server.subscribers.resource_updated("toy://a")
    assert {note["params"]["_meta"][META_SUBSCRIPTION] for note in client.heard} == {"one", "two"}
    client.heard.clear()
    server.subscribers.list_changed("toolsListChanged")
    assert [note["params"]["_meta"][META_SUBSCRIPTION] for note in client.heard] == ["two"]


def test_both_eras_on_one_connection_hear_each_their_own(server: Server) -> None:
    client = old_client(server, "toy://a")
    listen(client, "L", resourceSubscriptions=["toy://b"])
    client.heard.clear()
    server.subscribers.resource_updated("toy://a")
    server.subscribers.resource_updated("toy://b")
    assert [("_meta" in note["params"], note["params"]["uri"]) for note in client.heard] == [
        (False, "toy://a"),
        (True, "toy://b"),
    ]


def test_the_acknowledgement_grants_only_what_the_server_has() -> None:
    server = Server(toy_offer(changing=Changing(tools=True)))
    granted = listen(
        Client(server),
        "L",
        toolsListChanged=True,
        promptsListChanged=True,
        resourcesListChanged=True,
        resourceSubscriptions=["toy://a"],
        surprise=True,
    )
    assert granted == {"toolsListChanged": True}


@pytest.mark.parametrize("wanted", [None, [], "text", 5])
def test_a_listener_that_names_nothing_hears_nothing(server: Server, wanted: Any) -> None:
    client = Client(server)
    assert client.ask_stateless("subscriptions/listen", {"notifications": wanted}) is HeldStream.OPEN
    assert client.heard.pop()["params"]["notifications"] == {}
    for change in LIST_CHANGES:
        server.subscribers.list_changed(change)
    assert client.heard == []


@pytest.mark.parametrize("wanted", [1, "true", {}, None, [True]])
def test_only_true_asks_for_a_list(server: Server, wanted: Any) -> None:
    assert listen(Client(server), "L", toolsListChanged=wanted) == {}


@pytest.mark.parametrize("uris", ["toy://a", {"toy://a": 1}, [5, None, ["toy://a"]], None])
def test_only_texts_name_resources(server: Server, uris: Any) -> None:
    assert listen(Client(server), "L", resourceSubscriptions=uris) == {}


def test_a_client_that_left_is_told_nothing(server: Server) -> None:
    old, new = old_client(server, "toy://a"), listener(server, resourceSubscriptions=["toy://a"])
    for client in (old, new):
        server.subscribers.detach(client.connection)
    server.subscribers.resource_updated("toy://a")
    server.subscribers.list_changed("toolsListChanged")
    assert old.heard == new.heard == []


def test_the_stream_ends_with_a_reply_that_names_it(server: Server) -> None:
    import msgspec

    client = Client(server)
    listen(client, "L", toolsListChanged=True)
    listening = client.connection.listeners["L"].exchange
    farewell = msgspec.json.decode(server.farewell(listening))
    assert farewell["id"] == "L"
    assert farewell["result"]["resultType"] == "complete"
    assert farewell["result"]["_meta"][META_SUBSCRIPTION] == "L"


@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
def test_subscribing_belongs_to_the_handshake_and_names_a_resource(server: Server, method: str) -> None:
    client = old_client(server)
    for params in ({}, {"uri": 5}):
        with pytest.raises(RpcError) as refused:
            client.ask(method, params)
        assert refused.value.code == INVALID_PARAMS
    with pytest.raises(RpcError) as refused:
        client.ask_stateless(method, {"uri": "toy://a"})
    assert refused.value.code == METHOD_NOT_FOUND


def test_a_server_whose_resources_do_not_change_takes_no_subscriptions() -> None:
    client = Client(Server(toy_offer()))
    assert "subscribe" not in client.initialize()["capabilities"]["resources"]
    with pytest.raises(RpcError) as refused:
        client.ask("resources/subscribe", {"uri": "toy://a"})
    assert refused.value.code == METHOD_NOT_FOUND


# -- log lines --------------------------------------------------------------------------------------------------------


def test_log_lines_follow_the_level_each_era_sets() -> None:
    server = Server(toy_offer(logs=True))
    old = old_client(server)
    assert old.ask("logging/setLevel", {"level": "warning"}) == {}
    for stateless in (False, True):
        from handrail.protocol.wire import Request

        meta = {META_VERSION: NEWEST, META_CAPABILITIES: {}, "io.modelcontextprotocol/logLevel": "warning"}
        params: dict[str, Any] = {"_meta": meta} if stateless else {}
        exchange = server.open(old.connection, Request(1, "tools/list", params), old.heard.append)
        for level in ("debug", "info", "warning", "emergency"):
            exchange.log(level, level, logger="toy")
        assert [note["params"] for note in old.heard] == [
            {"level": level, "logger": "toy", "data": level} for level in ("warning", "emergency")
        ]
        old.heard.clear()
    quiet = server.open(
        old.connection,
        Request(1, "tools/list", {"_meta": {META_VERSION: NEWEST, META_CAPABILITIES: {}}}),
        old.heard.append,
    )
    quiet.log("emergency", "nobody asked")
    assert old.heard == []


@pytest.mark.parametrize("level", ["loud", "", "INFO", 5, [], None])
def test_an_unknown_log_level_is_refused(level: Any) -> None:
    client = old_client(Server(toy_offer(logs=True)))
    with pytest.raises(RpcError) as refused:
        client.ask("logging/setLevel", {"level": level})
    assert refused.value.code == INVALID_PARAMS


@pytest.mark.parametrize("level", ["loud", "", "INFO", 5, []])
def test_an_unknown_log_level_of_one_request_is_refused_where_there_are_log_lines(level: Any) -> None:
    meta = {META_VERSION: NEWEST, META_CAPABILITIES: {}, META_LOG_LEVEL: level}
    with pytest.raises(RpcError) as refused:
        Client(Server(toy_offer(logs=True))).ask("tools/list", {"_meta": meta})
    assert refused.value.code == INVALID_PARAMS
    assert refused.value.data is not None
    assert "must be one of debug, info" in refused.value.data["details"]
    assert Client(Server(toy_offer())).ask("tools/list", {"_meta": meta})["tools"]


@pytest.mark.parametrize("logs", [True, False])
def test_a_server_with_log_lines_says_so_in_both_eras(logs: bool) -> None:
    client = Client(Server(toy_offer(logs=logs)))
    assert ("logging" in client.initialize()["capabilities"]) is logs
    assert ("logging" in client.ask_stateless("server/discover")["capabilities"]) is logs


class Watchman:
    """Lets nobody hear of what is secret, and keeps what it saw while subscriptions were made."""

    def __init__(self) -> None:
        self.server: Server | None = None
        self.watched: list[tuple[bool, bool]] = []
        """Whether somebody was listening, before and after each subscription."""

    def check(self, exchange: Exchange, uri: str) -> None:
        if uri == "toy://secret":
            raise RpcError(INVALID_PARAMS, "Resource not found", {"asked": exchange.method})

    @contextmanager
    def opening(self, exchange: Exchange) -> Iterator[None]:
        assert self.server is not None
        before = self.server.subscribers.is_watched()
        yield
        self.watched.append((before, self.server.subscribers.is_watched()))


@pytest.fixture
def watchman() -> Watchman:
    found = Watchman()
    found.server = Server(toy_offer(changing=ALL_CHANGES, watching=found))
    return found


def test_who_may_not_hear_of_a_resource_is_refused_or_not_granted_it(watchman: Watchman) -> None:
    assert watchman.server is not None
    old, new = old_client(watchman.server), Client(watchman.server)
    with pytest.raises(RpcError):
        old.ask("resources/subscribe", {"uri": "toy://secret"})
    assert listen(new, "L", resourceSubscriptions=["toy://secret", "toy://a"]) == {"resourceSubscriptions": ["toy://a"]}
    assert listen(new, "M", resourceSubscriptions=["toy://secret"]) == {}
    for client in (old, new):
        client.heard.clear()
    watchman.server.subscribers.resource_updated("toy://secret")
    assert (methods(old), methods(new)) == ([], [])


def test_whoever_tells_updates_is_there_before_a_subscription_and_sees_when_none_is_left(watchman: Watchman) -> None:
    server = watchman.server
    assert server is not None
    new = Client(server)
    listen(new, "L", toolsListChanged=True)
    assert watchman.watched == [], "no resource, nothing to watch"
    old = old_client(server, "toy://a")
    listen(new, "M", resourceSubscriptions=["toy://b"])
    assert watchman.watched == [(False, True), (True, True)]
    old.ask("resources/unsubscribe", {"uri": "toy://a"})
    assert server.subscribers.is_watched()
    del new.connection.listeners["M"]
    assert not server.subscribers.is_watched()
    old.ask("resources/subscribe", {"uri": "toy://a"})
    server.subscribers.detach(old.connection)
    assert not server.subscribers.is_watched()
