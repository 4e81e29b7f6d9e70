"""A question with an end: taken back when its time is over, when its call is cancelled, when nobody can answer it; and
what a stateless handler knows of earlier rounds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from handrail.protocol.client_requests import Answers, InputRequired, RequestCancelled, elicitation
from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import TaskUse
from handrail.protocol.revisions import META_CAPABILITIES, META_VERSION, NEWEST
from handrail.protocol.server import Server
from handrail.protocol.wire import Request, Response, RpcError
from tests.protocol.toy import Client, toy_offer

DEADLINE_S = 5.0
FORM = {"type": "object", "properties": {"v": {"type": "string"}}}
YES = {"action": "accept", "content": {"v": "yes"}}
CAN: dict[str, Any] = {"elicitation": {}}


class Tools:
    """`ask` asks for as long as `wait_s` says, and answers with what came of it; what it noted before comes along."""

    def __init__(self) -> None:
        self.wait_s: Callable[[], float] = lambda: DEADLINE_S

    def published(self) -> list[dict[str, Any]]:
        return [{"name": name, "inputSchema": {"type": "object"}} for name in ("ask", "echo")]

    def waits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        return False

    def asks(self, name: str) -> bool:
        return name == "ask"

    def task_use(self, name: str) -> TaskUse:
        return TaskUse.NEVER

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        noted = exchange.answers.noted("round")
        exchange.answers.note("round", (noted or 0) + 1)
        answer = exchange.elicit_while(self.wait_s, "Well?", FORM, key="q")
        return {"content": [], "structuredContent": {"answer": answer, "noted": noted}}


class Methods:
    """The same by its bare name."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def knows(self, method: str) -> bool:
        return method == "ask"

    def waits(self, method: str, params: Mapping[str, Any]) -> bool:
        return False

    def call(self, exchange: Exchange, method: str, params: Mapping[str, Any]) -> Any:
        return self._tools.call(exchange, method, params) if exchange.can_elicit else "nobody to ask"


class Live:
    """A handshake client, and the calls it has under way."""

    def __init__(self, revision: str = "2025-11-25", can: Mapping[str, Any] | None = None) -> None:
        self.tools = Tools()
        self.server = Server(toy_offer(tools=self.tools, methods=Methods(self.tools)))
        self.client = Client(self.server)
        self.client.ask("initialize", {"protocolVersion": revision, "capabilities": dict(CAN if can is None else can)})
        self.heard: list[dict[str, Any]] = []
        self.put = threading.Event()
        self.outcome: list[Any] = []

    def hear(self, message: dict[str, Any]) -> None:
        self.heard.append(message)
        self.put.set()

    def begin(self) -> Exchange:
        exchange = self.server.open(self.client.connection, Request("call", "tools/call", {"name": "ask"}), self.hear)
        self._thread = threading.Thread(target=self._work, args=(exchange,), daemon=True)
        self._thread.start()
        assert self.put.wait(DEADLINE_S)
        return exchange

    def _work(self, exchange: Exchange) -> None:
        try:
            self.outcome.append(self.server.serve(exchange)["structuredContent"]["answer"])
        except (RpcError, RequestCancelled, ZeroDivisionError) as ended:
            self.outcome.append(ended)

    def ended(self) -> Any:
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the call still waits"
        return self.outcome[0]

    def settle(self, result: Any = None, error: dict[str, Any] | None = None) -> None:
        self.client.connection.settle(Response(self.heard[0]["id"], result, error))

    def taken_back(self) -> list[Any]:
        return [note["params"]["requestId"] for note in self.heard if note["method"] == "notifications/cancelled"]


@pytest.fixture
def live() -> Live:
    return Live()


# -- the handshake era ------------------------------------------------------------------------------------------------


def test_an_answer_in_time_is_the_answer_and_nothing_is_taken_back(live: Live) -> None:
    live.begin()
    live.settle(YES)
    assert live.ended() == YES
    assert [message["method"] for message in live.heard] == ["elicitation/create"]


def test_a_question_whose_time_is_over_is_taken_back_under_its_own_id(live: Live) -> None:
    pauses = iter([0.001, 0.001, 0.0])
    live.tools.wait_s = lambda: next(pauses)
    live.begin()
    assert live.ended() is None
    assert live.taken_back() == [live.heard[0]["id"]]
    assert not live.client.connection.is_asking


def test_an_answer_that_comes_too_late_is_ignored(live: Live) -> None:
    live.tools.wait_s = lambda: 0.0
    live.begin()
    assert live.ended() is None
    live.settle(YES)
    assert live.outcome == [None]


def test_an_answer_that_comes_while_time_runs_out_counts(live: Live) -> None:
    """It is there before the question could be taken back, so it is not."""

    def answered_meanwhile() -> float:
        live.settle(YES)
        return 0.0

    live.tools.wait_s = answered_meanwhile
    live.begin()
    assert live.ended() == YES
    assert live.taken_back() == []


def test_a_cancelled_call_takes_its_question_back(live: Live) -> None:
    exchange = live.begin()
    exchange.cancel()
    assert isinstance(live.ended(), RequestCancelled)
    assert live.taken_back() == [live.heard[0]["id"]]


def test_a_call_that_fails_while_it_waits_takes_its_question_back(live: Live) -> None:
    def fails() -> float:
        raise ZeroDivisionError

    live.tools.wait_s = fails
    live.begin()
    assert isinstance(live.ended(), ZeroDivisionError)
    assert live.taken_back() == [live.heard[0]["id"]]


