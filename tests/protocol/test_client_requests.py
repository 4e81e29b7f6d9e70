"""Asking the client: sealed state between rounds, answers that survive, live questions in threads, both eras."""

from __future__ import annotations

import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.client_requests import (
    MISSING_CAPABILITY,
    ClientRequest,
    RequestCancelled,
    StateSeal,
    check_capabilities,
    elicitation,
)
from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import TaskUse
from handrail.protocol.replies import answer
from handrail.protocol.revisions import META_CAPABILITIES, META_VERSION, NEWEST
from handrail.protocol.server import Server
from handrail.protocol.wire import INVALID_PARAMS, INVALID_REQUEST, Request, Response, RpcError
from tests.protocol.toy import Client, toy_offer

DEADLINE_S = 5.0
FORM = {"type": "object", "properties": {"v": {"type": "string"}}}
EVERYTHING: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
ASKED = {
    "form": elicitation("What?", FORM),
    "page": ClientRequest("elicitation/create", {"mode": "url", "message": "Sign in", "url": "https://example.com"}),
    "model": ClientRequest("sampling/createMessage", {"messages": [], "maxTokens": 5}),
    "roots": ClientRequest("roots/list", {}),
    "strange": ClientRequest("toy/strange", {}),
}


class AskingTools:
    """`both` asks two things at once, `rounds` one after the other, the others what their name says."""

    def published(self) -> list[dict[str, Any]]:
        return [{"name": name, "inputSchema": {"type": "object"}} for name in ("both", "rounds", *ASKED)]

    def waits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        return True

    def task_use(self, name: str) -> TaskUse:
        return TaskUse.NEVER

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if name == "both":
            answers = exchange.ask({"a": ASKED["form"], "b": ASKED["form"]})
        elif name == "rounds":
            answers = {key: exchange.elicit(f"{key}?", FORM, key=key) for key in ("a", "b", "c")}
        else:
            answers = exchange.ask({"x": ASKED[name]})
        return {"content": [], "structuredContent": answers}


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(clock: Clock) -> Client:
    return Client(Server(toy_offer(tools=AskingTools()), now_s=clock, state_key=b"k" * 32))


def called(client: Client, name: str, *, can: Mapping[str, Any] = EVERYTHING, **params: Any) -> dict[str, Any]:
    """One stateless `tools/call` of a client that can answer what `can` says."""
    meta = {META_VERSION: NEWEST, META_CAPABILITIES: dict(can)}
    result = client.ask("tools/call", {"name": name, "arguments": {}, **params, "_meta": meta})
    assert isinstance(result, dict)
    return result


def says(value: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"v": value}}


# -- the stateless era: a result that asks, and a retry ---------------------------------------------------------------


def test_a_call_that_asks_is_answered_with_what_it_needs(client: Client) -> None:
    asked = called(client, "both")
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"] == {key: ASKED["form"].as_dict() for key in ("a", "b")}
    assert isinstance(asked["requestState"], str)


def test_answers_given_with_the_first_call_need_no_state(client: Client) -> None:
    done = called(client, "both", inputResponses={"a": says("1"), "b": says("2")})
    assert done["resultType"] == "complete"
    assert done["structuredContent"] == {"a": says("1"), "b": says("2")}


def test_answers_of_earlier_rounds_survive(client: Client) -> None:
    first = called(client, "rounds")
    assert list(first["inputRequests"]) == ["a"]
    second = called(client, "rounds", inputResponses={"a": says("1")}, requestState=first["requestState"])
    assert list(second["inputRequests"]) == ["b"]
    third = called(client, "rounds", inputResponses={"b": says("2")}, requestState=second["requestState"])
    assert list(third["inputRequests"]) == ["c"]
    done = called(client, "rounds", inputResponses={"c": says("3")}, requestState=third["requestState"])
    assert done["structuredContent"] == {"a": says("1"), "b": says("2"), "c": says("3")}


def test_an_answer_once_given_is_not_changed_by_a_later_round(client: Client) -> None:
    first = called(client, "rounds")
    second = called(client, "rounds", inputResponses={"a": says("1")}, requestState=first["requestState"])
    late = {"a": says("other"), "b": says("2"), "c": says("3")}
    done = called(client, "rounds", inputResponses=late, requestState=second["requestState"])
    assert done["structuredContent"]["a"] == says("1")


