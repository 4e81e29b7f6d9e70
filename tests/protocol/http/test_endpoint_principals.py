"""Principals: whom a token stands for reaches the handler, owns its sessions, and is gone when the token is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from handrail.protocol.exchange import Exchange
from handrail.protocol.http.endpoint import HttpEndpoint, HttpLimits
from handrail.protocol.http.guard import BELIEVED_S, Guard, LookupFailed, Principal
from handrail.protocol.offer import Changing
from handrail.protocol.server import Server
from tests.protocol.http.wire import DEADLINE_S, Clock, Wire, bearer, played, request, session, stateless
from tests.protocol.toy import ToyTools, toy_offer

ANN, BOB = Principal(id="1", name="ann", agent_id="agent_1"), Principal(id="2", name="bob")
READER = Principal(id="3", name="reader", rights=("read",))


class NamingTools(ToyTools):
    """`echo` says who called."""

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        principal = exchange.connection.principal
        return {"content": [{"type": "text", "text": principal.name if principal is not None else "nobody"}]}


class House:
    """An endpoint with a whole and a read-only server, and tokens that can be taken back."""

    def __init__(self, **limits: Any) -> None:
        self.clock = Clock()
        self.tokens = {"own-a": ANN, "other-a": ANN, "b": BOB, "r": READER}
        self.reachable = True
        changing = Changing(tools=True)
        self.whole = Server(toy_offer(tools=NamingTools(), changing=changing))
        self.part = Server(toy_offer(tools=NamingTools(("echo",)), changing=changing))
        self.endpoint = HttpEndpoint(
            lambda path: self.whole if path == "/mcp" else None,
            read_only_server_for=lambda path: self.part if path == "/mcp" else None,
            guard=Guard(token="T", lookup=self),
            limits=HttpLimits(**{"body_bytes": 65536, **limits}),
            now_s=self.clock,
        )

    def has_form(self, token: str) -> bool:
        return bool(token)

    def find(self, token: str) -> Principal | None:
        if not self.reachable:
            raise LookupFailed("the store cannot be reached")
        return self.tokens.get(token)

    def mark(self) -> object:
        return 0

    def later(self) -> None:
        """Beyond the time for which an answer of the lookup is believed."""
        self.clock.now_s += BELIEVED_S

    def post(self, known: str, token: str, method: str = "tools/call", **params: Any) -> Wire:
        params = params or ({"name": "echo", "arguments": {}} if method == "tools/call" else {})
        return Wire(self.endpoint, request(method, **params), mcp_session_id=known, **bearer(token))

    def get(self, known: str, token: str) -> Wire:
        return Wire(self.endpoint, method="GET", mcp_session_id=known, **bearer(token))


@pytest.fixture
def house() -> House:
    return House()


def text(answer: dict[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])


@pytest.mark.parametrize(("token", "name"), [("T", "nobody"), ("own-a", "ann"), ("b", "bob"), ("r", "reader")])
def test_whom_a_token_stands_for_reaches_the_handler_in_both_eras(house: House, token: str, name: str) -> None:
    async def play() -> None:
        wire = stateless(house.endpoint, "tools/call", name="echo", arguments={}, token=token)
        assert text((await wire.answer())[1]) == name
        known = await session(house.endpoint, token=token)
        assert text((await house.post(known, token).answer())[1]) == name

    played(house.endpoint, play)


def test_a_session_belongs_to_the_principal_that_opened_it(house: House) -> None:
    async def play() -> None:
        for owner, stranger in (("own-a", "b"), ("T", "own-a"), ("b", "T")):
            known = await session(house.endpoint, token=owner)
            for wire in (
                house.post(known, stranger),
                house.get(known, stranger),
                Wire(house.endpoint, method="DELETE", mcp_session_id=known, **bearer(stranger)),
            ):
                status, answer = await wire.answer()
                assert status == 404
                assert "initialize again" in answer["error"]["data"]["details"]
            assert (await house.post(known, owner).answer())[0] == 200

    played(house.endpoint, play)


def test_another_token_of_the_same_principal_may_use_its_session(house: House) -> None:
    async def play() -> None:
        known = await session(house.endpoint, token="own-a")
        house.later()  # so that both are looked up, and are two objects
        house.tokens["other-a"] = Principal(id="1", name="ann", agent_id="agent_1")
        assert (await house.post(known, "other-a").answer())[0] == 200

    played(house.endpoint, play)


def test_who_may_only_read_is_shown_the_read_only_server_under_the_same_path(house: House) -> None:
    async def play() -> None:
        for token, count in (("T", 4), ("own-a", 4), ("r", 1)):
            _, answer = await stateless(house.endpoint, "tools/list", token=token).answer()
            assert len(answer["result"]["tools"]) == count
            known = await session(house.endpoint, token=token)
            _, answer = await house.post(known, token, "tools/list").answer()
            assert len(answer["result"]["tools"]) == count
        status, _ = await Wire(house.endpoint, request("ping"), path="/other", **bearer("r")).answer()
        assert status == 404

    played(house.endpoint, play)


def test_a_session_stops_working_with_its_token(house: House) -> None:
    async def play() -> None:
        known = await session(house.endpoint, token="own-a")
        assert (await house.post(known, "own-a").answer())[0] == 200
        del house.tokens["own-a"]
        house.later()
        for wire in (house.post(known, "own-a"), house.get(known, "own-a")):
            assert (await wire.answer())[0] == 401

    played(house.endpoint, play)


def test_an_open_channel_says_nothing_more_once_its_token_is_revoked_and_its_session_ends(house: House) -> None:
    async def play() -> None:
        known = await session(house.endpoint, token="own-a")
        standing = house.get(known, "own-a")
        assert (await standing.start())[0] == 200
        house.whole.subscribers.list_changed("toolsListChanged")
        assert await standing.event() is not None
        del house.tokens["own-a"]
        house.later()
        house.whole.subscribers.list_changed("toolsListChanged")
        assert await standing.event() is None
        await asyncio.wait_for(standing.task, DEADLINE_S)
        assert len(house.endpoint.sessions) == 0

    played(house.endpoint, play)


def test_a_listening_client_hears_nothing_more_once_its_token_is_revoked(house: House) -> None:
    async def play() -> None:
        wanted = {"toolsListChanged": True}
        wire = stateless(house.endpoint, "subscriptions/listen", "L", notifications=wanted, token="b")
        await wire.start()
        assert await wire.event() is not None
        house.whole.subscribers.list_changed("toolsListChanged")
        assert await wire.event() is not None
        del house.tokens["b"]
        house.later()
        house.whole.subscribers.list_changed("toolsListChanged")
        assert await wire.event() is None
        await asyncio.wait_for(wire.task, DEADLINE_S)
        assert house.whole.subscribers._all() == ()

    played(house.endpoint, play)


def test_an_open_channel_of_a_revoked_token_ends_even_where_nothing_happens() -> None:
    house = House(ping_s=0.01)

    async def play() -> None:
        known = await session(house.endpoint, token="own-a")
        standing = house.get(known, "own-a")
        await standing.start()
        del house.tokens["own-a"]
        house.later()
        assert await standing.event() is None

    played(house.endpoint, play)


def test_a_lookup_that_fails_sends_a_reader_away_and_loses_nothing(house: House) -> None:
    async def play() -> None:
        known = await session(house.endpoint, token="own-a")
        standing = house.get(known, "own-a")
        await standing.start()
        house.reachable = False
        house.later()
        house.whole.subscribers.list_changed("toolsListChanged")
        assert await standing.event() is None
        assert (await house.post(known, "own-a").answer())[0] == 503
        house.reachable = True
        again = house.get(known, "own-a")
        assert (await again.start())[0] == 200
        missed = await again.event()
        assert missed is not None
        assert missed["method"] == "notifications/tools/list_changed"

    played(house.endpoint, play)
