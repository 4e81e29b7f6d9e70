"""Who may speak to the server: exact host names, origins of our own, and a bearer token. Pure; no sockets.

One token is the server's own. Others may be known to a lookup, which takes its time: `admission.py` asks it.
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
"""The port that goes without saying."""
READ, WRITE = "read", "write"


class Rejection(msgspec.Struct, frozen=True):
    """Why a request is not even read."""

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a token stands for, and what it is good for."""

    id: str
    name: str
    rights: tuple[str, ...] = (READ, WRITE)
    agent_id: str | None = None
    """In whose name its calls are made, where it was given to one in particular."""
    barred: str | None = None
    """Why it is not served here although it is known; None where it is served."""

    @property
    def may_write(self) -> bool:
        return WRITE in self.rights


class LookupFailed(Exception):  # noqa: N818 - nobody's mistake: it cannot be told now
    """A lookup could not find out whether it knows a token; the text says why."""


class Lookup(Protocol):
    """Tokens beside the server's own."""

    def has_form(self, token: str) -> bool:
        """Whether a text could be one of them at all. Asked on every request that has not the server's own token."""
        ...

    def find(self, token: str) -> Principal | None:
        """Whom this token stands for; None where it stands for nobody. May take long: it is asked on a thread. Raises
        LookupFailed."""
        ...

    def mark(self) -> object:
        """Another value than before as soon as this machine knows that a token was taken back. Asked on every request:
        it must not take long."""
        ...


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one server. A browser page of somebody else's must never reach a tool, with or without a token."""

    hosts: tuple[str, ...] = LOOPBACK_NAMES
    """Names the Host header may carry: without a port, so that any goes with it, or with the one that must."""
    port: int | None = None
    """Where we listen. A loopback name then goes with this port alone: other ports of this machine are other people's
    programs, and a page of theirs must not pass for ours."""
    origins: tuple[str, ...] = ()
    """Origins allowed beside the server's own, exactly as browsers send them."""
    token: str | None = None
    """The server's own token. Where there is neither this nor a lookup, nothing is asked."""
    lookup: Lookup | None = None

    def check(self, headers: Mapping[str, str]) -> Rejection | None:
        """Why the request is refused; for want of the server's own token too, where a lookup may know another."""
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
    """The bearer token of a request; nothing where it has none."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def answers_to(host: str, hosts: tuple[str, ...], port: int | None = None) -> bool:
    """Whether a Host header names one of `hosts`; a loopback name with another port than `port` does not, unless it is
    listed with that port."""
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
    """The host without its port, as a browser would compare it; nothing where it is malformed."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or host.endswith("]"):
        return host.lower()
    return name if not port or (port.isascii() and port.isdigit()) else ""


def _same_origin(origin: str, host: str) -> bool:
    scheme, _, authority = origin.partition("://")
    return scheme in ("http", "https") and authority.lower() == host.lower()
