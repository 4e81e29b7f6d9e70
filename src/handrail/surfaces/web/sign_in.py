"""How a person signs in to the page, and for how long: one-time codes, sessions, tokens that may decide.

Everything is in memory: no secret of the page is ever in a file, a log or a tool's result, and every session ends with
the process. Codes and cookies are kept as hashes, so printing this object reveals none. Signing in means deciding in a
person's name, so an agent's token never signs in. Which requests get this far is decided in `request_guard.py`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

CODE_BYTES = 24
START_CODE_S = 12 * 3600.0
"""How long the link that `handrail up` shows stays valid, unused."""
LINK_CODE_S = 600.0
"""The same for a link that a visitor makes for another device."""
SESSION_S = 30 * 24 * 3600.0
CODES = 64
SESSIONS = 256
"""How many codes and sessions there are at once; beyond that, the oldest ends."""
WRONG_TRIES = 20
WRONG_TRIES_S = 60.0
"""How many wrong tries are allowed in this time; further ones are refused until it has passed."""
BELIEVED_S = 1.0
"""How long a token is trusted after the store was asked."""


class SignedInPerson(NamedTuple):
    """Who signs in, and their token in the store; None for the person at the terminal."""

    name: str
    token_id: str | None = None


class People(Protocol):
    """People's tokens in the store. Called on worker threads; raises Refusal if the store cannot be asked."""

    def has_form(self, text: str) -> bool:
        """Whether a text could be a token at all."""
        ...

    def find(self, text: str) -> tuple[SignedInPerson, bool] | None:
        """Whose token this is, and whether it has the right to decide; None if unknown."""
        ...

    def still_decides(self, token_id: str) -> bool:
        """Whether the token still has the right to decide and has not been revoked."""
        ...

    def mark(self) -> object:
        """A value that changes as soon as this machine knows of a revocation."""
        ...


