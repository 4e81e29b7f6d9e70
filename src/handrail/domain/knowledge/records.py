"""Facts as they are kept: subject, predicate, object, and on whose word. No behaviour."""

from __future__ import annotations

from typing import Any

import msgspec

STREAM = "facts"


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One fact. Its id is made of what it says, so that saying it again is no second fact."""

    id: str
    subject: str
    predicate: str
    object: str
    source: str | None
    confidence: int
    """In thousandths."""
    said: dict[str, Any]
    """`provenance`, as it was given."""
    repository_path: str | None
    created_by: str
    created_at: int
    updated_at: int

    @property
    def stream(self) -> str:
        return STREAM
