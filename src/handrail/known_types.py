"""Registers types with the validator one thread at a time, before several threads use them.

msgspec builds its description of a type on first use and publishes it before it is complete: a second thread that uses
the type at that moment follows a missing pointer, and the process dies. Code that converts while other threads may be
converting too must call `make_known` first. Not a cache: msgspec keeps what it learned with the type.
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
