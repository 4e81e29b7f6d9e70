"""What the runner leaves out: task notifications, the oldest revision, a change right after a subscription.

A plain HTTP client of our own, so that nothing of `handrail.protocol` stands on both sides.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec

from conformance.hosting import hosted_fixture
from conformance.outcomes import Outcome
from conformance.processes import HOST

STATELESS, NEWEST_HANDSHAKE, OLDEST = "2026-07-28", "2025-11-25", "2024-11-05"
META = "io.modelcontextprotocol/"
CAPABILITIES: dict[str, Any] = {"elicitation": {}, "extensions": {META + "tasks": {}}}
DEADLINE_S = 10.0
SUBSCRIPTIONS = 20
"""Enough for a change that slips between a subscription and its acknowledgement to show."""

Message = dict[str, Any]

_NAMED_BY = {"tools/call": "name", "tasks/get": "taskId", "tasks/update": "taskId"}


class Unexpected(Exception):  # noqa: N818 - a fact about the server
    """What came instead of what should have come."""


def gaps(work: Path) -> Outcome:
    outcome = Outcome(suite="gaps")
    with hosted_fixture(outcome, work) as server:
        for check in (_task_notifications, _oldest_revision, _change_after_acknowledgement):
            outcome.check(check.__name__.strip("_").replace("_", " "), _problem(check, server.port))
    return outcome


def _problem(check: Callable[[int], None], port: int) -> str | None:
    try:
        check(port)
    except (Unexpected, OSError, http.client.HTTPException, msgspec.DecodeError, KeyError) as problem:
        return f"{type(problem).__name__}: {problem}"
    return None


# -- the checks ------------------------------------------------------------------------------------------------------


def _task_notifications(port: int) -> None:
    """A client that names a task in `subscriptions/listen` hears of its every state, the last one with its result."""
    called = _call(port, "tools/call", {"name": "confirm_delete", "arguments": {"filename": "a.txt"}})
    task_id = called["taskId"]
    messages = _listen(port, {"taskIds": [task_id]})
    _expect("granted", next(messages)["params"]["notifications"], {"taskIds": [task_id]})
    task = _call(port, "tasks/get", {"taskId": task_id})
    accepted = {key: {"action": "accept", "content": {"confirm": True}} for key in task["inputRequests"]}
    _call(port, "tasks/update", {"taskId": task_id, "inputResponses": accepted})
    states = []
    for message in messages:
        _expect("method", message["method"], "notifications/tasks")
        _expect("task", message["params"]["taskId"], task_id)
        _expect("subscription", message["params"]["_meta"][META + "subscriptionId"], 1)
        states.append(message["params"]["status"])
        if states[-1] == "completed":
            _expect("result", message["params"]["result"]["content"][0]["text"], "a.txt: would be deleted.")
            break
    _expect("states", states, ["working", "completed"])


def _oldest_revision(port: int) -> None:
    """A handshake at 2024-11-05 is honoured, also when later requests carry a newer handshake version in the header."""
    params = {"protocolVersion": OLDEST, "capabilities": {}, "clientInfo": {"name": "gaps", "version": "1"}}
    reply = _post(port, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, {})
    _expect("version", _body(reply)["result"]["protocolVersion"], OLDEST)
    session = {"Mcp-Session-Id": reply.headers["Mcp-Session-Id"], "MCP-Protocol-Version": NEWEST_HANDSHAKE}
    _post(port, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session).read()
    greet = {"name": "greet", "arguments": {"name": "Ada"}}
    reply = _post(port, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": greet}, session)
    _expect("result", _body(reply)["result"], {"content": [{"type": "text", "text": "Hello, Ada!"}]})


def _change_after_acknowledgement(port: int) -> None:
    """Once a subscription is acknowledged, no change is missed."""
    for _ in range(SUBSCRIPTIONS):
        messages = _listen(port, {"toolsListChanged": True})
        _expect("first", next(messages)["method"], "notifications/subscriptions/acknowledged")
        _call(port, "tools/call", {"name": "test_trigger_tool_change", "arguments": {}})
        _expect("second", next(messages)["method"], "notifications/tools/list_changed")
        messages.close()


# -- the client ------------------------------------------------------------------------------------------------------


def _call(port: int, method: str, params: Message) -> Message:
    """The result of one stateless request."""
    body = _body(_stateless(port, method, params))
    if "result" not in body:
        raise Unexpected(f"{method}: {body}")
    result: Message = body["result"]
    return result


def _listen(port: int, notifications: Message) -> Generator[Message, None, None]:
    """What comes on a listening stream. Closing it hangs up."""
    reply = _stateless(port, "subscriptions/listen", {"notifications": notifications})
    try:
        while line := reply.readline():
            if line.startswith(b"data: {"):
                yield msgspec.json.decode(line.removeprefix(b"data: "))
    finally:
        reply.close()
    raise Unexpected("the listening stream ended")


def _stateless(port: int, method: str, params: Message) -> http.client.HTTPResponse:
    meta = {META + "protocolVersion": STATELESS, META + "clientCapabilities": CAPABILITIES}
    headers = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
    if method in _NAMED_BY:
        headers["Mcp-Name"] = params[_NAMED_BY[method]]
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return _post(port, message, headers)


def _post(port: int, message: Message, headers: dict[str, str]) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(HOST, port, timeout=DEADLINE_S)
    fixed = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Connection": "close"}
    connection.request("POST", "/mcp", msgspec.json.encode(message), {**fixed, **headers})
    return connection.getresponse()


def _body(reply: http.client.HTTPResponse) -> Message:
    with reply:
        return msgspec.json.decode(reply.read(), type=Message)


def _expect(what: str, seen: object, wanted: object) -> None:
    if seen != wanted:
        raise Unexpected(f"{what}: {seen}, not {wanted}")
