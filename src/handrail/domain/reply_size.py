"""How much of a list fits into a reply, in bytes of JSON. Does not know what is listed.

How much of a list goes into a reply: little, unless the caller gives a limit. Each tool decides which entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

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


REPLY = 7_000
"""Bytes for a list in a reply if the caller gave no limit: with the rest of the reply it stays below 8 kB."""
LONG_REPLY = 1_000_000
"""The same if the caller gave one. The first entry is shown whole, however long it is."""


def bounds(limit: int | UnsetType, default: int) -> tuple[int, int]:
    """How many entries a reply may have, and how many bytes they may take together."""
    return (default, REPLY) if limit is UNSET else (limit, LONG_REPLY)
