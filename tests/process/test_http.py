"""The HTTP transport as a process: every exchange style in all five revisions, both eras on one address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.process.http_peer import (
    ACCEPT,
    META_CAPABILITIES,
    META_VERSION,
    STATELESS,
    Gate,
    HttpProcess,
    Peer,
    Session,
    gates,
    request_of,
    toy_http,
)

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
RESUMABLE = "2025-11-25"
ELICITS: dict[str, Any] = {"elicitation": {}}
FOLLOWS_TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}, **ELICITS}
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
WITH_PROGRESS = {"progressToken": "p"}

by_handshake = pytest.mark.parametrize("version", HANDSHAKES)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    with toy_http(tmp_path_factory.mktemp("toy")) as process:
        yield process
        assert process.process.poll() is None, f"the server died: {process.errors()}"
        traces = process.errors().split("Traceback")[1:]
        assert [trace for trace in traces if "a bug in a handler" not in trace] == []


@pytest.fixture
def peer(toy: HttpProcess) -> Iterator[Peer]:
    with Peer(toy.url) as peer:
        yield peer


@pytest.fixture
def gate() -> Iterator[Gate]:
    yield from gates()


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def says(value: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"v": value}}


# -- plain answers ----------------------------------------------------------------------------------------------------


@by_handshake
def test_a_handshake_client_is_answered_with_plain_json(peer: Peer, version: str) -> None:
    session = peer.session(version)
    assert session.initialized["serverInfo"]["name"] == "toy"
    assert session.ask("ping").json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    listed = session.ask("tools/list", "l").json()
    assert listed["id"] == "l"
    assert "echo" in [tool["name"] for tool in listed["result"]["tools"]]
    assert "resultType" not in listed["result"]
    called = session.ask("tools/call", 2, name="echo", arguments={"text": "hi"})
    assert (called.status, called.is_events) == (200, False)
    assert text(called.json()["result"]) == "hi"
    assert session.end() == 200


@by_handshake
def test_errors_of_a_session_are_answers(peer: Peer, version: str) -> None:
    session = peer.session(version)
    for number, (method, params, code) in enumerate(
        [
            ("no/such", {}, -32601),
            ("tools/call", {}, -32602),
            ("tools/call", {"name": "fail"}, -32603),
            ("resources/read", {"uri": "toy://none"}, -32002),
            ("subscriptions/listen", {}, -32601),
        ]
    ):
        response = session.ask(method, number, **params)
        assert response.status == 200
        answer = response.json()
        assert (answer["id"], answer["error"]["code"]) == (number, code)


def test_a_stateless_client_is_answered_with_plain_json(peer: Peer) -> None:
    discovered = peer.stateless("server/discover").json()["result"]
    assert discovered["supportedVersions"] == [STATELESS]
    assert discovered["capabilities"]["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    listed = peer.stateless("tools/list", "l")
    assert (listed.status, listed.is_events, "mcp-session-id" in listed.headers) == (200, False, False)
    answer = listed.json()
    assert (answer["id"], answer["result"]["resultType"]) == ("l", "complete")
    assert text(peer.call("echo", text="hi")) == "hi"


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("no/such", {}, 404, -32601),
        ("ping", {}, 404, -32601),
        ("tools/call", {}, 400, -32602),
        ("tools/call", {"name": "nope"}, 400, -32602),
        ("tools/call", {"name": "fail"}, 200, -32603),
        ("tools/call", {"name": "ask"}, 400, -32021),
        ("resources/read", {"uri": "toy://none"}, 400, -32602),
        ("tasks/get", {"taskId": "x"}, 400, -32021),
    ],
)
def test_errors_of_the_stateless_era_have_a_status(
    peer: Peer, method: str, params: dict[str, Any], status: int, code: int
) -> None:
    response = peer.stateless(method, "e", **params)
    assert response.status == status
    answer = response.json()
    assert (answer["id"], answer["error"]["code"]) == ("e", code)


def test_a_version_nobody_serves_is_refused_with_those_that_are(peer: Peer) -> None:
    body = request_of("tools/list", 1, _meta={META_VERSION: "2031-01-01", META_CAPABILITIES: {}})
    headers = {"Mcp-Protocol-Version": "2031-01-01", "Mcp-Method": "tools/list"}
    response = peer.open("POST", body, **headers)
    assert response.status == 400
    error = response.json()["error"]
    assert (error["code"], error["data"]) == (-32022, {"supported": [STATELESS], "requested": "2031-01-01"})


def test_all_five_revisions_are_served_side_by_side(peer: Peer) -> None:
    sessions = [peer.session(version) for version in HANDSHAKES]
    for _ in range(3):
        for session in sessions:
            assert text(session.ask("tools/call", name="echo", arguments={"text": "x"}).json()["result"]) == "x"
        assert text(peer.call("echo", text="y")) == "y"
    assert len({session.id for session in sessions}) == 4


def test_a_client_may_probe_before_its_handshake(peer: Peer) -> None:
    assert peer.stateless("server/discover").status == 200
    opened = peer.open(
        "POST",
        request_of("initialize", protocolVersion="2025-11-25", capabilities={}),
        **{"Mcp-Protocol-Version": STATELESS},
    )
    assert opened.json()["result"]["protocolVersion"] == "2025-11-25"


@by_handshake
def test_any_handshake_version_in_the_header_is_taken(peer: Peer, version: str) -> None:
    session = peer.session("2024-11-05")
    with session.open("POST", request_of("ping"), **{"Mcp-Protocol-Version": version}) as response:
        assert response.status == 200


# -- events -----------------------------------------------------------------------------------------------------------


@by_handshake
def test_a_call_that_reports_becomes_a_stream_that_can_be_resumed(peer: Peer, version: str) -> None:
    session = peer.session(version)
    response = session.ask("tools/call", 5, name="count", _meta=WITH_PROGRESS)
    assert (response.status, response.is_events) == (200, True)
    assert response.headers["cache-control"].startswith("no-cache")
    events = response.events()
    primed = version == RESUMABLE
    assert (events[0].message is None, events[0].retry is not None) == (primed, primed)
    told = [event.message for event in events if event.message is not None]
    assert [note["params"]["progress"] for note in told[:-1]] == [1, 2, 3]
    assert (told[-1]["id"], text(told[-1]["result"])) == (5, "counted")
    ids = [event.id for event in events]
    assert None not in ids
    assert len(set(ids)) == len(ids)


def test_a_stateless_stream_carries_no_event_ids(peer: Peer) -> None:
    response = peer.stateless("tools/call", 5, name="count", meta=WITH_PROGRESS)
    assert response.is_events
    events = response.events()
    assert [event.id for event in events] == [None] * 4
    assert events[-1].message is not None
    assert events[-1].message["result"]["resultType"] == "complete"


@pytest.mark.parametrize("stateless", [True, False])
def test_a_call_that_reports_to_nobody_stays_plain(peer: Peer, stateless: bool) -> None:
    asked = peer.stateless("tools/call", name="count") if stateless else peer.session().ask("tools/call", name="count")
    assert not asked.is_events
    assert text(asked.json()["result"]) == "counted"


def test_several_streams_of_one_session_run_side_by_side(peer: Peer) -> None:
    session = peer.session()
    doors = [Gate() for _ in range(5)]
    streams = [
        session.ask("tools/call", number, name="gated", arguments={"gate": door.port}, _meta={"progressToken": number})
        for number, door in enumerate(doors)
    ]
    for number in reversed(range(5)):
        doors[number].open()
        messages = [event.message for event in streams[number].events() if event.message]
        assert messages[-1]["id"] == number
        assert {note["params"]["progressToken"] for note in messages[:-1]} == {number}
        doors[number].close()


# -- resuming ---------------------------------------------------------------------------------------------------------


def steps(messages: list[dict[str, Any]]) -> list[Any]:
    return [message["params"]["progress"] if "params" in message else text(message["result"]) for message in messages]


def gated(session: Session, gate: Gate, **arguments: Any) -> Any:
    return session.ask("tools/call", "g", name="gated", arguments={"gate": gate.port, **arguments}, _meta=WITH_PROGRESS)


@by_handshake
@pytest.mark.parametrize("back_first", [True, False])
def test_a_client_that_drops_mid_stream_comes_back_for_the_rest(
    peer: Peer, gate: Gate, version: str, back_first: bool
) -> None:
    """Whether it comes back before the call goes on, or only after it has ended."""
    session = peer.session(version)
    stream = gated(session, gate)
    seen = stream.event()
    if seen.message is None:  # the newest handshake revision opens with an empty event
        seen = stream.event()
    assert seen.message["params"]["progress"] == 1
    stream.close()
    if back_first:
        resumed = session.standing(seen.id)
        assert gate.open() == "wanted"
    else:
        assert gate.open() == "wanted"
        resumed = session.standing(seen.id)
    assert (resumed.status, resumed.is_events) == (200, True)
    assert steps([event.message for event in resumed.events() if event.message]) == [2, 3, 4, "through"]


def test_a_stream_that_the_server_closes_is_resumed_from_its_first_event(peer: Peer, gate: Gate) -> None:
    session = peer.session()
    events = gated(session, gate, leave=True).events()
    assert events[0].message is None
    assert events[0].retry == 500
    assert events[0].id is not None
    resumed = session.standing(events[0].id)
    assert gate.open() == "wanted"
    assert steps([event.message for event in resumed.events() if event.message]) == [1, 2, 3, 4, "through"]


def test_a_finished_stream_can_be_read_again(peer: Peer) -> None:
    session = peer.session()
    events = session.ask("tools/call", name="count", _meta=WITH_PROGRESS).events()
    assert [event.id for event in session.standing(events[1].id).events()] == [event.id for event in events[2:]]
    assert session.standing(events[-1].id).events() == []


def test_a_place_that_is_not_ours_is_not_found(peer: Peer) -> None:
    session, other = peer.session(), peer.session()
    for _ in range(3):
        events = other.ask("tools/call", name="count", _meta=WITH_PROGRESS).events()
    for place in ("nonsense", "99-1", "", "1", "1-x", str(events[0].id)):
        assert session.open("GET", **{"Last-Event-ID": place}).status == 404


# -- the standing channel, subscriptions, listening -------------------------------------------------------------------


@by_handshake
def test_a_session_hears_on_its_standing_channel_what_it_subscribed_to(peer: Peer, version: str) -> None:
    session = peer.session(version)
    assert session.ask("resources/subscribe", uri="toy://mine").json()["result"] == {}
    with session.standing() as standing:
        assert (standing.status, standing.is_events) == (200, True)
        for uri in ("toy://other", "toy://mine"):
            peer.call("touch", uri=uri)
        assert standing.message() == {
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {"uri": "toy://mine"},
        }
        peer.call("change")
        assert standing.message()["method"] == "notifications/tools/list_changed"


def test_what_was_said_while_nobody_listened_is_heard_later(peer: Peer) -> None:
    session = peer.session()
    peer.call("change")
    with session.standing() as standing:
        assert standing.message()["method"] == "notifications/tools/list_changed"


def test_the_standing_channel_can_be_resumed(peer: Peer) -> None:
    session = peer.session()
    with session.standing() as standing:
        peer.call("change")
        heard = standing.event()
    assert heard is not None
    session.ask("resources/subscribe", uri="toy://resumed").close()
    peer.call("touch", uri="toy://resumed")
    with session.standing(heard.id) as again:
        message = again.message()
        while message["method"] == "notifications/tools/list_changed":  # another test's change
            message = again.message()
        assert message["params"] == {"uri": "toy://resumed"}


def test_a_stateless_listener_hears_what_it_named_and_nothing_else(peer: Peer) -> None:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["toy://named"], "promptsListChanged": True}
    with peer.stateless("subscriptions/listen", "L", notifications=wanted) as stream:
        acknowledged = stream.message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["toy://named"],
        }
        for uri in ("toy://other", "toy://named"):
            peer.call("touch", uri=uri)
        note = stream.message()
        assert note["params"] == {"uri": "toy://named", "_meta": {META_SUBSCRIPTION: "L"}}
        peer.call("change")
        assert stream.message()["method"] == "notifications/tools/list_changed"


# -- asking -----------------------------------------------------------------------------------------------------------


@by_handshake
def test_a_session_is_asked_live_and_answers_by_post(peer: Peer, version: str) -> None:
    session = peer.session(version, can=ELICITS)
    stream = session.ask("tools/call", "a", name="ask")
    for value in ("one", "two"):
        question = stream.message()
        assert question["method"] == "elicitation/create"
        assert session.send({"jsonrpc": "2.0", "id": question["id"], "result": says(value)}) == 202
    reply = stream.message()
    assert (reply["id"], text(reply["result"])) == ("a", "one two")


def test_a_client_that_answers_with_an_error_ends_the_call(peer: Peer) -> None:
    session = peer.session(can=ELICITS)
    stream = session.ask("tools/call", "a", name="ask")
    question = stream.message()
    session.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "the person left"}})
    assert stream.message()["error"] == {"code": -1, "message": "the person left"}


def test_another_session_cannot_answer_for_a_client(peer: Peer) -> None:
    session, stranger = peer.session(can=ELICITS), peer.session(can=ELICITS)
    stream = session.ask("tools/call", "a", name="ask")
    question = stream.message()
    assert stranger.send({"jsonrpc": "2.0", "id": question["id"], "result": says("stranger")}) == 202
    session.send({"jsonrpc": "2.0", "id": question["id"], "result": says("mine")})
    session.send({"jsonrpc": "2.0", "id": stream.message()["id"], "result": says("too")})
    assert text(stream.message()["result"]) == "mine too"


def test_a_stateless_call_asks_in_its_result_and_is_sent_again(peer: Peer) -> None:
    params: dict[str, Any] = {}
    for key, value in (("first", "one"), ("second", "two")):
        asked = peer.stateless("tools/call", name="ask", can=ELICITS, **params).json()["result"]
        assert (asked["resultType"], list(asked["inputRequests"])) == ("input_required", [key])
        params = {"inputResponses": {key: says(value)}, "requestState": asked["requestState"]}
    done = peer.stateless("tools/call", name="ask", can=ELICITS, **params).json()["result"]
    assert (done["resultType"], text(done)) == ("complete", "one two")
    tampered = {**params, "requestState": params["requestState"][::-1]}
    refused = peer.stateless("tools/call", name="ask", can=ELICITS, **tampered)
    assert refused.status == 400
    assert refused.json()["error"]["code"] == -32602


def test_a_state_of_strange_letters_is_refused_like_any_other(peer: Peer) -> None:
    refused = peer.stateless("tools/call", 9, name="ask", can=ELICITS, requestState="YWJj.é")
    assert refused.status == 400
    assert refused.json()["id"] == 9


def test_a_task_is_followed_by_its_handle(peer: Peer) -> None:
    handle = peer.stateless("tools/call", name="job", can=FOLLOWS_TASKS).json()["result"]
    assert handle["resultType"] == "task"
    task_id = handle["taskId"]
    with peer.stateless("subscriptions/listen", notifications={"taskIds": [task_id]}, can=FOLLOWS_TASKS) as stream:
        assert stream.message()["params"]["notifications"] == {"taskIds": [task_id]}
        state = peer.stateless("tasks/get", taskId=task_id, can=FOLLOWS_TASKS).json()["result"]
        while state["status"] == "working":
            state = stream.message()["params"]
        key = next(iter(state["inputRequests"]))
        answered = peer.stateless("tasks/update", taskId=task_id, can=FOLLOWS_TASKS, inputResponses={key: says("done")})
        assert answered.status == 200
        while state["status"] != "completed":
            state = stream.message()["params"]
    assert text(state["result"]) == "done"
    final = peer.stateless("tasks/get", taskId=task_id, can=FOLLOWS_TASKS).json()["result"]
    assert final["status"] == "completed"


# -- cancelling and ending --------------------------------------------------------------------------------------------


@by_handshake
def test_a_cancelled_notification_reaches_the_running_call(peer: Peer, gate: Gate, version: str) -> None:
    session = peer.session(version)
    stream = gated(session, gate)
    gate.arrived()
    params = {"requestId": "g", "reason": "test"}
    assert session.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}) == 202
    assert gate.open() == "cancelled"
    messages = [event.message for event in stream.events() if event.message]
    assert steps(messages[:-1]) == [1, 2]
    assert messages[-1]["error"]["code"] == -32800


@pytest.mark.parametrize("request_id", ["nobody", 7, None, {}, [], True])
def test_cancelling_what_does_not_run_is_taken_and_ignored(peer: Peer, request_id: Any) -> None:
    session = peer.session()
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
    assert session.send(note) == 202
    assert session.ask("ping").status == 200


@pytest.mark.parametrize("reports", [True, False])
def test_a_stateless_client_that_hangs_up_cancels_its_call(peer: Peer, gate: Gate, reports: bool) -> None:
    """Whether its reply was a stream by then, or nothing had been said yet."""
    meta = {META_VERSION: STATELESS, META_CAPABILITIES: {}, **(WITH_PROGRESS if reports else {})}
    raw = msgspec.json.encode(request_of("tools/call", name="patient", arguments={"gate": gate.port}, _meta=meta))
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: {ACCEPT}\r\n"
        f"Mcp-Protocol-Version: {STATELESS}\r\nMcp-Method: tools/call\r\nMcp-Name: patient\r\n"
        f"Content-Length: {len(raw)}\r\n\r\n"
    )
    with peer.socket() as connection:
        connection.sendall(head.encode() + raw)
        gate.arrived()
    assert gate.open() == "cancelled"


@by_handshake
def test_a_session_that_was_ended_is_gone(peer: Peer, version: str) -> None:
    session = peer.session(version)
    with session.standing() as standing:
        assert session.end() == 200
        assert standing.events() == []
    response = session.ask("ping", 3)
    assert response.status == 404
    assert response.json()["id"] == 3
    assert session.standing().status == 404
    assert session.end() == 404


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_session_nobody_opened_is_not_found(peer: Peer, method: str) -> None:
    body = request_of("ping") if method == "POST" else None
    assert peer.status(method, body, **{"Mcp-Session-Id": "0" * 32}) == 404


@pytest.mark.parametrize(
    "method",
    [
        "POST",
        "GET",
        "DELETE",
    ],
)
def test_a_missing_session_header_is_a_bad_request(peer: Peer, method: str) -> None:
    assert peer.status(method, request_of("ping") if method == "POST" else None) == 400


def test_a_batch_belongs_to_its_revision(peer: Peer) -> None:
    batch = [request_of("ping", 1), request_of("tools/call", 2, name="echo", arguments={"text": "b"})]
    session = peer.session("2025-03-26")
    assert [answer["id"] for answer in session.open("POST", batch).json()] == [1, 2]
    assert peer.session().open("POST", batch).status == 400
