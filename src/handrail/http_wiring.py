"""The composition root for HTTP: which server answers under which path. Loaded only where HTTP is served.

`/mcp` is the configured selection, `/mcp/x/a,b` the toolsets a and b, `/mcp/readonly` and `/mcp/readonly/x/a,b` the
same without the tools that change anything.
"""

from __future__ import annotations

import threading

import msgspec

from handrail.kernel import limits
from handrail.kernel.errors import Refusal, SettingInvalid
from handrail.operation import HttpAddress
from handrail.protocol.http.endpoint import HttpEndpoint, HttpLimits
from handrail.protocol.http.guard import LOOPBACK_NAMES, Guard
from handrail.protocol.server import Server
from handrail.settings import Settings
from handrail.wiring import Place, assemble, build_server, ledger_at

MCP_PATH = "/mcp"
VIEWS = 64
"""Different tool selections one process serves by path; more are refused."""


def parse_address(text: str) -> tuple[str, int]:
    """HOST:PORT, with brackets around an IPv6 host."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise SettingInvalid(f"{text} is not HOST:PORT", hint="for example 127.0.0.1:8765 or [::1]:8765")
    return host, int(port)


class Views:
    """The servers of one process, by path. Made when first asked for."""

    def __init__(self, place: Place, settings: Settings, address: HttpAddress) -> None:
        self._place = place
        self._settings = settings
        self._address = address
        self._ledger = ledger_at(place, settings)  # one store behind all views
        self._servers: dict[str, Server | None] = {}
        self._lock = threading.Lock()

    def server_for(self, path: str) -> Server | None:
        """The server under this path; None where the path names none."""
        path = path.rstrip("/") or "/"
        server = self._servers.get(path)
        if server is None and (path == MCP_PATH or path.startswith(f"{MCP_PATH}/")):
            with self._lock:
                server = self._servers.get(path) or self._build(path)
        return server

    def _build(self, path: str) -> Server | None:
        parts = [part for part in path.removeprefix(MCP_PATH).split("/") if part]
        read_only = parts[:1] == ["readonly"]
        if read_only:
            parts = parts[1:]
        settings = self._settings
        if len(parts) == 2 and parts[0] == "x":
            settings = msgspec.structs.replace(settings, toolsets=tuple(parts[1].split(",")), enable=())
        elif parts:
            return None
        if len(self._servers) >= VIEWS:
            return None
        address = msgspec.structs.replace(self._address, path=path)
        try:
            handrail = assemble(self._place, settings, http=address, read_only=read_only, ledger=self._ledger)
        except Refusal:
            return None
        server = self._servers[path] = build_server(handrail)
        return server


def build_endpoint(place: Place, settings: Settings, address: HttpAddress, guard: Guard) -> HttpEndpoint:
    views = Views(place, settings, address)
    return HttpEndpoint(
        views.server_for,
        guard=guard,
        limits=HttpLimits(
            body_bytes=settings.max_message_bytes,
            depth=limits.MESSAGE_DEPTH,
            waiting_calls=4 * limits.WAITING_CALLS,
        ),
    )


def guard_of(settings: Settings, token: str) -> Guard:
    return Guard(hosts=(*LOOPBACK_NAMES, *settings.allow_hosts), token=token)
