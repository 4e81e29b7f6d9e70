"""Starts a server the way a client would and asks it two questions: who are you, and which tools do you have? Also: who
answers at an address? Both end what they started, and wait no longer than they were told."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

SAID = 300
"""So much of a server's last words is shown."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """How a start went. `problem` is empty where both questions were answered."""

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
    return _judged(replies)


def _judged(replies: Mapping[int, dict[str, Any]]) -> Trial:
    hello, listed = replies[1], replies.get(2, {})
    if "result" not in hello:
        return Trial(problem=f"it refused to connect: {hello.get('error', {}).get('message', 'no reason given')}")
    result = hello["result"]
    about = result.get("serverInfo") or {}
    seen = Trial(
        protocol=str(result.get("protocolVersion", "")),
        name=str(about.get("name", "")),
        version=str(about.get("version", "")),
        tools=len(listed.get("result", {}).get("tools", ())),
    )
    return seen if "result" in listed else msgspec.structs.replace(seen, problem="it did not list its tools")


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
    """Whether an interpreter finds a module, without the folder it is started in."""
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    try:
        done = subprocess.run(  # noqa: S603 - the hook's own interpreter
            [python, "-P", "-c", code, module], cwd=folder, capture_output=True, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def who_listens(host: str, port: int, *, timeout_s: float) -> str | None:
    """`handrail` or `other` where somebody answers at an address; None where nobody does."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as peer:
            peer.settimeout(timeout_s)
            said = b""
            with contextlib.suppress(OSError):
                peer.sendall(f"GET /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
                while len(said) < 1 << 14 and (chunk := peer.recv(4096)):
                    said += chunk
    except OSError:
        return None
    return "handrail" if b'realm="handrail"' in said else "other"
