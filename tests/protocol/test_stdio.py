"""The stdio transport on pipes of its own: cancelling, back-pressure, what is kept of a call, answers at the end."""

from __future__ import annotations

import gc
import os
import select
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import Changing
from handrail.protocol.revisions import META_CAPABILITIES, META_VERSION, NEWEST
from handrail.protocol.server import Server
from handrail.protocol.stdio import StdioLimits, StdioTransport
from tests.protocol.toy import ToyTools, toy_offer

DEADLINE_S = 10.0
QUEUED_BYTES = 64 * 1024
GRACE_S = 0.4


class Tools(ToyTools):
    """`hold` keeps the lane until its gate opens; `wait` waits beside it until its gate opens or it is cancelled;
    `stubborn` waits beside it and hears nothing; `ask` asks the person."""

    def __init__(self) -> None:
        super().__init__(("echo", "hold", "wait", "stubborn", "ask"))
        self.gates: dict[str, threading.Event] = {}
        self.arrived = threading.Semaphore(0)
        self.told = 0
        """How many heard that they are not wanted any more."""
        self.seen: list[weakref.ref[Any]] = []

    def waits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        return name in ("wait", "stubborn")

    def asks(self, name: str) -> bool:
        return name == "ask"

    def gate(self, name: str) -> threading.Event:
        return self.gates.setdefault(name, threading.Event())

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        exchange.close_stream = lambda: None  # lives as long as the exchange, which itself takes no weak reference
        self.seen.append(weakref.ref(exchange.close_stream))
        if name == "echo":
            return {"content": []}
        if name == "ask":
            return {"content": [], "structuredContent": exchange.elicit("?", {"type": "object"})}
        gate = self.gate(str(arguments.get("gate", name)))
        self.arrived.release()
        if name == "wait":
            while not (exchange.cancelled or gate.wait(0.005)):
                continue
            self.told += exchange.cancelled
            exchange.raise_if_cancelled()
        else:
            assert gate.wait(DEADLINE_S)
        return {"content": [], "structuredContent": {"through": arguments.get("gate", name)}}

    def have_arrived(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.arrived.acquire(timeout=DEADLINE_S)


class Wire:
    """A transport and the client's ends of its pipes."""

    def __init__(self) -> None:
        self.tools = Tools()
        self.server = Server(toy_offer(tools=self.tools, changing=Changing(tools=True)))
        wire_in, self._to = os.pipe()
        self._from, wire_out = os.pipe()
        limits = StdioLimits(
            message_bytes=1 << 20, message_depth=64, queued_bytes=QUEUED_BYTES, waiting_calls=8, grace_s=GRACE_S
        )
        self.transport = StdioTransport(self.server, wire_in=wire_in, wire_out=wire_out, limits=limits)
        self._pending = b""
        self._open = [wire_in, self._to, self._from, wire_out]
        self.codes: list[int] = []
        self._thread = threading.Thread(target=self._run, args=(wire_out,), daemon=True)
        self._thread.start()

    def _run(self, wire_out: int) -> None:
        self.codes.append(self.transport.run())
        self._close(wire_out)

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.remove(descriptor)
            os.close(descriptor)

    def send(self, *messages: Any) -> None:
        """In one write: the reader sees all of it before the lane can have served any."""
        os.write(self._to, b"".join(msgspec.json.encode(message) + b"\n" for message in messages))

    def send_much(self, data: bytes) -> threading.Event:
        """Writes from a thread; the event says when all of it was taken."""
        taken = threading.Event()

        def write() -> None:
            view = memoryview(data)
            while view:
                view = view[os.write(self._to, view) :]
            taken.set()

        threading.Thread(target=write, daemon=True).start()
        return taken

    def line(self) -> dict[str, Any] | None:
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._from], [], [], DEADLINE_S)
            assert ready, "no answer"
            chunk = os.read(self._from, 1 << 16)
            if not chunk:
                return None
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        decoded = msgspec.json.decode(line)
        assert isinstance(decoded, dict)
        return decoded

    def reply(self) -> dict[str, Any]:
        message = self.line()
        assert message is not None, "the output ended"
        return message

    def initialize(self, can: Mapping[str, Any] | None = None) -> None:
        self.send(request("initialize", "init", protocolVersion="2025-11-25", capabilities=dict(can or {})))
        assert "result" in self.reply()

    def end_input(self) -> None:
        self._close(self._to)

    def rest(self) -> list[dict[str, Any]]:
        """Everything up to the end of the output, after which the transport has left with 0."""
        messages = list(iter(self.line, None))
        self._thread.join(DEADLINE_S)
        assert self.codes == [0]
        return messages

    def close(self) -> None:
        for gate in self.tools.gates.values():
            gate.set()
        self.end_input()
        self._thread.join(DEADLINE_S)
        # A reader that still reads would read what the next test sends: numbers of closed descriptors come again.
        for thread in threading.enumerate():
            if thread.name == "handrail-reader":
                thread.join(DEADLINE_S)
        for descriptor in tuple(self._open):
            self._close(descriptor)


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.close()


