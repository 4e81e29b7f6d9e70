"""Seals on kept answers: an answer to a repeated call is in no event, so it carries a hash of itself and of everything
it is kept under. An older store may hold answers without a seal, which are plain JSON; they expire within days."""

from __future__ import annotations

import hashlib

import msgspec

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.records import KeyWrite

MARK = b"\0"
"""Begins a sealed answer. No JSON does. Then come the seal and the expiry, both of a fixed length."""
_SEAL, _EXPIRY = 32, 16
_BEGIN = len(MARK) + _SEAL
_HEAD = _BEGIN + _EXPIRY


def sealed(key: KeyWrite) -> KeyWrite:
    """The same key with its answer sealed."""
    rest = b"%016x" % key.expires_ms + key.response
    return key._replace(response=MARK + _seal(key.scope, key.key, key.request_hash, rest) + rest)


def opened(stored: bytes, scope: str, key: str, request_hash: str) -> bytes:
    """The answer itself. Raises StoreUnusable if it is not the one that was kept."""
    if not stored.startswith(MARK):
        return stored
    if stored[len(MARK) : _BEGIN] != _seal(scope, key, request_hash, stored[_BEGIN:]):
        raise StoreUnusable(
            f"the answer kept for the key {key} of {scope} is damaged; nothing was done again",
            hint="look whether the call was done, then repeat it with another key if not; "
            "`handrail db rebuild` forgets damaged answers",
        )
    return stored[_HEAD:]


def is_right(scope: str, key: str, request_hash: str, stored: bytes, expires_ms: int) -> bool:
    """Whether everything about a kept answer is as it was kept, as far as anything shows it."""
    if stored.startswith(MARK):
        seal = _seal(scope, key, request_hash, stored[_BEGIN:])
        return (stored[len(MARK) : _BEGIN], stored[_BEGIN:_HEAD]) == (seal, b"%016x" % expires_ms)
    try:
        msgspec.json.decode(stored)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _seal(scope: str, key: str, request_hash: str, rest: bytes) -> bytes:
    whole = msgspec.json.encode([scope, key, request_hash]) + rest
    return hashlib.blake2b(whole, digest_size=_SEAL // 2).hexdigest().encode()
