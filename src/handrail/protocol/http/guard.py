"""Who may call the server: exact host names, our own origins, and a bearer token. No sockets.

One token is the server's own. Others may be found by a lookup, which can be slow.

Decides whether a caller is admitted: the guard's rules first, then, off the event loop, a lookup of other tokens.

A principal that was found is trusted for two seconds, so a token revoked on another machine is refused within that
time; one revoked on this machine is refused at once. Unknown tokens are never remembered, but only a limited number are
looked up at a time, and callers admitted before do not queue behind strangers.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

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


BELIEVED_S = 2.0
"""How long a lookup's answer holds, counted from the question."""
KNOWN = 1000
"""How many principals are remembered."""
THREADS = 2
"""Concurrent lookups: this many for callers admitted before, and as many again for strangers."""
STRANGERS = 64
"""How many unknown tokens may be in lookup or queued for it; further ones are turned away without a lookup."""
PATIENCE_S = 10.0
"""How long a caller waits for a lookup."""

_CHALLENGE = ((b"www-authenticate", b'Bearer realm="handrail", error="invalid_token"'),)
_UNKNOWN = Rejection(UNAUTHORIZED, "this token is not known here, or it was revoked; ask for another", _CHALLENGE)
_LATER = ((b"retry-after", b"1"),)
_CROWDED = Rejection(503, "too many unknown tokens are being looked up; try again soon", _LATER)
_SLOW = Rejection(503, "the token could not be looked up in time; try again soon", _LATER)

Found = Principal | Rejection | None


class _Known(NamedTuple):
    principal: Principal
    mark: object
    asked_at_s: float


class _Asking(NamedTuple):
    task: asyncio.Task[Found]
    mark: object
    asked_at_s: float


class Admission:
    """Admission for one endpoint. On the event loop only."""

    def __init__(self, guard: Guard, *, now_s: Callable[[], float]) -> None:
        self._guard = guard
        self._now_s = now_s
        self._known: dict[bytes, _Known] = {}
        """Keyed by the token's hash, so that tokens themselves are not kept. The newest is last."""
        self._asking: dict[bytes, _Asking] = {}
        self._strangers = 0
        self._pools: dict[bool, ThreadPoolExecutor] = {}

    async def admit(self, headers: Mapping[str, str]) -> Found:
        """The principal these headers stand for, None for the server's own token, or why the caller is refused."""
        rejection = self._guard.check(headers)
        lookup = self._guard.lookup
        if rejection is None or rejection.status != UNAUTHORIZED or lookup is None:
            return rejection
        token = bearer_of(headers)
        if not lookup.has_form(token):
            return rejection
        key = hashlib.sha256(token.encode()).digest()
        mark = lookup.mark()
        known = self._known.get(key)
        if known is not None and self._holds(known, mark):
            return known.principal
        found = await self._ask_lookup(lookup, key, token, mark)
        return _UNKNOWN if found is None else found

    def is_asking(self) -> bool:
        """True while a lookup is running."""
        return bool(self._asking)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    def _holds(self, answer: _Known | _Asking, mark: object) -> bool:
        return answer.mark == mark and self._now_s() - answer.asked_at_s < BELIEVED_S

    async def _ask_lookup(self, lookup: Lookup, key: bytes, token: str, mark: object) -> Found:
        """What the lookup says. Concurrent requests with the same token share one lookup."""
        asking = self._asking.get(key)
        if asking is None or not self._holds(asking, mark):
            stranger = key not in self._known
            if stranger and self._strangers >= STRANGERS:
                return _CROWDED
            self._strangers += stranger
            asked_at_s = self._now_s()
            looking = asyncio.ensure_future(self._run_lookup(lookup, token, stranger=stranger))
            asking = self._asking[key] = _Asking(looking, mark, asked_at_s)
            looking.add_done_callback(lambda _: self._remember_answer(key, asking, stranger=stranger))
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await asyncio.shield(asking.task)
        except TimeoutError:
            return _SLOW

    async def _run_lookup(self, lookup: Lookup, token: str, *, stranger: bool) -> Found:
        pool = self._pools.get(stranger)
        if pool is None:
            pool = self._pools[stranger] = ThreadPoolExecutor(THREADS, thread_name_prefix="handrail-token")
        try:
            found = await asyncio.get_running_loop().run_in_executor(pool, lookup.find, token)
        except LookupFailed as problem:
            return Rejection(503, str(problem), _LATER)
        if found is not None and found.barred is not None:
            return Rejection(403, found.barred)
        return found

    def _remember_answer(self, key: bytes, asking: _Asking, *, stranger: bool) -> None:
        """Remembers an answer that admits somebody, unless a later lookup has already been answered."""
        self._strangers -= stranger
        newest = self._asking.get(key) is asking
        if newest:
            del self._asking[key]
        if asking.task.cancelled() or asking.task.exception() is not None:
            return
        found = asking.task.result()
        if isinstance(found, Principal):
            before = self._known.pop(key, None)
            if before is None or before.asked_at_s <= asking.asked_at_s:
                before = _Known(found, asking.mark, asking.asked_at_s)
            self._known[key] = before
            if len(self._known) > KNOWN:
                del self._known[next(iter(self._known))]
        elif newest and (found is None or found.status < 500):
            self._known.pop(key, None)