def request(method: str, request_id: int | str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def call(name: str, request_id: int | str, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", request_id, name=name, arguments=arguments)


def cancel(request_id: int | str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


def outcomes(messages: list[dict[str, Any]]) -> dict[Any, Any]:
    """By id: the result, or the number of the error."""
    return {message["id"]: message.get("error", {}).get("code", message.get("result")) for message in messages}


# -- cancelling -------------------------------------------------------------------------------------------------------


def test_a_call_cancelled_while_it_is_queued_is_never_begun(wire: Wire) -> None:
    wire.initialize()
    wire.send(call("hold", "first"))
    wire.tools.have_arrived()
    wire.send(call("echo", "queued"), cancel("queued"), call("wait", "beside"), cancel("beside"))
    wire.send_much(b" " * 200_000 + b"\n").wait(DEADLINE_S)  # taken only once all before it was read
    wire.tools.gate("hold").set()
    wire.send(call("echo", "last"))
    assert [wire.reply()["id"] for _ in range(2)] == ["first", "last"]
    assert len(wire.tools.seen) == 2


def test_of_two_calls_under_one_id_the_later_can_be_cancelled_when_the_earlier_has_ended(wire: Wire) -> None:
    wire.initialize()
    for gate in ("a", "b"):
        wire.send(call("wait", "same", gate=gate))
    wire.tools.have_arrived(2)
    wire.tools.gate("a").set()
    assert wire.reply()["result"]["structuredContent"] == {"through": "a"}
    wire.send(cancel("same"), call("echo", "after"))
    assert wire.reply()["id"] == "after"
    wire.end_input()
    assert wire.rest() == []


def test_a_listener_that_is_cancelled_hears_no_more_and_gets_no_farewell(wire: Wire) -> None:
    meta = {META_VERSION: NEWEST, META_CAPABILITIES: {}}
    for request_id in ("a", "b"):
        wire.send(request("subscriptions/listen", request_id, notifications={"toolsListChanged": True}, _meta=meta))
        assert wire.reply()["method"] == "notifications/subscriptions/acknowledged"
    wire.send(cancel("a"), request("ping", 1))
    assert wire.reply()["id"] == 1
    wire.server.subscribers.list_changed("toolsListChanged")
    assert wire.reply()["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "b"
    wire.end_input()
    assert [message["id"] for message in wire.rest()] == ["b"]


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_no_more_is_read_while_too_much_is_queued(wire: Wire) -> None:
    wire.initialize()
    wire.send(call("hold", "first"))
    wire.tools.have_arrived()
    line = msgspec.json.encode(call("echo", 1, text="x" * 8000)) + b"\n"
    count = 8 * QUEUED_BYTES // len(line)  # far more than the queue and the pipe hold together
    taken = wire.send_much(line * count)
    assert not taken.wait(0.5)
    wire.tools.gate("hold").set()
    assert [wire.reply()["id"] for _ in range(count + 1)] == ["first", *[1] * count]
    assert taken.wait(DEADLINE_S)


def test_an_answered_call_is_forgotten(wire: Wire) -> None:
    wire.initialize()
    wire.send(*[call("echo", number) for number in range(50)], request("ping", 50))
    wire.tools.gate("wait").set()
    wire.send(call("wait", 51))
    assert {wire.reply()["id"] for _ in range(52)} == set(range(52))
    wire.send(request("ping", "last"))
    assert wire.reply()["id"] == "last"
    gc.collect()
    assert len(wire.tools.seen) == 51
    assert [kept for kept in wire.tools.seen[:50] if kept() is not None] == []


# -- the end ----------------------------------------------------------------------------------------------------------

CANCELLED = -32800


@pytest.mark.parametrize("ending", ["end of input", "shutdown"])
def test_calls_that_wait_are_answered_before_the_end(wire: Wire, ending: str) -> None:
    wire.initialize()
    wire.send(call("wait", "hears"), call("stubborn", "hears nothing"))
    wire.tools.have_arrived(2)
    if ending == "shutdown":
        wire.send(request("shutdown", "down"))
    else:
        wire.end_input()
    left = outcomes(wire.rest())
    assert left.pop("down", None) is None
    assert left == {"hears": CANCELLED, "hears nothing": CANCELLED}
    assert wire.tools.told == 1


def test_at_the_end_of_input_a_call_that_waits_may_still_finish(wire: Wire) -> None:
    wire.initialize()
    wire.send(call("wait", "w"))
    wire.tools.have_arrived()
    wire.end_input()
    wire.tools.gate("wait").set()
    assert [message["result"]["structuredContent"] for message in wire.rest()] == [{"through": "wait"}]


def test_a_late_answer_is_not_a_second_one(wire: Wire) -> None:
    wire.initialize()
    wire.send(call("stubborn", "s"))
    wire.tools.have_arrived()
    wire.send(request("shutdown", "down"))
    assert wire.reply()["id"] == "down"
    assert wire.reply()["error"]["code"] == CANCELLED
    wire.tools.gate("stubborn").set()
    assert wire.rest() == []


def test_a_call_the_client_has_cancelled_stays_unanswered_at_the_end(wire: Wire) -> None:
    wire.initialize()
    wire.send(call("stubborn", "s"))
    wire.tools.have_arrived()
    wire.send(cancel("s"), request("shutdown", "down"))
    assert list(outcomes(wire.rest())) == ["down"]


def test_what_comes_behind_shutdown_is_turned_away(wire: Wire) -> None:
    wire.initialize()
    wire.send(call("hold", "first"))
    wire.tools.have_arrived()
    wire.send(request("shutdown", "down"), call("echo", "late"), call("echo", "unwanted"), cancel("unwanted"))
    wire.send_much(b" " * 200_000 + b"\n").wait(DEADLINE_S)
    wire.tools.gate("hold").set()
    messages = wire.rest()
    assert [message["id"] for message in messages] == ["first", "down", "late"]
    assert messages[-1]["error"]["code"] == CANCELLED
    assert messages[-1]["error"]["data"]["details"] == "the server is leaving"


def test_who_is_asked_holds_up_nobody(wire: Wire) -> None:
    wire.initialize({"elicitation": {}})
    wire.send(call("ask", "a"))
    question = wire.reply()
    wire.send(call("echo", "e"))
    assert wire.reply()["id"] == "e"
    wire.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert wire.reply()["result"]["structuredContent"] == {"action": "decline"}


def test_a_call_whose_question_nobody_can_answer_any_more_is_answered(wire: Wire) -> None:
    wire.initialize({"elicitation": {}})
    wire.send(call("ask", "a"))
    assert wire.reply()["method"] == "elicitation/create"
    wire.end_input()
    assert outcomes(wire.rest()) == {"a": CANCELLED}
