"""Who is measured, and proof that they serve one equal tool. Starts nothing but what it is asked to prove."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bench.protocol.environments import PEERS, node_folder, python_of
from bench.protocol.processes import ServerProcess

TASK: dict[str, Any] = msgspec.json.decode((Path(__file__).parent / "task.json").read_bytes())
BASELINE = "mcp lowlevel"
HANDRAIL = "handrail"


class Contestant(msgspec.Struct, frozen=True):
    """A name, what it is, and how its command is found (which may install its packages)."""

    name: str
    what: str
    command: Callable[[], list[str]]


def _python_peer(environment: str, script: str) -> Callable[[], list[str]]:
    return lambda: [str(python_of(environment)), str(PEERS / script)]


def _node_peer(script: str) -> Callable[[], list[str]]:
    return lambda: ["node", str(node_folder() / script)]


CONTESTANTS = (
    Contestant(
        HANDRAIL,
        "`handrail serve --profile workflowlookup`",
        lambda: [str(Path(sys.executable).parent / "handrail"), "serve", "--profile", "workflowlookup"],
    ),
    Contestant(BASELINE, "official Python SDK, low-level server", _python_peer("mcp", "sdk_lowlevel.py")),
    Contestant("mcp MCPServer", "official Python SDK, high-level server", _python_peer("mcp", "sdk_mcpserver.py")),
    Contestant("fastmcp", "fastmcp", _python_peer("fastmcp", "fastmcp_server.py")),
    Contestant("node sdk 1.x", "official TypeScript SDK, 1.x", _node_peer("node_sdk_1.mjs")),
    Contestant("node server 2.x", "official TypeScript SDK, 2.x", _node_peer("node_server_2.mjs")),
    Contestant("floor", "a bare msgspec loop", lambda: [sys.executable, str(PEERS / "floor.py")]),
)


# -- the conversation ------------------------------------------------------------------------------------------------

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


def request(request_id: int, method: str, params: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + b"\n"


def call(request_id: int, arguments: dict[str, Any]) -> bytes:
    return request(request_id, "tools/call", {"name": TASK["tool"]["name"], "arguments": arguments})


# -- equality --------------------------------------------------------------------------------------------------------


class NotEqual(Exception):  # noqa: N818 - a fact about a contestant
    """A contestant does not serve the agreed tool: whatever it would measure means nothing."""


def prove_equal(server: ServerProcess) -> None:
    """The same tool by name and arguments, the same result for the call that is timed, the same issues for another."""
    tools = _result(server.ask(1, request(1, "tools/list", {})))["tools"]
    tool = next((tool for tool in tools if tool["name"] == TASK["tool"]["name"]), None)
    if tool is None:
        raise NotEqual(f"no tool {TASK['tool']['name']}")
    _agree("inputs", _inputs(tool["inputSchema"]), _inputs(TASK["tool"]["inputSchema"]))
    accepted = _result(server.ask(2, call(2, TASK["accepted"])))
    verdict = {"valid": True, "issues": [], "suggestions": []}
    _agree("accepted", accepted["structuredContent"], verdict)
    _agree("accepted, as text", msgspec.json.decode(accepted["content"][0]["text"]), verdict)
    rejected = _result(server.ask(3, call(3, TASK["rejected"])))["structuredContent"]
    rules = TASK["rules"][TASK["rejected"]["workflowId"]][TASK["rejected"]["stepId"]]
    _agree("rejected", (rejected["valid"], rejected["issues"]), (False, [rule["message"] for rule in rules[1:]]))


def _result(reply: bytes) -> dict[str, Any]:
    message = msgspec.json.decode(reply)
    if "result" not in message:
        raise NotEqual(f"refused: {message}")
    return message["result"]


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
