"""The application itself, without a socket: what needs an injected clock, a chosen moment, or two servers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from handrail.protocol.exchange import Exchange
from handrail.protocol.http.endpoint import HttpEndpoint, HttpLimits
from handrail.protocol.http.guard import Guard
from handrail.protocol.offer import Changing
from handrail.protocol.revisions import META_VERSION
from handrail.protocol.server import Server
from tests.protocol.http.wire import DEADLINE_S, Clock, Wire, played, request, session, soon, stateless
from tests.protocol.toy import ToyTools, toy_offer


def endpoint_of(server: Server, clock: Clock | None = None, **limits: Any) -> HttpEndpoint:
    return HttpEndpoint(
        lambda path: server if path == "/mcp" else None,
        guard=Guard(),
        limits=HttpLimits(**{"body_bytes": 65536, **limits}),
        now_s=clock or Clock(),
    )


class GatedTools(ToyTools):
    """`gate` waits for its own name to be opened and says whether it was cancelled meanwhile."""

    def __init__(self) -> None:
        super().__init__(("echo", "gate"))
        self.arrived = threading.Semaphore(0)
        self.opened: dict[str, threading.Event] = {}
        self.cancelled: list[str] = []
        self.left = threading.Semaphore(0)

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if name != "gate":
            return super().call(exchange, name, arguments)
        gate = str(arguments["gate"])
        opened = self.opened.setdefault(gate, threading.Event())
        self.arrived.release()
        assert opened.wait(DEADLINE_S)
        if exchange.cancelled:
            self.cancelled.append(gate)
        self.left.release()
        return {"content": [{"type": "text", "text": gate}]}

    def open(self, gate: str) -> None:
        self.opened.setdefault(gate, threading.Event()).set()


# -- sessions and the clock -------------------------------------------------------------------------------------------


def test_a_session_that_was_not_used_is_gone_and_the_client_is_told_to_start_again() -> None:
    clock = Clock()
    endpoint = endpoint_of(Server(toy_offer()), clock, session_idle_s=60.0)

    async def play() -> None:
        known = await session(endpoint)
        clock.now_s = 60.0
        assert (await Wire(endpoint, request("ping"), mcp_session_id=known).answer())[0] == 200
        clock.now_s = 121.0
        status, answer = await Wire(endpoint, request("ping", 7), mcp_session_id=known).answer()
        assert status == 404
        assert answer["id"] == 7
        assert "initialize again" in answer["error"]["data"]["details"]
        assert len(endpoint.sessions) == 0

    played(endpoint, play)


def test_a_running_call_and_an_open_stream_keep_their_session() -> None:
    clock, tools = Clock(), GatedTools()
    endpoint = endpoint_of(Server(toy_offer(tools=tools)), clock, session_idle_s=60.0)

    async def play() -> None:
        working, reading = await session(endpoint), await session(endpoint)
        call = Wire(endpoint, request("tools/call", name="gate", arguments={"gate": "a"}), mcp_session_id=working)
        standing = Wire(endpoint, method="GET", mcp_session_id=reading)
        assert (await standing.start())[0] == 200
        await soon(tools.arrived)
        clock.now_s = 1000.0
        for known in (working, reading):
            assert (await Wire(endpoint, request("ping"), mcp_session_id=known).answer())[0] == 200
        tools.open("a")
        assert (await call.answer())[0] == 200
        standing.leave()
        await standing.task
        clock.now_s = 2000.0
        for known in (working, reading):
            assert (await Wire(endpoint, request("ping"), mcp_session_id=known).answer())[0] == 404

    played(endpoint, play)


def test_quiet_sessions_keep_nobody_out() -> None:
    clock = Clock()
    endpoint = endpoint_of(Server(toy_offer()), clock, sessions=2)

    async def play() -> None:
        first, second = await session(endpoint), await session(endpoint)
        clock.now_s += 1.0
        assert (await Wire(endpoint, request("ping"), mcp_session_id=first).answer())[0] == 200
        third = await session(endpoint)
        for known, status in ((first, 200), (second, 404), (third, 200)):
            assert (await Wire(endpoint, request("ping"), mcp_session_id=known).answer())[0] == status

    played(endpoint, play)


def test_too_many_sessions_at_work_are_refused_until_one_ends() -> None:
    endpoint = endpoint_of(Server(toy_offer()), sessions=2)

    async def play() -> None:
        first, second = await session(endpoint), await session(endpoint)
        standing = [Wire(endpoint, method="GET", mcp_session_id=known) for known in (first, second)]
        for stream in standing:
            assert (await stream.start())[0] == 200
        refused = Wire(endpoint, request("initialize", protocolVersion="2025-11-25", capabilities={}))
        status, headers = await refused.start()
        assert status == 503
        assert int(headers["retry-after"]) > 0
        assert "try again" in (await refused.json())["error"]["data"]["details"]
        assert (await stateless(endpoint, "tools/list").answer())[0] == 200  # who needs no session is served
        assert (await Wire(endpoint, method="DELETE", mcp_session_id=first).answer())[0] == 200
        await session(endpoint)
        for stream in standing:
            stream.leave()
            await stream.task

    played(endpoint, play)


@pytest.mark.parametrize("params", [{}, {"protocolVersion": "1999-01-01", "capabilities": {}}, {"capabilities": 5}])
def test_a_failed_handshake_leaves_no_session(params: dict[str, Any]) -> None:
    endpoint = endpoint_of(Server(toy_offer()), sessions=1)

    async def play() -> None:
        wire = Wire(endpoint, request("initialize", **params))
        status, headers = await wire.start()
        assert (status, "mcp-session-id" in headers) == (200, False)
        assert "error" in await wire.json()
        assert len(endpoint.sessions) == 0
        await session(endpoint)

    played(endpoint, play)


def test_a_server_that_leaves_begins_no_session() -> None:
    endpoint = endpoint_of(Server(toy_offer()))

    async def play() -> None:
        endpoint.drain()
        refused = Wire(endpoint, request("initialize", protocolVersion="2025-11-25", capabilities={}))
        assert (await refused.start())[0] == 503

    played(endpoint, play)


def test_shutdown_ends_the_session() -> None:
    endpoint = endpoint_of(Server(toy_offer()))

    async def play() -> None:
        known = await session(endpoint)
        assert await Wire(endpoint, request("shutdown"), mcp_session_id=known).answer() == (
            200,
            {"jsonrpc": "2.0", "id": 1, "result": None},
        )
        assert (await Wire(endpoint, request("ping"), mcp_session_id=known).answer())[0] == 404

    played(endpoint, play)


def test_a_session_belongs_to_the_path_it_was_opened_under() -> None:
    """Or a session of /mcp would run, under /mcp/readonly, tools that change things."""
    whole, part = Server(toy_offer()), Server(toy_offer(tools=ToyTools(("echo",))))
    endpoint = HttpEndpoint(
        {"/mcp": whole, "/mcp/readonly": part}.get, guard=Guard(), limits=HttpLimits(body_bytes=65536)
    )

    async def play() -> None:
        known = await session(endpoint)
        wire = Wire(endpoint, request("tools/list"), mcp_session_id=known, path="/mcp/readonly")
        status, answer = await wire.answer()
        assert (status, "result" in answer) == (404, False)

    played(endpoint, play)


# -- cancelling and leaving -------------------------------------------------------------------------------------------


def test_a_stateless_client_that_leaves_cancels_its_call() -> None:
    tools = GatedTools()
    endpoint = endpoint_of(Server(toy_offer(tools=tools)))

    async def play() -> None:
        call = stateless(endpoint, "tools/call", name="gate", arguments={"gate": "a"})
        await soon(tools.arrived)
        call.leave()
        await call.task
        tools.open("a")
        await soon(tools.left)
        assert tools.cancelled == ["a"]

    played(endpoint, play)


def test_a_handshake_client_that_leaves_does_not_cancel_its_call() -> None:
    tools = GatedTools()
    endpoint = endpoint_of(Server(toy_offer(tools=tools)))

    async def play() -> None:
        known = await session(endpoint)
        body = request("tools/call", name="gate", arguments={"gate": "a"})
        call = Wire(endpoint, body, mcp_session_id=known)
        await soon(tools.arrived)
        call.leave()
        await call.task
        tools.open("a")
        await soon(tools.left)
        assert tools.cancelled == []

    played(endpoint, play)


def test_a_cancelled_call_is_answered_so_that_its_response_ends() -> None:
    tools = GatedTools()
    endpoint = endpoint_of(Server(toy_offer(tools=tools)))

    async def play() -> None:
        known = await session(endpoint)
        call = Wire(endpoint, request("tools/call", "c", name="gate", arguments={"gate": "a"}), mcp_session_id=known)
        await soon(tools.arrived)
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}
        assert (await Wire(endpoint, note, mcp_session_id=known).start())[0] == 202
        tools.open("a")
        _, answer = await call.answer()
        assert (answer["id"], answer["error"]["code"]) == ("c", -32800)
        assert tools.cancelled == ["a"]

    played(endpoint, play)


def test_ending_a_session_cancels_what_runs_in_it() -> None:
    tools = GatedTools()
    endpoint = endpoint_of(Server(toy_offer(tools=tools)))

    async def play() -> None:
        known = await session(endpoint)
        call = Wire(endpoint, request("tools/call", name="gate", arguments={"gate": "a"}), mcp_session_id=known)
        await soon(tools.arrived)
        assert (await Wire(endpoint, method="DELETE", mcp_session_id=known).answer())[0] == 200
        tools.open("a")
        assert (await call.answer())[1]["error"]["code"] == -32800

    played(endpoint, play)


def test_two_calls_with_one_id_do_not_forget_each_other() -> None:
    tools = GatedTools()
    endpoint = endpoint_of(Server(toy_offer(tools=tools)))

    async def play() -> None:
        known = await session(endpoint)
        calls = {}
        for gate in ("first", "second"):
            body = request("tools/call", "same", name="gate", arguments={"gate": gate})
            calls[gate] = Wire(endpoint, body, mcp_session_id=known)
            await soon(tools.arrived)
        tools.open("first")
        assert (await calls["first"].answer())[0] == 200
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "same"}}
        assert (await Wire(endpoint, note, mcp_session_id=known).start())[0] == 202
        tools.open("second")
        await calls["second"].answer()
        assert tools.cancelled == ["second"]

    played(endpoint, play)


# -- batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_is_answered_as_one_array_in_the_one_revision_that_has_it() -> None:
    endpoint = endpoint_of(Server(toy_offer()))
    batch = [
        request("ping", 1),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "s", "result": {}},
        request("tools/call", 2, name="echo", arguments={"text": "hi"}),
        {"jsonrpc": "1.0", "id": 3, "method": "ping"},
        request("no/such", 4),
    ]

    async def play() -> None:
        known = await session(endpoint, "2025-03-26")
        status, answers = await Wire(endpoint, batch, mcp_session_id=known).answer()
        assert status == 200
        assert [(answer["id"], "error" in answer) for answer in answers] == [
            (1, False),
            (2, False),
            (3, True),
            (4, True),
        ]
        assert (await Wire(endpoint, batch[1:3], mcp_session_id=known).start())[0] == 202
        assert (await Wire(endpoint, [], mcp_session_id=known).answer())[0] == 400
        newer = await session(endpoint)
        assert (await Wire(endpoint, batch, mcp_session_id=newer).answer())[0] == 400

    played(endpoint, play)


@pytest.mark.parametrize("version", [5, "1999-01-01", "2026-07-28"])
def test_a_wrong_envelope_inside_a_batch_is_that_requests_error(version: Any) -> None:
    endpoint = endpoint_of(Server(toy_offer()))

    async def play() -> None:
        known = await session(endpoint, "2025-03-26")
        batch = [request("ping", 1, _meta={META_VERSION: version}), request("ping", 2)]
        status, answers = await Wire(endpoint, batch, mcp_session_id=known).answer()
        assert status == 200
        assert [(answer["id"], "error" in answer) for answer in answers] == [(1, True), (2, False)]

    played(endpoint, play)


# -- listening --------------------------------------------------------------------------------------------------------


class PausedServer(Server):
    """Stops after the acknowledgement has gone out, where the operating system may stop any thread."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(toy_offer(**changes))
        self.go_on = threading.Event()

    def serve(self, exchange: Exchange) -> Any:
        result = super().serve(exchange)
        if exchange.method == "subscriptions/listen":
            assert self.go_on.wait(DEADLINE_S)
        return result