def test_half_an_answer_leaves_the_other_half_asked(client: Client) -> None:
    first = called(client, "both")
    second = called(client, "both", inputResponses={"b": says("2")}, requestState=first["requestState"])
    assert list(second["inputRequests"]) == ["a"]
    done = called(client, "both", inputResponses={"a": says("1")}, requestState=second["requestState"])
    assert done["structuredContent"] == {"a": says("1"), "b": says("2")}


@pytest.mark.parametrize("answer_given", ["yes", 5, None, [], True])
def test_an_answer_that_is_no_object_is_asked_again(client: Client, answer_given: Any) -> None:
    asked = called(client, "form", inputResponses={"x": answer_given})
    assert list(asked["inputRequests"]) == ["x"]


@pytest.mark.parametrize("responses", ["text", 5, [], [{"x": {}}], None])
def test_answers_that_are_no_object_are_none(client: Client, responses: Any) -> None:
    assert called(client, "form", inputResponses=responses)["resultType"] == "input_required"


def test_keys_nobody_asked_for_do_no_harm(client: Client) -> None:
    done = called(client, "form", inputResponses={"x": says("1"), "surprise": says("2")})
    assert done["structuredContent"] == {"x": says("1")}


def refused_state(client: Client, name: str, state: Any, **params: Any) -> str:
    with pytest.raises(RpcError) as refused:
        called(client, name, requestState=state, **params)
    assert refused.value.code == INVALID_PARAMS
    assert refused.value.data is not None
    return str(refused.value.data["details"])


def test_state_works_until_it_expires(client: Client, clock: Clock) -> None:
    state = called(client, "form")["requestState"]
    clock.now_s += 599
    assert called(client, "form", requestState=state, inputResponses={"x": says("1")})["resultType"] == "complete"
    clock.now_s += 2
    assert "expired" in refused_state(client, "form", state, inputResponses={"x": says("1")})


def test_state_belongs_to_its_request(client: Client) -> None:
    state = called(client, "form", arguments={"n": 1})["requestState"]
    assert called(client, "form", arguments={"n": 1}, requestState=state)["resultType"] == "input_required"
    assert "this request" in refused_state(client, "form", state, arguments={"n": 2})
    assert "this request" in refused_state(client, "both", state, arguments={"n": 1})


def test_state_does_not_depend_on_the_order_of_members(client: Client) -> None:
    state = called(client, "form", arguments={"a": 1, "b": {"c": 2, "d": 3}})["requestState"]
    again = called(client, "form", arguments={"b": {"d": 3, "c": 2}, "a": 1}, requestState=state)
    assert again["resultType"] == "input_required"


def test_state_of_another_server_is_refused(client: Client) -> None:
    other = Client(Server(toy_offer(tools=AskingTools())))
    assert "gave out" in refused_state(client, "form", called(other, "form")["requestState"])


@pytest.mark.parametrize(
    "state",
    [
        "",
        ".",
        "x",
        "x.y",
        "YWJj.",
        "YWJj.00",
        5,
        {},
        [],
        True,
        "=.=",
        "\u00e9.00",
        "YWJj.\u00e9",
    ],
)
def test_state_that_we_never_gave_out_is_refused(client: Client, state: Any) -> None:
    assert "gave out" in refused_state(client, "form", state)


@given(st.data())
def test_state_that_was_tampered_with_is_refused(data: st.DataObject) -> None:
    seal = StateSeal(b"k" * 32, now_s=0.0)
    sealed = seal.seal("tools/call", {"name": "x"}, {"a": {"v": 1}})
    text, _, mac = sealed.rpartition(".")
    payload = bytearray(urlsafe_b64decode(text))
    place = data.draw(st.integers(0, len(payload) - 1))
    payload[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="gave out"):
        seal.open("tools/call", {"name": "x"}, urlsafe_b64encode(bytes(payload)).decode() + "." + mac)
    assert seal.open("tools/call", {"name": "x"}, sealed) == {"a": {"v": 1}}


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
def test_state_is_bound_to_its_method(method: str) -> None:
    seal = StateSeal(b"k" * 32, now_s=0.0)
    sealed = seal.seal("tools/call", {"name": "x"}, {})
    with pytest.raises(ValueError, match="gave out"):
        seal.open(method, {"name": "x"}, sealed)


