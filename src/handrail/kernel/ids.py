"""Ids, passed in rather than made here: a readable prefix, then 26 characters that sort by time.

The characters are a lower-case ULID: 48 bits of milliseconds and 80 random bits, in an alphabet without look-alikes.
"""

from __future__ import annotations

from typing import Protocol

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class Ids(Protocol):
    """A source of globally unique ids."""

    def new(self, prefix: str) -> str: ...


def id_text(prefix: str, ms: int, chance: int) -> str:
    """`prefix_` and 26 characters; ids with the same prefix sort by time."""
    number = (ms << 80) | (chance & ((1 << 80) - 1))
    letters = []
    for _ in range(26):
        number, digit = divmod(number, 32)
        letters.append(_ALPHABET[digit])
    return f"{prefix}_{''.join(reversed(letters))}"


class CountingIds:
    """Ids that count: `wf_1`, `wf_2`. For tests and examples."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def new(self, prefix: str) -> str:
        self._count[prefix] = self._count.get(prefix, 0) + 1
        return f"{prefix}_{self._count[prefix]}"
