"""Types made known to the validator by one thread at a time, before several use them.

msgspec learns a type when it first meets it, and shows what it has so far before it has learned all of it: a second
thread that meets the same type in that moment follows a pointer that is not there yet, and the process dies. Whoever
converts where other threads may be converting too calls `make_known` first. Not a cache: what is learned stays with the
type.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

_learning = threading.Lock()
_known: set[Any] = set()


def make_known(*kinds: Any) -> None:
    """Returns once msgspec knows all of these types and the types within them."""
    for kind in kinds:
        if kind not in _known:
            with _learning:
                msgspec.json.Decoder(kind)
                _known.add(kind)
