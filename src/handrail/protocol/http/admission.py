"""Decides whether a caller is admitted: the guard's rules first, then, off the event loop, a lookup of other tokens.

A principal that was found is trusted for two seconds, so a token revoked on another machine is refused within that
time; one revoked on this machine is refused at once. Unknown tokens are never remembered, but only a limited number are
looked up at a time, and callers admitted before do not queue behind strangers.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from handrail.protocol.http.guard import UNAUTHORIZED, Guard, Lookup, LookupFailed, Principal, Rejection, bearer_of

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
