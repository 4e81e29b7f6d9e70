"""The floor: a bare msgspec loop that knows three methods and checks nothing: the cost of Python, a pipe and JSON."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
from the_tool import TOOL, check


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "tools/call":
        given = params["arguments"]
        result = check(given["workflowId"], given["stepId"], given["output"])
        return {
            "content": [{"type": "text", "text": msgspec.json.encode(result).decode()}],
            "structuredContent": result,
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "floor", "version": "1"},
    }


def main() -> None:
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    for line in sys.stdin.buffer:
        message = decode(line)
        if "id" in message:
            result = answer(message["method"], message.get("params", {}))
            sys.stdout.buffer.write(encode({"jsonrpc": "2.0", "id": message["id"], "result": result}) + b"\n")
            sys.stdout.buffer.flush()


main()
