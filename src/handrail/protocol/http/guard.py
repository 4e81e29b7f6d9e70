"""Who may call the server: exact host names, our own origins, and a bearer token. Pure; no sockets.

One token is the server's own. Others may be found by a lookup, which can be slow, so `admission.py` does that.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Protocol

import msgspec

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
ALLOWED_BY = "; others are named in its setting allow_hosts, as NAME or NAME:PORT"
UNAUTHORIZED = 401
HTTP_PORT = 80
"""The port that a Host header leaves out."""
READ, WRITE = "read", "write"


class Rejection(msgspec.Struct, frozen=True):
    """Why a request is refused before it is read."""

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who a token stands for, and what it permits."""

    id: str
    name: str
    rights: tuple[str, ...] = (READ, WRITE)
    agent_id: str | None = None
    """The agent that its calls act as, if it was issued to one in particular."""
    barred: str | None = None
    """Why it is not served here although it is known; None if it is served."""

    @property
    def may_write(self) -> bool:
        return WRITE in self.rights


class LookupFailed(Exception):  # noqa: N818 - not an error: unknown for the moment
    """A lookup could not find out whether it knows a token; the text says why."""


class Lookup(Protocol):
    """Tokens other than the server's own."""

    def has_form(self, token: str) -> bool:
        """Whether a text could be such a token at all. Called for every request without the server's own token."""
        ...

    def find(self, token: str) -> Principal | None:
        """Who this token stands for, or None. May be slow, so it runs on a thread. Raises LookupFailed."""
        ...

    def mark(self) -> object:
        """A value that changes as soon as this machine knows that a token was revoked. Called for every request, so it
        must be fast."""
        ...


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one server. No web page of another origin may ever reach a tool, with or without a token."""

    hosts: tuple[str, ...] = LOOPBACK_NAMES
    """Names the Host header may contain: without a port any port is accepted, with one only that."""
    port: int | None = None
    """The port we listen on. Loopback names are then accepted with this port only: other ports of this machine belong
    to other programs, whose pages must not pass for ours."""
    origins: tuple[str, ...] = ()
    """Origins allowed besides the server's own, exactly as browsers send them."""
    token: str | None = None
    """The server's own token. With neither a token nor a lookup, none is required."""
    lookup: Lookup | None = None

    def check(self, headers: Mapping[str, str]) -> Rejection | None:
        """Why the request is refused. Refuses any token but the server's own, even one that a lookup may know."""
        host = headers.get("host", "")
        if not answers_to(host, self.hosts, self.port):
            return Rejection(403, f"this host name is not one the server answers to{ALLOWED_BY}")
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins and not _same_origin(origin, host):
            return Rejection(403, "requests from this origin are not served")
        asked = self.token is not None or self.lookup is not None
        if asked and not self._is_own(bearer_of(headers)):
            challenge = ((b"www-authenticate", b'Bearer realm="handrail"'),)
            reason = "a bearer token is needed: send the header Authorization: Bearer TOKEN"
            return Rejection(UNAUTHORIZED, reason, challenge)
        return None

    def _is_own(self, given: str) -> bool:
        return bool(given and self.token) and hmac.compare_digest(given.encode(), (self.token or "").encode())


def bearer_of(headers: Mapping[str, str]) -> str:
    """The bearer token of a request, or an empty string."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def answers_to(host: str, hosts: tuple[str, ...], port: int | None = None) -> bool:
    """Whether a Host header names one of `hosts`. A loopback name with a port other than `port` does not, unless listed
    with that port."""
    host = host.lower()
    if host in hosts and ":" in host.rpartition("]")[2]:
        return True  # listed with its port
    name = _name(host)
    if not name or name not in hosts:
        return False
    if port is None or name not in LOOPBACK_NAMES:
        return True
    given = host.removeprefix(name).removeprefix(":")
    return given == str(port) or (not given and port == HTTP_PORT)


def _name(host: str) -> str:
    """The host without its port, as a browser would compare it; empty if malformed."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or host.endswith("]"):
        return host.lower()
    return name if not port or (port.isascii() and port.isdigit()) else ""


def _same_origin(origin: str, host: str) -> bool:
    scheme, _, authority = origin.partition("://")
    return scheme in ("http", "https") and authority.lower() == host.lower()
