"""The composition root for HTTP: which server answers under which path. Loaded only where HTTP is served.

`/mcp` is the configured selection, `/mcp/x/a,b` the toolsets a and b; `/mcp/readonly` and `/mcp/readonly/x/a,b` are the
same without tools that change anything. Callers whose token may only read get the read-only ones under the ordinary
paths.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import msgspec

from handrail.domain.crew.token import Token, is_vouched
from handrail.domain.crew.tokens import is_token, look_up
from handrail.kernel import limits
from handrail.kernel.errors import Refusal, SettingInvalid
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.operation import HttpAddress
from handrail.outside.token_files import REVOCATIONS, revocation_mark
from handrail.protocol.http.endpoint import HttpEndpoint, HttpLimits
from handrail.protocol.http.guard import LOOPBACK_NAMES, Guard, LookupFailed, Principal
from handrail.protocol.server import Server
from handrail.settings import Settings
from handrail.settings_in_force import LiveSettings, live_settings
from handrail.wiring import LazyLedger, WorkPlace, assemble, build_server, has_store, ledger_at

MCP_PATH = "/mcp"
VIEWS = 64
"""How many different tool selections one process serves by path; more are refused."""


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
    """The servers of one process by path, created when first requested."""

    def __init__(
        self,
        place: WorkPlace,
        settings: Settings,
        address: HttpAddress,
        *,
        ledger: LazyLedger | None = None,
        live: LiveSettings | None = None,
    ) -> None:
        self._place = place
        self._settings = settings
        self._address = address
        self._ledger = ledger or ledger_at(place, settings)  # one store behind all views
        # A view made later must not be less strict than the others.
        self._live = live or live_settings(place.project, place.home, settings)
        self._servers: dict[View, Server] = {}
        self._by_path: dict[tuple[str, bool], Server] = {}
        self._lock = threading.Lock()

    def server_for(self, path: str, *, read_only: bool = False) -> Server | None:
        """The server under this path; None if the path names none. `read_only` is for callers who may only read."""
        server = self._by_path.get((path, read_only))
        if server is None and (view := _view(path)) is not None:
            if read_only:
                view = view._replace(read_only=True)
            with self._lock:
                server = self._servers.get(view) or self._build(view)
            if server is not None and len(self._by_path) < 8 * VIEWS:
                self._by_path[path, read_only] = server
        return server

    def why_not(self, path: str) -> str:
        """What is wrong with a path that has no server, and what would be right."""
        view = _view(path)
        if view is None:
            return f"MCP is served at {MCP_PATH}, {MCP_PATH}/x/TOOLSET,TOOLSET and {MCP_PATH}/readonly"
        try:
            assemble(self._place, self._settings_of(view), ledger=self._ledger, live=self._live)
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
            handrail = assemble(
                self._place,
                settings,
                http=address,
                read_only=view.read_only,
                ledger=self._ledger,
                live=self._live,
            )
        except Refusal:
            return None
        server = self._servers[view] = build_server(handrail)
        return server


def _view(path: str) -> View | None:
    """The view a path asks for, however it is spelled; None if it is not a path of ours."""
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


NOT_MADE_HERE = "this token was not made on this machine, so it proves nothing here"
NOT_MADE_HERE_HINT = (
    "ask for another (handrail token create NAME), or have a person run `handrail db trust --credentials` at a terminal"
)


class FoundToken(NamedTuple):
    """A token whose secret the caller has."""

    token: Token
    is_ours: bool
    """Whether this machine made it; one that came with a store from elsewhere lets nobody in."""


class StoredTokens:
    """The tokens in the store: on a server, they work on all machines that share it; in a file, on the one that made
    them."""

    def __init__(self, place: WorkPlace, ledger: LazyLedger, channel: str) -> None:
        self._ledger = ledger
        self._revocations = str(place.home / REVOCATIONS)
        self._actor = Actor("handrail", channel)

    def has_form(self, text: str) -> bool:
        return is_token(text)

    def mark(self) -> object:
        """Changes when a token is revoked."""
        return revocation_mark(self._revocations)

    def token(self, text: str) -> FoundToken | None:
        """The token with this text. A refusal raised here may name the database, so its text must not reach the caller,
        who is not yet known."""

        def found(unit: UnitOfWork) -> FoundToken | None:
            token = look_up(unit, text)
            return FoundToken(token, is_vouched(unit, token)) if token is not None else None

        return self._ledger.run(self._actor, found)


class TokenDesk(StoredTokens):
    """Behind the protocol's `Lookup`."""

    def __init__(self, place: WorkPlace, settings: Settings, ledger: LazyLedger) -> None:
        super().__init__(place, ledger, "http")
        self._place = place
        self._settings = settings

    def find(self, token: str) -> Principal | None:
        if not has_store(self._place, self._settings):  # a stranger's question must not create one
            return None
        try:
            found = self.token(token)
        except Refusal as refusal:
            raise LookupFailed(f"tokens cannot be looked up now ({refusal.code}); try again soon") from refusal
        return principal_of(*found) if found is not None else None


def principal_of(token: Token, is_ours: bool = True) -> Principal:
    why_not = None
    if not is_ours:
        why_not = f"{NOT_MADE_HERE}; {NOT_MADE_HERE_HINT}"
    elif "read" not in token.rights:
        why_not = (
            f"the token {token.name} signs its owner in to the page and calls no tools; "
            "one that does is made with: handrail token create NAME --rights read,write"
        )
    return Principal(id=token.id, name=token.name, rights=tuple(token.rights), agent_id=token.agent_id, barred=why_not)


def build_endpoint(
    place: WorkPlace,
    settings: Settings,
    address: HttpAddress,
    guard: Guard,
    *,
    ledger: LazyLedger | None = None,
    live: LiveSettings | None = None,
) -> HttpEndpoint:
    ledger = ledger or ledger_at(place, settings)
    views = Views(place, settings, address, ledger=ledger, live=live)
    return HttpEndpoint(
        views.server_for,
        guard=msgspec.structs.replace(guard, lookup=TokenDesk(place, settings, ledger)),
        read_only_server_for=lambda path: views.server_for(path, read_only=True),
        why_not=views.why_not,
        limits=HttpLimits(
            body_bytes=settings.max_message_bytes,
            depth=limits.MESSAGE_DEPTH,
            waiting_calls=4 * limits.WAITING_CALLS,
        ),
    )


def guard_of(settings: Settings, token: str, port: int | None = None) -> Guard:
    names = (*LOOPBACK_NAMES, *(name.lower() for name in settings.allow_hosts))
    return Guard(hosts=names, port=port, token=token)
