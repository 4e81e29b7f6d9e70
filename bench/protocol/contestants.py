"""Who is measured on which transport, and how each is started. Starts nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.protocol.conversation import HANDSHAKE, STATELESS
from bench.protocol.environments import PEERS, node_folder, python_of

BASELINE = "mcp lowlevel"
HANDRAIL = "handrail"
_TOKEN = "a-token-of-the-bench"


class Contestant(msgspec.Struct, frozen=True):
    """A name, what it is, how its command is found (which may install its packages), and how to speak to it."""

    name: str
    what: str
    command: Callable[[], list[str]]
    revision: str = HANDSHAKE
    headers: dict[str, str] = {}
    """What every HTTP request to it carries beside what all carry."""


def _handrail(*options: str) -> Callable[[], list[str]]:
    return lambda: [str(Path(sys.executable).parent / "handrail"), "serve", *options, "--profile", "workflowlookup"]


def _python_peer(environment: str, script: str, *options: str) -> Callable[[], list[str]]:
    return lambda: [str(python_of(environment)), str(PEERS / script), *options]


def _node_peer(script: str, *options: str) -> Callable[[], list[str]]:
    return lambda: ["node", str(node_folder() / script), *options]


ON_STDIO = (
    Contestant(HANDRAIL, "`handrail serve --profile workflowlookup`", _handrail()),
    Contestant(BASELINE, "official Python SDK, low-level server", _python_peer("mcp", "sdk_lowlevel.py")),
    Contestant("mcp MCPServer", "official Python SDK, high-level server", _python_peer("mcp", "sdk_mcpserver.py")),
    Contestant("fastmcp", "fastmcp", _python_peer("fastmcp", "fastmcp_server.py")),
    Contestant("node sdk 1.x", "official TypeScript SDK, 1.x", _node_peer("node_sdk_1.mjs")),
    Contestant("node server 2.x", "official TypeScript SDK, 2.x", _node_peer("node_server_2.mjs")),
    Contestant("floor", "a bare msgspec loop", lambda: [sys.executable, str(PEERS / "floor.py")]),
)

_handrail_http = _handrail("--http", "127.0.0.1:0", "--token", _TOKEN)
_bearer = {"Authorization": f"Bearer {_TOKEN}"}

ON_HTTP = (
    Contestant(HANDRAIL, "`handrail serve --http`, sessions", _handrail_http, HANDSHAKE, _bearer),
    Contestant(f"{HANDRAIL} {STATELESS}", "the same, stateless revision", _handrail_http, STATELESS, _bearer),
    Contestant(BASELINE, "official Python SDK, low-level, sessions", _python_peer("mcp", "sdk_lowlevel.py", "http")),
    Contestant(
        f"{BASELINE} {STATELESS}",
        "the same, stateless revision",
        _python_peer("mcp", "sdk_lowlevel.py", "http"),
        STATELESS,
    ),
    Contestant(
        f"{BASELINE} + uvloop",
        "the reference on the HTTP parser and event loop that Handrail uses",
        _python_peer("mcp-uvloop", "sdk_lowlevel.py", "http"),
    ),
    Contestant("mcp MCPServer", "official Python SDK, high-level", _python_peer("mcp", "sdk_mcpserver.py", "http")),
    Contestant("fastmcp", "fastmcp", _python_peer("fastmcp", "fastmcp_server.py", "http")),
    Contestant("node sdk 1.x", "official TypeScript SDK, 1.x", _node_peer("node_sdk_1.mjs", "http")),
)