# -- nothing is asked of a client that cannot answer ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "needed"),
    [("form", {"elicitation": {"form": {}}}), ("model", {"sampling": {}}), ("roots", {"roots": {}})],
)
@pytest.mark.parametrize("can", [{}, {"elicitation": None, "sampling": None, "roots": None}, {"other": {}}])
def test_a_missing_capability_is_named_in_both_eras(
    client: Client, name: str, needed: dict[str, Any], can: dict[str, Any]
) -> None:
    with pytest.raises(RpcError) as refused:
        called(client, name, can=can)
    assert (refused.value.code, refused.value.data) == (MISSING_CAPABILITY, {"requiredCapabilities": needed})
    client.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": can})
    with pytest.raises(RpcError) as refused:
        client.ask("tools/call", {"name": name})
    assert (refused.value.code, refused.value.data) == (INVALID_REQUEST, {"requiredCapabilities": needed})
    assert client.heard == []


@pytest.mark.parametrize("name", ["form", "model", "roots"])
def test_one_capability_is_enough_for_what_it_is_for(client: Client, name: str) -> None:
    needed = {"form": "elicitation", "model": "sampling", "roots": "roots"}[name]
    assert called(client, name, can={needed: {}})["resultType"] == "input_required"


@pytest.mark.parametrize("stateless", [True, False])
@pytest.mark.parametrize(
    ("can", "modes"),
    [
        ({}, ["form"]),
        ({"form": {}}, ["form"]),
        ({"url": {}}, ["page"]),
        ({"form": {}, "url": {}}, ["form", "page"]),
        ({"form": None, "url": {}}, ["page"]),
        ({"later": {}}, ["form"]),
    ],
)
def test_a_person_is_asked_only_in_a_way_the_client_has(can: dict[str, Any], modes: list[str], stateless: bool) -> None:
    for name, mode in (("form", "form"), ("page", "url")):
        exchange = asking(can, stateless=stateless)
        request = ASKED[name]
        if name in modes:
            check_capabilities([request], exchange.client_capabilities, stateless=stateless)
        else:
            with pytest.raises(RpcError) as refused:
                exchange.ask({"x": request})
            assert refused.value.data == {"requiredCapabilities": {"elicitation": {mode: {}}}}


def asking(can: dict[str, Any], *, stateless: bool) -> Exchange:
    """A request of a client with this way of asking its person."""
    client = Client(Server(toy_offer(tools=AskingTools())))
    client.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": can}})
    meta = {META_VERSION: NEWEST, META_CAPABILITIES: {"elicitation": can}} if stateless else {}
    return client.server.open(client.connection, Request(1, "tools/call", {"_meta": meta}), client.heard.append)


def test_a_call_that_asks_in_two_ways_needs_both() -> None:
    with pytest.raises(RpcError) as refused:
        asking({"form": {}}, stateless=True).ask({"a": ASKED["form"], "b": ASKED["page"]})
    assert refused.value.data == {"requiredCapabilities": {"elicitation": {"form": {}, "url": {}}}}


def test_a_request_without_a_capability_of_its_own_is_always_put(client: Client) -> None:
    assert called(client, "strange", can={})["resultType"] == "input_required"


# -- the handshake era: live questions, answered while the handler's thread waits ------------------------------------


class Live:
    """A handshake client whose calls run in threads, and which hears questions as they are put."""

    def __init__(self) -> None:
        self.server = Server(toy_offer(tools=AskingTools()))
        self.asked: list[dict[str, Any]] = []
        self._heard = threading.Semaphore(0)
        self.client = Client(self.server)
        self.client.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": EVERYTHING})

    def hear(self, message: dict[str, Any]) -> None:
        self.asked.append(message)
        self._heard.release()

    def next_question(self) -> dict[str, Any]:
        assert self._heard.acquire(timeout=DEADLINE_S)
        return self.asked[-1]

    def settle(self, question: Mapping[str, Any], result: Any = None, error: dict[str, Any] | None = None) -> None:
        self.client.connection.settle(Response(question["id"], result, error))

    def call(self, name: str, hear: Callable[[dict[str, Any]], None] | None = None) -> Running:
        request = Request("call", "tools/call", {"name": name})
        return Running(self.server, self.server.open(self.client.connection, request, hear or self.hear))