def listen(endpoint: HttpEndpoint) -> Wire:
    return stateless(endpoint, "subscriptions/listen", "L", notifications={"toolsListChanged": True})


def test_what_changes_right_after_the_acknowledgement_is_heard() -> None:
    server = PausedServer(changing=Changing(tools=True))
    endpoint = endpoint_of(server)

    async def play() -> None:
        wire = listen(endpoint)
        await wire.start()
        acknowledged = await wire.event()
        assert acknowledged is not None
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        server.subscribers.list_changed("toolsListChanged")
        server.go_on.set()
        changed = await wire.event()
        assert changed is not None
        assert changed["method"] == "notifications/tools/list_changed"

    played(endpoint, play)


def test_a_listener_that_leaves_at_once_is_forgotten() -> None:
    server = PausedServer(changing=Changing(tools=True))
    endpoint = endpoint_of(server)

    async def play() -> None:
        wire = listen(endpoint)
        await wire.start()
        await wire.event()
        wire.leave()
        await wire.task
        server.go_on.set()
        await stateless(endpoint, "tools/list").answer()
        endpoint._delivery.workers.shutdown(wait=True)
        assert server.subscribers._all() == ()

    played(endpoint, play)


def test_a_listener_of_the_last_moment_gets_its_final_reply() -> None:
    server = PausedServer(changing=Changing(tools=True))
    endpoint = endpoint_of(server)

    async def play() -> None:
        wire = listen(endpoint)
        await wire.start()
        await wire.event()
        endpoint.drain()
        server.go_on.set()
        farewell = await wire.event()
        assert farewell is not None
        assert (farewell["id"], farewell["result"]["resultType"]) == ("L", "complete")

    played(endpoint, play)


