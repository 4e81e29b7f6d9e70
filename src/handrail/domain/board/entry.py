"""An entry of a board: a value under a key, for everybody to read. The record as it is stored; no behaviour."""

from __future__ import annotations

from typing import Any

import msgspec

DEFAULT = "default"
"""The board of a key that names none."""


class BoardEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry. Its id is its key, which begins with its board's name and a colon."""

    id: str
    namespace: str
    value: dict[str, Any]
    """The value under `value`: any JSON, wrapped so that null can be told from no value at all."""
    tags: list[str]
    version: int
    """The number of the event that set it, within its board."""
    set_by: str
    created_at: int
    updated_at: int
    expires_at: int | None

    @property
    def stream(self) -> str:
        return board_stream(self.namespace)


def board_stream(namespace: str) -> str:
    return f"bb:{namespace}"
