"""The composition root for HTTP: which server answers under which path. Loaded only where HTTP is served.

`/mcp` is the configured selection, `/mcp/x/a,b` the toolsets a and b, `/mcp/readonly` and `/mcp/readonly/x/a,b` the
same without the tools that change anything.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

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
    bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if not colon or not host or bare_ipv6 or not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise SettingInvalid(f"{text} is not HOST:PORT", hint="for example 127.0.0.1:8765 or [::1]:8765")
    return host, int(port)


class View(NamedTuple):
    """One way to look at the server."""

    read_only: bool
    toolsets: tuple[str, ...]

    @property
    def path(self) -> str:
        toolsets = f"/x/{','.join(self.toolsets)}" if self.toolsets else ""
        return f"{MCP_PATH}{'/readonly' if self.read_only else ''}{toolsets}"


class Views:
    """The servers of one process, by path. Made when first asked for."""

    def __init__(self, place: Place, settings: Settings, address: HttpAddress) -> None:
        self._place = place
        self._settings = settings
        self._address = address
        self._ledger = ledger_at(place, settings)  # one store behind all views
        self._servers: dict[View, Server] = {}
        self._by_path: dict[str, Server] = {}
        self._lock = threading.Lock()

    def server_for(self, path: str) -> Server | None:
        """The server under this path; None where the path names none."""
        server = self._by_path.get(path)
        if server is None and (view := _view(path)) is not None:
            with self._lock:
                server = self._servers.get(view) or self._build(view)
            if server is not None and len(self._by_path) < 4 * VIEWS:
                self._by_path[path] = server
        return server

    def why_not(self, path: str) -> str:
        """What is wrong with a path that has no server, and what would be right."""
        view = _view(path)
        if view is None:
            return f"MCP is served at {MCP_PATH}, {MCP_PATH}/x/TOOLSET,TOOLSET and {MCP_PATH}/readonly"
        try:
            assemble(self._place, self._settings_of(view), ledger=self._ledger)
        except Refusal as refusal:
            return f"{refusal.message}; {refusal.hint}"
        return f"tools are shown in {VIEWS} different selections already, the most there can be; use {MCP_PATH}"

    def _settings_of(self, view: View) -> Settings:
        if not view.toolsets:
            return self._settings
        return msgspec.structs.replace(self._settings, toolsets=view.toolsets, enable=())

    def _build(self, view: View) -> Server | None:
        if len(self._servers) >= VIEWS:
            return None
        settings = self._settings_of(view)
        address = msgspec.structs.replace(self._address, path=view.path)
        try:
            handrail = assemble(self._place, settings, http=address, read_only=view.read_only, ledger=self._ledger)
        except Refusal:
            return None
        server = self._servers[view] = build_server(handrail)
        return server


def _view(path: str) -> View | None:
    """What a path asks for, however it is spelled; None where it is no path of ours."""
    first, *parts = [part for part in path.split("/") if part] or [""]
    if first != MCP_PATH.strip("/") or not path.startswith("/"):
        return None
    read_only = parts[:1] == ["readonly"]
    if read_only:
        parts = parts[1:]
    if not parts:
        return View(read_only, ())
    if len(parts) != 2 or parts[0] != "x":
        return None
    return View(read_only, tuple(dict.fromkeys(parts[1].split(","))))


def build_endpoint(place: Place, settings: Settings, address: HttpAddress, guard: Guard) -> HttpEndpoint:
    views = Views(place, settings, address)
    return HttpEndpoint(
        views.server_for,
        guard=guard,
        why_not=views.why_not,
        limits=HttpLimits(
            body_bytes=settings.max_message_bytes,
            depth=limits.MESSAGE_DEPTH,
            waiting_calls=4 * limits.WAITING_CALLS,
        ),
    )


def guard_of(settings: Settings, token: str) -> Guard:
    return Guard(hosts=(*LOOPBACK_NAMES, *(name.lower() for name in settings.allow_hosts)), token=token)