class Running:
    """A call on its own thread and what came of it."""

    def __init__(self, server: Server, exchange: Exchange) -> None:
        self.exchange = exchange
        self.outcome: list[Any] = []
        self._thread = threading.Thread(target=self._work, args=(server,), daemon=True)
        self._thread.start()

    def _work(self, server: Server) -> None:
        try:
            self.outcome.append(server.serve(self.exchange))
        except (RpcError, RequestCancelled) as ended:
            self.outcome.append(ended)

    def ended(self) -> Any:
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the call still waits"
        return self.outcome[0]


@pytest.fixture
def live() -> Live:
    return Live()


def test_a_live_question_is_a_request_and_its_answer_comes_back(live: Live) -> None:
    running = live.call("form")
    question = live.next_question()
    assert question["method"] == "elicitation/create"
    assert question["params"] == dict(ASKED["form"].params)
    live.settle(question, says("1"))
    assert running.ended()["structuredContent"] == {"x": says("1")}


def test_live_questions_have_ids_of_their_own(live: Live) -> None:
    running = live.call("rounds")
    for value in ("1", "2", "3"):
        live.settle(live.next_question(), says(value))
    assert [answer["content"]["v"] for answer in running.ended()["structuredContent"].values()] == ["1", "2", "3"]
    assert len({question["id"] for question in live.asked}) == 3


def test_answers_reach_the_call_that_asked(live: Live) -> None:
    first = live.call("form")
    question_of_first = live.next_question()
    second = live.call("form")
    question_of_second = live.next_question()
    live.settle(question_of_second, says("second"))
    live.settle(question_of_first, says("first"))
    assert first.ended()["structuredContent"] == {"x": says("first")}
    assert second.ended()["structuredContent"] == {"x": says("second")}


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ({"code": -32601, "message": "no such thing"}, -32601, "no such thing"),
        ({"code": "odd"}, INVALID_REQUEST, "the client refused"),
        ({}, INVALID_REQUEST, "the client refused"),
    ],
)
def test_a_clients_error_is_the_calls_error(live: Live, error: dict[str, Any], code: int, message: str) -> None:
    running = live.call("form")
    live.settle(live.next_question(), error=error)
    ended = running.ended()
    assert isinstance(ended, RpcError)
    assert (ended.code, ended.message) == (code, message)


def test_an_answer_to_a_question_nobody_put_is_ignored(live: Live) -> None:
    running = live.call("form")
    question = live.next_question()
    for stranger in ("handrail-99", None, 5):
        live.client.connection.settle(Response(stranger, says("stranger"), None))
    live.settle(question, says("right"))
    live.settle(question, says("again"))
    assert running.ended()["structuredContent"] == {"x": says("right")}


def test_a_cancelled_call_stops_waiting_and_gets_no_reply(live: Live) -> None:
    running = live.call("form")
    live.next_question()
    running.exchange.cancel()
    assert isinstance(running.ended(), RequestCancelled)
    assert answer(live.server, running.exchange).data is None


def test_a_closed_connection_ends_the_wait(live: Live) -> None:
    running = live.call("form")
    live.next_question()
    live.client.connection.close()
    assert isinstance(running.ended(), RequestCancelled)


def test_a_call_cancelled_between_two_questions_asks_no_more(live: Live) -> None:
    running = live.call("rounds")
    question = live.next_question()
    running.exchange.cancelled = True
    live.settle(question, says("1"))
    assert isinstance(running.ended(), RequestCancelled)
    assert len(live.asked) == 1


def test_a_cancellation_that_comes_as_the_question_goes_out_is_heard(live: Live) -> None:
    running: list[Running] = []
    known = threading.Event()

    def cancel_at_once(_: dict[str, Any]) -> None:
        assert known.wait(DEADLINE_S)
        running[0].exchange.cancel()

    running.append(live.call("form", cancel_at_once))
    known.set()
    assert isinstance(running[0].ended(), RequestCancelled)


def test_a_question_on_a_connection_that_is_already_closed_is_not_waited_for(live: Live) -> None:
    """On stdio the end of input closes the connection while the lane may still start a call that asks."""
    live.client.connection.close()
    assert isinstance(live.call("form").ended(), RequestCancelled)
