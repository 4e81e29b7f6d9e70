"""The very first calls of a server may come all at once: types are learned, modules imported and the store opened
under them."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.process.http_peer import ACCEPT, HttpProcess, Peer, request_of

CALLS = 32
NERVOUS = "import sys; sys.setswitchinterval(1e-4); from handrail.__main__ import main; main()"
"""Threads that take turns fifty times as often find the gaps that a busy machine finds once in a while."""

CREATE: dict[str, Any] = {"name": "n", "source_type": "prompt", "source_content": "c"}
PLAN: dict[str, Any] = {
    "id": "wf_none",
    "plan": {"summary": "s", "approach": "a", "tasks": [{"name": "only", "description": "d", "sequence": 1}]},
}


def nervous(folder: Path) -> HttpProcess:
    command = [sys.executable, "-X", "faulthandler", "-c", NERVOUS]
    options = ["serve", "--http", "127.0.0.1:0", "--token", "T", "--profile", "team"]
    return HttpProcess([*command, *options], cwd=folder, env={"HOME": str(folder)})


def at_once(peer: Peer, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Sends every call on a connection of its own before it reads the first answer."""
    session = peer.session().id  # nothing but a handshake: no tool was listed yet
    connections = [peer.socket() for _ in calls]
    for connection, (name, arguments) in zip(connections, calls, strict=True):
        body = msgspec.json.encode(request_of("tools/call", name=name, arguments=arguments))
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: localhost:{peer.port}\r\nAuthorization: Bearer T\r\n"
            f"Content-Type: application/json\r\nAccept: {ACCEPT}\r\nMcp-Session-Id: {session}\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
    results: list[dict[str, Any]] = []
    for connection in connections:
        with connection:
            head_bytes, _, answer = all_of(connection).partition(b"\r\n\r\n")
        assert head_bytes.startswith(b"HTTP/1.1 200")
        results.append(msgspec.json.decode(answer)["result"]["structuredContent"])
    return results


def all_of(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("attempt", ["one", "another"])
def test_the_first_calls_may_come_all_at_once(tmp_path: Path, attempt: str) -> None:
    calls = [*[("workflow_set_plan", PLAN)] * CALLS, *[("workflow_create", CREATE)] * CALLS]
    with nervous(tmp_path) as process, Peer(process.url, "T") as peer:
        results = at_once(peer, *calls)
        assert {result["error"]["code"] for result in results[:CALLS]} == {"RUN_NOT_FOUND"}
        assert {result["status"] for result in results[CALLS:]} == {"planning"}
        assert len({result["id"] for result in results[CALLS:]}) == CALLS
        assert "Traceback" not in process.end()