def test_where_the_connection_ends_there_is_no_answer_and_nobody_to_tell(live: Live) -> None:
    live.begin()
    live.client.connection.close()
    assert live.ended() is None
    assert live.taken_back() == []


def test_a_clients_error_is_raised(live: Live) -> None:
    live.begin()
    live.settle(error={"code": -1, "message": "no window"})
    ended = live.ended()
    assert isinstance(ended, RpcError)
    assert ended.message == "no window"


@pytest.mark.parametrize("result", ["yes", None, 5, []])
def test_an_answer_that_is_no_object_is_an_empty_one(live: Live, result: Any) -> None:
    live.begin()
    live.settle(result)
    assert live.ended() == {}


# -- whether anybody can be asked, and where such a call runs ---------------------------------------------------------


@pytest.mark.parametrize(
    ("revision", "can", "forms"),
    [
        ("2025-11-25", {"elicitation": {}}, True),
        ("2025-11-25", {"elicitation": {"form": {}}}, True),
        ("2025-11-25", {"elicitation": {"url": {}}}, False),
        ("2025-11-25", {"elicitation": None}, False),
        ("2025-11-25", {}, False),
        ("2025-06-18", {"elicitation": {}}, True),
        ("2025-03-26", {"elicitation": {}}, False),
        ("2024-11-05", {"elicitation": {}}, False),
    ],
)
def test_a_call_that_asks_runs_beside_the_lane_where_its_client_has_forms(
    revision: str, can: dict[str, Any], forms: bool
) -> None:
    live = Live(revision, can)
    connection = live.client.connection
    assert live.server.waits(connection, Request(1, "tools/call", {"name": "ask"})) is forms
    assert live.server.waits(connection, Request(1, "ask", {})) is forms
    assert live.server.waits(connection, Request(1, "tools/call", {"name": "echo"})) is False
    assert live.server.waits(connection, Request(1, "echo", {})) is False
    for params in ({}, {"name": 5}):
        assert live.server.waits(connection, Request(1, "tools/call", params)) is False
    exchange = live.server.open(connection, Request(1, "tools/call", {"name": "ask"}), live.hear)
    assert exchange.can_elicit is forms


def test_a_stateless_call_never_waits_for_its_person(live: Live) -> None:
    params = {"name": "ask", "_meta": {META_VERSION: NEWEST, META_CAPABILITIES: CAN}}
    assert live.server.waits(live.client.connection, Request(1, "tools/call", params)) is False


def test_tools_that_say_nothing_of_asking_wait_as_before() -> None:
    client = Client(Server(toy_offer()))
    client.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": CAN})
    assert client.server.waits(client.connection, Request(1, "tools/call", {"name": "echo"})) is False
    assert client.server.waits(client.connection, Request(1, "tools/call", {"name": "wait"})) is True


# -- the stateless era ------------------------------------------------------------------------------------------------


def called(client: Client, method: str = "tools/call", **params: Any) -> Any:
    meta = {META_VERSION: NEWEST, META_CAPABILITIES: CAN}
    return client.ask(method, {"name": "ask", "arguments": {}, **params, "_meta": meta})


def test_a_stateless_question_is_a_result_and_its_answer_comes_with_the_retry(live: Live) -> None:
    asked = called(live.client)
    assert asked["inputRequests"] == {"q": elicitation("Well?", FORM).as_dict()}
    done = called(live.client, inputResponses={"q": YES}, requestState=asked["requestState"])
    assert done["structuredContent"] == {"answer": YES, "noted": 1}


def test_what_was_noted_grows_from_round_to_round(live: Live) -> None:
    first = called(live.client)
    second = called(live.client, requestState=first["requestState"])
    done = called(live.client, inputResponses={"q": YES}, requestState=second["requestState"])
    assert done["structuredContent"]["noted"] == 2


def test_an_answer_to_what_was_never_asked_does_not_count(live: Live) -> None:
    assert called(live.client, inputResponses={"q": YES})["resultType"] == "input_required"


def test_a_client_cannot_make_up_an_earlier_round(live: Live) -> None:
    forged = {"q": YES, "rounds/": {"put": ["q"], "noted": {"round": 7}}}
    asked = called(live.client, inputResponses=forged)
    assert asked["resultType"] == "input_required"
    done = called(live.client, inputResponses=forged, requestState=asked["requestState"])
    assert done["structuredContent"] == {"answer": YES, "noted": 1}


def test_a_bare_stateless_call_has_no_way_to_ask(live: Live) -> None:
    meta = {META_VERSION: NEWEST, META_CAPABILITIES: CAN}
    assert live.client.ask("ask", {"_meta": meta}) == "nobody to ask"


def test_notes_travel_only_with_a_question() -> None:
    answers = Answers({"q": YES})
    answers.note("round", 1)
    assert answers.noted("round") is None
    assert answers.take({"q": elicitation("?", FORM)}) == {"q": YES}
    with pytest.raises(InputRequired) as asked:
        answers.take({"q": elicitation("?", FORM), "r": elicitation("?", FORM)})
    later = Answers({"r": YES}, asked.value.answers)
    assert later.noted("round") == 1
    assert later.take({"r": elicitation("?", FORM)}, unasked=False) == {"r": YES}