def test_a_listener_that_leaves_later_is_forgotten() -> None:
    server = Server(toy_offer(changing=Changing(tools=True)))
    endpoint = endpoint_of(server)

    async def play() -> None:
        wire = listen(endpoint)
        await wire.start()
        await wire.event()
        assert len(server.subscribers._all()) == 1
        wire.leave()
        await wire.task
        assert server.subscribers._all() == ()

    played(endpoint, play)


def test_the_standing_channel_says_nothing_twice() -> None:
    server = Server(toy_offer(changing=Changing(tools=True)))
    endpoint = endpoint_of(server)

    async def play() -> None:
        known = await session(endpoint)
        for _ in range(2):
            standing = Wire(endpoint, method="GET", mcp_session_id=known)
            await standing.start()
            server.subscribers.list_changed("toolsListChanged")
            assert await standing.event() is not None
            standing.leave()
            await standing.task
        again = Wire(endpoint, method="GET", mcp_session_id=known)
        await again.start()
        endpoint.drain()
        assert await again.event() is None

    played(endpoint, play)


# DEFECT endpoint._pump: two readers of one standing stream each follow it from their own place. Let the newest reader
# take over: a number that grows with each reader, and whoever finds it changed leaves.
def test_each_message_goes_to_one_of_two_standing_channels() -> None:
    """The revisions forbid to say the same on two streams of one session."""
    server = Server(toy_offer(changing=Changing(tools=True)))
    endpoint = endpoint_of(server)

    async def play() -> None:
        known = await session(endpoint)
        channels = [Wire(endpoint, method="GET", mcp_session_id=known) for _ in range(2)]
        for channel in channels:
            assert (await channel.start())[0] in (200, 409)
        server.subscribers.list_changed("toolsListChanged")
        assert (await Wire(endpoint, request("ping"), mcp_session_id=known).answer())[0] == 200
        endpoint.drain()
        heard = 0
        for channel in channels:
            await asyncio.wait_for(channel.task, DEADLINE_S)
            heard += channel.rest().count(b"list_changed")
        assert heard == 1

    played(endpoint, play)


def test_a_reply_that_was_delivered_is_not_kept() -> None:
    endpoint = endpoint_of(Server(toy_offer()), body_bytes=1 << 20)

    async def play() -> None:
        known = await session(endpoint)
        body = request("tools/call", name="echo", arguments={"text": "x" * 500_000})
        for _ in range(5):
            assert (await Wire(endpoint, body, mcp_session_id=known).answer())[0] == 200
        found = endpoint.sessions.find(known)
        assert found is not None
        kept = [stream.reply for stream in found._streams.values() if stream.reply is not None]
        assert sum(map(len, kept)) < 1_000_000

    played(endpoint, play)
