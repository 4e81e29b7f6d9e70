"""What is said to every contestant, and proof that all serve one equal tool. Knows no transport and no contestant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

TASK: dict[str, Any] = msgspec.json.decode((Path(__file__).parent / "task.json").read_bytes())
HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
CLIENT = {"name": "bench", "version": "1"}
INITIALIZE = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT}
INITIALIZED = "notifications/initialized"
TIMED_CALL = {"name": TASK["tool"]["name"], "arguments": TASK["accepted"]}

Ask = Callable[[str, dict[str, Any]], bytes]
"""A method and its parameters in, the reply's JSON out."""


def request(request_id: int, method: str, params: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification(method: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method})


# -- what the clock runs on ------------------------------------------------------------------------------------------


class _Outcome(msgspec.Struct, rename="camel"):
    is_error: bool = False


class Head(msgspec.Struct):
    """As much of a message as tells whose reply it is and whether it is one that was asked for."""

    id: int | None = None
    result: _Outcome | None = None

    @property
    def is_success(self) -> bool:
        return self.result is not None and not self.result.is_error


head_of = msgspec.json.Decoder(Head).decode


# -- equality --------------------------------------------------------------------------------------------------------


class NotEqual(Exception):  # noqa: N818 - a fact about a contestant
    """A contestant does not serve the agreed tool: whatever it would measure means nothing."""


def prove_equal(ask: Ask) -> None:
    """The same tool by name and arguments, the same result for the call that is timed, the same issues for another."""
    tools = _result(ask("tools/list", {}))["tools"]
    tool = next((tool for tool in tools if tool["name"] == TASK["tool"]["name"]), None)
    if tool is None:
        raise NotEqual(f"no tool {TASK['tool']['name']}")
    _agree("inputs", _inputs(tool["inputSchema"]), _inputs(TASK["tool"]["inputSchema"]))
    accepted = _result(ask("tools/call", TIMED_CALL))
    verdict = {"valid": True, "issues": [], "suggestions": []}
    _agree("accepted", accepted["structuredContent"], verdict)
    _agree("accepted, as text", msgspec.json.decode(accepted["content"][0]["text"]), verdict)
    rejected = _result(ask("tools/call", {**TIMED_CALL, "arguments": TASK["rejected"]}))["structuredContent"]
    rules = TASK["rules"][TASK["rejected"]["workflowId"]][TASK["rejected"]["stepId"]]
    _agree("rejected", (rejected["valid"], rejected["issues"]), (False, [rule["message"] for rule in rules[1:]]))


def _result(reply: bytes) -> dict[str, Any]:
    message = msgspec.json.decode(reply)
    if "result" not in message:
        raise NotEqual(f"refused: {message}")
    result: dict[str, Any] = message["result"]
    return result


def _agree(what: str, found: object, agreed: object) -> None:
    if found != agreed:
        raise NotEqual(f"{what}: {found} is not {agreed}")


def _inputs(schema: dict[str, Any]) -> dict[str, Any]:
    """What a schema asks of its arguments, without what frameworks add (titles, defaults, null for optional)."""
    kept = ("type", "pattern", "minLength", "maxLength", "description")
    required = set(schema.get("required", ()))
    inputs = {}
    for name, declared in schema["properties"].items():
        either = [option for option in declared.get("anyOf", ()) if option != {"type": "null"}]
        flat = {**declared, **(either[0] if either else {})}
        inputs[name] = ({key: flat[key] for key in kept if key in flat}, name in required)
    return inputs
