"""A repository registered in a store, for stores that serve several."""

from __future__ import annotations

import msgspec


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """One repository, by its absolute path."""

    id: str
    path: str
    name: str
    created_at: int

    @property
    def stream(self) -> str:
        return self.id
