"""How much of a list goes into a reply: little, unless the caller gives a limit. Each tool decides which entries."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

REPLY = 7_000
"""Bytes for a list in a reply if the caller gave no limit: with the rest of the reply it stays below 8 kB."""
LONG_REPLY = 1_000_000
"""The same if the caller gave one. The first entry is shown whole, however long it is."""


def bounds(limit: int | UnsetType, default: int) -> tuple[int, int]:
    """How many entries a reply may have, and how many bytes they may take together."""
    return (default, REPLY) if limit is UNSET else (limit, LONG_REPLY)
