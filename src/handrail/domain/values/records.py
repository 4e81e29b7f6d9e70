"""A team's values as they are stored: one set per repository. No behaviour."""

from __future__ import annotations

from typing import Any

import msgspec

STREAM = "values:"


class ValueSet(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one repository. The id is the repository's path, or empty in a store without repositories."""

    id: str
    document: dict[str, Any]
    """As `values_set` took it."""
    version: int
    set_by: str
    updated_at: int

    @property
    def stream(self) -> str:
        return f"{STREAM}{self.id}"