class PageSession(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who is signed in."""

    key: bytes
    """A hash of the cookie."""
    proof: bytes
    """A hash of the proof, a secret that the page keeps where only its own origin, port included, can read it. Browsers
    send the cookie to every port of a machine; without the proof it only permits reading."""
    person: SignedInPerson
    ends_at_s: float


class Opened(NamedTuple):
    """A session that has just begun, with the two secrets that only the browser keeps."""

    cookie: str
    proof: str
    session: PageSession


class SignInFailed(msgspec.Struct, frozen=True, kw_only=True):
    """Why nobody was signed in."""

    status: int
    code: str
    message: str
    hint: str


class _Seen(NamedTuple):
    mark: object
    at_s: float


class SignIn:
    """The codes and sessions of one process. Safe from any thread."""

    def __init__(
        self,
        people: People,
        *,
        owner: str,
        now_s: Callable[[], float],
        new_secret: Callable[[], str] = lambda: secrets.token_urlsafe(CODE_BYTES),
    ) -> None:
        self._people = people
        self._owner = SignedInPerson(owner)
        self._now_s = now_s
        self._new_secret = new_secret
        self._codes: dict[bytes, tuple[SignedInPerson, float]] = {}
        self._sessions: dict[bytes, PageSession] = {}
        self._seen: dict[bytes, _Seen] = {}
        self._wrong: deque[float] = deque(maxlen=WRONG_TRIES)
        self._lock = threading.Lock()

    # -- codes ------------------------------------------------------------------------------------------------------

    def new_code(self, lasting_s: float, person: SignedInPerson | None = None) -> str:
        """A code that signs in once; without `person`, as the person who started the server."""
        code = self._new_secret()
        with self._lock:
            self._forget_old()
            if len(self._codes) >= CODES:
                del self._codes[next(iter(self._codes))]
            self._codes[_hash(code)] = (person or self._owner, self._now_s() + lasting_s)
        return code

    def by_code(self, code: str) -> Opened | SignInFailed:
        """Exchanges a code for a session and the cookie that proves it. A code works once."""
        with self._lock:
            person = self._take_code(code)  # first: wrong codes from a foreign page must not lock a person out
            if person is not None:
                return self._open_session(person)
            if self._is_crowded():
                return _TOO_MANY
            self._wrong.append(self._now_s())
            return _UNKNOWN

    def by_text(self, text: str) -> Opened | SignInFailed:
        """The same for what somebody typed: a code, or a person's token that may decide. May be slow."""
        if not self._people.has_form(text):
            return self.by_code(text)
        with self._lock:
            if self._is_crowded():
                return _TOO_MANY
        found = self._people.find(text)
        with self._lock:
            if found is None:
                self._wrong.append(self._now_s())
                return _UNKNOWN
            person, decides = found
            return self._open_session(person) if decides else _MAY_NOT

    def _take_code(self, code: str) -> SignedInPerson | None:
        self._forget_old()
        given = _hash(code)
        found = None
        for kept in self._codes:  # no early exit, so that timing reveals nothing
            if hmac.compare_digest(kept, given):
                found = kept
        return self._codes.pop(found)[0] if found is not None else None

    def _is_crowded(self) -> bool:
        return len(self._wrong) == WRONG_TRIES and self._now_s() - self._wrong[0] < WRONG_TRIES_S

    def _forget_old(self) -> None:
        now = self._now_s()
        self._codes = {key: kept for key, kept in self._codes.items() if kept[1] > now}
        self._sessions = {key: kept for key, kept in self._sessions.items() if kept.ends_at_s > now}
        self._seen = {key: seen for key, seen in self._seen.items() if key in self._sessions}

    # -- sessions ---------------------------------------------------------------------------------------------------

    def _open_session(self, person: SignedInPerson) -> Opened:
        self._forget_old()
        if len(self._sessions) >= SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        cookie, proof = self._new_secret(), self._new_secret()
        ends_at_s = self._now_s() + SESSION_S
        session = PageSession(key=_hash(cookie), proof=_hash(proof), person=person, ends_at_s=ends_at_s)
        self._sessions[session.key] = session
        return Opened(cookie, proof, session)

    def session(self, cookie: str) -> PageSession | None:
        """The session of this cookie, as far as this process knows."""
        if not cookie:
            return None
        given = _hash(cookie)
        with self._lock:
            session = self._sessions.get(given)
        if session is None or not hmac.compare_digest(session.key, given) or not self.is_open(session):
            return None
        return session

    def proves(self, session: PageSession, proof: str) -> bool:
        """Whether this is the session's proof."""
        return bool(proof) and hmac.compare_digest(session.proof, _hash(proof))

    def is_open(self, session: PageSession) -> bool:
        """False once it has expired or was ended."""
        with self._lock:
            return session.key in self._sessions and session.ends_at_s > self._now_s()

    def is_believed(self, session: PageSession) -> bool:
        """Whether the store need not be asked about this session now."""
        if session.person.token_id is None:
            return True
        with self._lock:
            seen = self._seen.get(session.key)
        return seen is not None and seen.mark == self._people.mark() and self._now_s() - seen.at_s < BELIEVED_S

    def look_again(self, session: PageSession) -> bool:
        """Whether the session's person may still decide; ends a session whose token was revoked. Asks the store."""
        token_id = session.person.token_id
        if token_id is None:
            return self.is_open(session)
        seen = _Seen(self._people.mark(), self._now_s())
        if not self._people.still_decides(token_id):
            self.end(session)
            return False
        with self._lock:
            if session.key not in self._sessions:
                return False
            self._seen[session.key] = seen
        return True

    def end(self, session: PageSession) -> None:
        with self._lock:
            self._sessions.pop(session.key, None)
            self._seen.pop(session.key, None)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


_ANOTHER = (
    "start `handrail up` in a terminal for a new link, or create a token: handrail token create NAME --rights decide"
)
_UNKNOWN = SignInFailed(
    status=403,
    code="SIGN_IN_REFUSED",
    message="this code is not valid: it was already used, or it is too old",
    hint=_ANOTHER,
)
_MAY_NOT = SignInFailed(
    status=403, code="SIGN_IN_REFUSED", message="this token is valid, but it may not decide", hint=_ANOTHER
)
_TOO_MANY = SignInFailed(
    status=429,
    code="TOO_MANY_TRIES",
    message="too many wrong codes",
    hint=f"wait {WRONG_TRIES_S:g} seconds, then try again",
)
