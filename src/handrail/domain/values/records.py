"""A team's values as they are kept: one set for each repository. No behaviour."""

from __future__ import annotations

from typing import Any

import msgspec

STREAM = "values:"


class ValueSet(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one repository, whose path is the id; of a store without repositories, the empty text."""

    id: str
    document: dict[str, Any]
    """As `values_set` took it."""
    version: int
    set_by: str
    updated_at: int

    @property
    def stream(self) -> str:
        return f"{STREAM}{self.id}"
