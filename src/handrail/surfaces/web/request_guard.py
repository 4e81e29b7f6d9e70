"""Which requests are let in at all: exact hosts, our own origins, and only JSON for changes. Pure; no sockets.

The page trusts a cookie, so a browser could be tricked into acting for a person who is signed in. This module keeps
foreign pages out: a name rebound to our address (Host), a page of another site or of another port on this machine
(Origin, Sec-Fetch-Site), a form that browsers send without asking (Content-Type). `sign_in.py` finds out who they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from handrail.protocol.http.guard import ALLOWED_BY, LOOPBACK_NAMES, answers_to
from handrail.protocol.http.headers import headers_of

SAFE = ("GET", "HEAD")
METHODS = (*SAFE, "POST")
FETCH_SITE, FETCH_DEST = "sec-fetch-site", "sec-fetch-dest"
"""Which site's page sent the request, and what for: browsers set these headers, and scripts cannot change them."""
DECISIVE = ("host", "origin", "authorization", "cookie", "content-type", "content-length", FETCH_SITE, FETCH_DEST)
"""Headers that decide who may call, or how. If one is repeated, a proxy may have checked the other value."""


class TurnedAway(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request is refused before it is read."""

    status: int
    code: str
    message: str
    hint: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one page."""

    hosts: tuple[str, ...] = LOOPBACK_NAMES
    """Names the Host header may contain, as in the MCP guard."""
    port: int

    def check(self, method: str, headers: Mapping[str, str]) -> TurnedAway | None:
        """Why the request is turned away; None if it may come in."""
        host = headers.get("host", "")
        if not answers_to(host, self.hosts, self.port):
            return TurnedAway(
                status=421,
                code="WRONG_HOST",
                message="this host name is not one the page answers to",
                hint=f"open the address that `handrail up` shows{ALLOWED_BY}",
            )
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin, host):
            return _foreign("requests from this origin are not served")
        if method not in METHODS:
            allow = ((b"allow", ", ".join(METHODS).encode()),)
            message = f"the page takes {', '.join(METHODS)}"
            return TurnedAway(status=405, code="METHOD_NOT_ALLOWED", message=message, headers=allow)
        return _check_read(headers) if method in SAFE else _check_write(headers, origin)

    def _is_own(self, origin: str, host: str) -> bool:
        """Whether an Origin is the page at this host. Only hosts allowed by name can be behind a TLS proxy."""
        scheme, separator, authority = origin.partition("://")
        if not separator or authority.lower() != host.lower():
            return False
        return scheme == "http" or (scheme == "https" and not answers_to(host, LOOPBACK_NAMES, self.port))


def _check_read(headers: Mapping[str, str]) -> TurnedAway | None:
    """Links from anywhere are fine, but no other request of a foreign page, even if its browser sends our cookie: other
    ports of this machine count as the same site."""
    foreign = headers.get(FETCH_SITE, "none") not in ("none", "same-origin")
    if foreign and headers.get(FETCH_DEST, "document") != "document":
        return _foreign("another site's page has asked for this")
    return None


def _check_write(headers: Mapping[str, str], origin: str | None) -> TurnedAway | None:
    """Browsers name the origin of every request that changes something, so one without is not from our page."""
    if headers.get(FETCH_SITE, "same-origin") != "same-origin":
        return _foreign("another site's page has sent this")
    if origin is None:
        return _foreign("a change without an Origin does not come from the page")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return TurnedAway(
            status=415,
            code="JSON_ONLY",
            message="what changes something is sent as JSON",
            hint="send the header Content-Type: application/json",
        )
    return None


def _foreign(message: str) -> TurnedAway:
    return TurnedAway(
        status=403, code="FOREIGN_ORIGIN", message=message, hint="use the page at the address that `handrail up` shows"
    )


def taken_apart(raw: Iterable[tuple[bytes, bytes]]) -> tuple[dict[str, str], str | None]:
    """The headers by name, and the first decisive one that was repeated."""
    return headers_of(raw, DECISIVE.__contains__)


def cookie_of(headers: Mapping[str, str], name: str) -> str:
    """The value of one cookie; empty if there is none, or more than one of that name."""
    found = [
        value.strip()
        for key, equals, value in (part.partition("=") for part in headers.get("cookie", "").split(";"))
        if equals and key.strip() == name
    ]
    return found[0] if len(found) == 1 else ""
