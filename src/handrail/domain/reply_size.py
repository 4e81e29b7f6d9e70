"""How much of a list fits into a reply, in bytes of JSON. Does not know what is listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

ShownT = TypeVar("ShownT")


def within(shown: Sequence[ShownT], room: int) -> list[ShownT]:
    """The first of these that fit into `room` bytes; always at least one, so that paging makes progress."""
    kept: list[ShownT] = []
    for one in shown:
        room -= len(msgspec.json.encode(one)) + 1
        if room < 0 and kept:
            break
        kept.append(one)
    return kept
