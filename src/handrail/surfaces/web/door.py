"""Who may come in at all: exact hosts, origins of our own, JSON alone for what changes something. Pure; no sockets.

The page trusts a cookie, so a browser could be made to speak for a person who is signed in. What keeps other people's
pages out stands here: a name that was bound to our address afterwards (Host), a page of another site or of another
port of this machine (Origin, Sec-Fetch-Site), a form that needs no leave to be sent (Content-Type). Who somebody is
comes after this: `sign_in.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from handrail.protocol.http.guard import ALLOWED_BY, LOOPBACK_NAMES, answers_to

SAFE = ("GET", "HEAD")
METHODS = (*SAFE, "POST")
FETCH_SITE, FETCH_DEST = "sec-fetch-site", "sec-fetch-dest"
"""Where the page comes from that asks, and what for: a browser says so, and no script can say otherwise."""
DECISIVE = ("host", "origin", "authorization", "cookie", "content-type", "content-length", FETCH_SITE, FETCH_DEST)
"""Headers that decide who may speak, or how: given twice, nobody can tell which one another program went by."""


class TurnedAway(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request is not even read."""

    status: int
    code: str
    message: str
    hint: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one page."""

    hosts: tuple[str, ...] = LOOPBACK_NAMES
    """Names the Host header may carry, as the guard of tools has them."""
    port: int

    def check(self, method: str, headers: Mapping[str, str]) -> TurnedAway | None:
        """Why the request is turned away; None where it may come in."""
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
        """Whether an Origin is the page at this host. Only a host that was allowed by name may stand behind something
        that speaks TLS for us."""
        scheme, separator, authority = origin.partition("://")
        if not separator or authority.lower() != host.lower():
            return False
        return scheme == "http" or (scheme == "https" and not answers_to(host, LOOPBACK_NAMES, self.port))


def _check_read(headers: Mapping[str, str]) -> TurnedAway | None:
    """A link may lead here from anywhere; nothing else of another page may look, though its browser sends our cookie:
    other ports of this machine are the same site to it."""
    foreign = headers.get(FETCH_SITE, "none") not in ("none", "same-origin")
    if foreign and headers.get(FETCH_DEST, "document") != "document":
        return _foreign("another site's page has asked for this")
    return None


def _check_write(headers: Mapping[str, str], origin: str | None) -> TurnedAway | None:
    """Browsers name the origin of everything that is not a plain look, so what comes without is no page of ours."""
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
    """The headers by name, and the first that decides and is given twice."""
    headers: dict[str, str] = {}
    repeated = None
    for raw_name, raw_value in raw:
        name = raw_name.decode("latin-1").lower()
        if name in headers and name in DECISIVE:
            repeated = repeated or name
        headers[name] = raw_value.decode("latin-1").strip()
    return headers, repeated


def cookie_of(headers: Mapping[str, str], name: str) -> str:
    """The value of one cookie; nothing where there is none, or where two claim the name."""
    found = [
        value.strip()
        for key, equals, value in (part.partition("=") for part in headers.get("cookie", "").split(";"))
        if equals and key.strip() == name
    ]
    return found[0] if len(found) == 1 else ""
