"""Hostile lines for a stdio server, made from a seed, each with what it must get: one reply with its id, one without,
none."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Expected = tuple[str, Any]
"""("id", the id), ("null", None) or ("none", None)."""

METHODS = (
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "prompts/list",
    "completion/complete",
    "server/discover",
    "initialize",
    "workflow_list",
    "workflow_get",
    "workflow_next",
    "workflow_validate",
    "mcp_info",
    "mcp_capabilities",
    "no_such_method",
    "",
    "\u0000",
    "rpc.discover",
    "__init__",
)
TOOLS: tuple[Any, ...] = (
    "workflow_list",
    "workflow_get",
    "workflow_next",
    "workflow_validate",
    "mcp_info",
    "nope",
    "",
    5,
    None,
    {},
    ["x"],
)
GUIDES: tuple[Any, ...] = (
    "ai-task-implementation",
    "bug-hunt",
    "no-such-guide",
    "../../etc/passwd",
    "ab",
    "A" * 70,
    "",
    7,
    None,
    "x\n",
)
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def junk(rng: random.Random, depth: int = 0) -> Any:
    """Any JSON value, nasty ones more often than life would have it."""
    kind = rng.randrange(12 if depth < 4 else 8)
    simple: list[Callable[[], Any]] = [
        lambda: None,
        lambda: rng.choice((True, False)),
        lambda: rng.choice((0, -1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30)),
        lambda: rng.choice((0.5, -0.0, 1e308, 1e-308)),
        lambda: rng.choice(("", "\u0000", "\u202e", "é" * 50, "💥", "null", "{}", "a" * 3000, "\\", '"', "\n\r\t")),
        lambda: rng.choice(GUIDES),
        lambda: rng.choice(METHODS),
        lambda: str(rng.random()),
    ]
    if kind < 8:
        return simple[kind]()
    if kind < 10:
        return [junk(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {str(junk(rng, 9)): junk(rng, depth + 1) for _ in range(rng.randrange(4))}


def params(rng: random.Random) -> Any:
    shapes: list[Callable[[], Any]] = [
        dict,
        lambda: {"name": rng.choice(TOOLS), "arguments": junk(rng)},
        lambda: {"name": rng.choice(TOOLS), "arguments": guide_arguments(rng)},
        lambda: guide_arguments(rng),
        lambda: {**guide_arguments(rng), "_meta": META},
        lambda: {"_meta": rng.choice((META, {**META, "progressToken": junk(rng)}, junk(rng)))},
        lambda: {"cursor": junk(rng)},
        lambda: {"uri": junk(rng)},
        lambda: {"protocolVersion": junk(rng), "capabilities": junk(rng)},
        lambda: junk(rng),
    ]
    return rng.choice(shapes)()


def guide_arguments(rng: random.Random) -> dict[str, Any]:
    arguments = {
        "id": rng.choice(GUIDES),
        "workflowId": rng.choice(GUIDES),
        "stepId": rng.choice(("understand", "nope", "", 3)),
        "currentStep": rng.choice(("understand", "nope", None)),
        "completedSteps": rng.choice(([], ["understand"], ["understand"] * 2, ["???"], "understand", None)),
        "context": rng.choice(({}, {"taskSize": junk(rng)}, junk(rng))),
        "output": rng.choice(("done", "", "x" * 5000, junk(rng))),
        "surprise": junk(rng),
    }
    return {key: arguments[key] for key in rng.sample(sorted(arguments), rng.randrange(len(arguments)))}


def lines(seed: int, count: int) -> Iterator[tuple[bytes, Expected]]:
    """`count` lines and what each must get. Ids of requests are unique, so that replies can be counted by id."""
    rng = random.Random(seed)
    for number in range(count):
        yield _line(rng, f"f{number}" if rng.random() < 0.5 else number)


def _line(rng: random.Random, request_id: str | int) -> tuple[bytes, Expected]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": rng.choice(METHODS), "params": params(rng)}
    roll = rng.randrange(20)
    if roll < 9:
        return _encoded(rng, message), ("id", request_id)
    if roll < 11:
        del message["params"]
        return _encoded(rng, message), ("id", request_id)
    if roll == 11:
        del message["id"]
        message["method"] = rng.choice(("notifications/initialized", "notifications/nothing", "tools/call"))
        return _encoded(rng, message), ("none", None)
    if roll == 12:
        return _encoded(rng, {"jsonrpc": "2.0", "id": request_id, "result": junk(rng)}), ("none", None)
    if roll == 13:
        message[rng.choice(("jsonrpc", "method"))] = rng.choice((1, "1.0", [], True))
        if isinstance(message["method"], str) and message["jsonrpc"] == "2.0":
            message["jsonrpc"] = "1.0"
        if message["method"] == "1.0" and message["jsonrpc"] == "2.0":
            return _encoded(rng, message), ("id", request_id)
        return _encoded(rng, message), ("id", request_id)
    if roll == 14:
        message["id"] = rng.choice((None, True, 1.5, [], {}))
        return _encoded(rng, message), ("null", None)
    if roll == 15:
        depth = rng.choice((200, 5000))
        text = '{"jsonrpc":"2.0","id":%s,"method":"ping","params":{"x":%s%s}}'
        return (text % (json.dumps(request_id), "[" * depth, "]" * depth)).encode(), ("id", request_id)
    if roll == 16:
        return rng.choice((b"{", b"}", b'"', b"nul", b"\xff\xfe", b"[1,", b"{]}", b"\x00", b'{"a":1}}')), ("null", None)
    if roll == 17:
        return rng.choice((b"[]", b"[1]", b"7", b'"x"', b"null", b"true", b"{}")), ("null", None)
    if roll == 18:
        raw = _encoded(rng, message)
        return raw[: rng.randrange(2, len(raw))], ("null", None)
    return rng.choice((b"", b"   ", b"\t\r")), ("none", None)


def _encoded(rng: random.Random, message: dict[str, Any]) -> bytes:
    keys = list(message)
    rng.shuffle(keys)
    return json.dumps({key: message[key] for key in keys}, ensure_ascii=rng.random() < 0.5).encode()
