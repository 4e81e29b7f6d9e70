"""Starts a server as a client would and asks it two questions: who are you, and which tools do you have? Also: who
answers at an address? Both end what they started, and wait no longer than they were told."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

SAID = 300
"""How much of a server's last output is shown."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """How a start went. `problem` is empty if both questions were answered."""

    problem: str = ""
    protocol: str = ""
    name: str = ""
    version: str = ""
    tools: int = 0


def try_server(
    words: Sequence[str], *, folder: str, environ: Mapping[str, str], protocol: str, timeout_s: float
) -> Trial:
    """Starts the command, asks, and ends it."""
    client = {"name": "handrail-doctor", "version": "1"}
    asked: list[dict[str, Any]] = [
        {
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": protocol, "capabilities": {}, "clientInfo": client},
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ]
    lines = b"".join(msgspec.json.encode({"jsonrpc": "2.0", **one}) + b"\n" for one in asked)
    try:
        done = subprocess.run(  # noqa: S603 - the very command that the client would start
            list(words), input=lines, capture_output=True, cwd=folder, env=dict(environ), timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return Trial(problem=f"it did not answer within {timeout_s:g} s")
    except (OSError, ValueError) as problem:
        return Trial(problem=f"it cannot be started: {getattr(problem, 'strerror', None) or problem}")
    replies = _replies(done.stdout)
    if 1 not in replies:
        return Trial(problem=f"it ended with {done.returncode} before it answered{_last_words(done.stderr)}")
    return _result_of(replies)


def _result_of(replies: Mapping[int, dict[str, Any]]) -> Trial:
    hello, listed = replies[1], replies.get(2, {})
    if "result" not in hello:
        return Trial(problem=f"it refused to connect: {_object(hello, 'error').get('message', 'no reason given')}")
    result = _object(hello, "result")
    about, tools = _object(result, "serverInfo"), _object(listed, "result").get("tools")
    seen = Trial(
        protocol=str(result.get("protocolVersion", "")),
        name=str(about.get("name", "")),
        version=str(about.get("version", "")),
        tools=len(tools) if isinstance(tools, list) else 0,
    )
    is_listed = isinstance(listed.get("result"), dict)
    return seen if is_listed else msgspec.structs.replace(seen, problem="it did not list its tools")


def _object(outer: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A member that should be an object, or an empty one if it is anything else: any program may have answered."""
    value = outer.get(name)
    return value if isinstance(value, dict) else {}


def _replies(output: bytes) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for line in output.splitlines():
        with contextlib.suppress(msgspec.MsgspecError):
            reply = msgspec.json.decode(line)
            if isinstance(reply, dict) and isinstance(reply.get("id"), int):
                found[reply["id"]] = reply
    return found


def _last_words(errors: bytes) -> str:
    said = " ".join(errors.decode(errors="replace").split())[-SAID:]
    return f": {said}" if said else ""


def has_module(python: str, module: str, *, folder: str, timeout_s: float) -> bool:
    """Whether an interpreter finds a module, ignoring the folder it is started in."""
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    try:
        done = subprocess.run(  # noqa: S603 - the hook's own interpreter
            [python, "-P", "-c", code, module], cwd=folder, capture_output=True, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def who_listens(host: str, port: int, *, timeout_s: float) -> str | None:
    """`handrail` or `other` if somebody answers at an address; None if nobody does."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as peer:
            said = b""
            deadline = time.monotonic() + timeout_s
            with contextlib.suppress(OSError):
                peer.sendall(f"GET /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
                while len(said) < 1 << 14 and (left := deadline - time.monotonic()) > 0:
                    peer.settimeout(left)
                    if not (chunk := peer.recv(4096)):
                        break
                    said += chunk
    except OSError:
        return None
    return "handrail" if b'realm="handrail"' in said else "other"
