"""Who may speak to the server: exact host names, origins of our own, and the bearer token. Pure; no sockets."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

import msgspec

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Rejection(msgspec.Struct, frozen=True):
    """Why a request is not even read."""

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one server. A browser page of somebody else's must never reach a tool, with or without a token."""

    hosts: tuple[str, ...] = LOOPBACK_NAMES
    """Names the Host header may carry, without port."""
    origins: tuple[str, ...] = ()
    """Origins allowed beside the server's own, exactly as browsers send them."""
    token: str | None = None
    """What every request must carry as its bearer token; None where nothing is asked."""

    def check(self, headers: Mapping[str, str]) -> Rejection | None:
        host = headers.get("host", "")
        if _name(host) not in self.hosts:
            return Rejection(403, "this host name is not one the server answers to")
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins and not _same_origin(origin, host):
            return Rejection(403, "requests from this origin are not served")
        if self.token is not None and not self._has_token(headers.get("authorization", "")):
            challenge = ((b"www-authenticate", b'Bearer realm="handrail"'),)
            return Rejection(401, "a bearer token is needed: send the header Authorization: Bearer TOKEN", challenge)
        return None

    def _has_token(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer" or not self.token:
            return False
        return hmac.compare_digest(given.strip().encode(), self.token.encode())


def _name(host: str) -> str:
    """The host without its port, as a browser would compare it; nothing where it is malformed."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or host.endswith("]"):
        return host.lower()
    return name if not port or (port.isascii() and port.isdigit()) else ""


def _same_origin(origin: str, host: str) -> bool:
    scheme, _, authority = origin.partition("://")
    return scheme in ("http", "https") and authority.lower() == host.lower()
