"""Facts as they are stored: subject, predicate, object, and source. No behaviour."""

from __future__ import annotations

from typing import Any

import msgspec

STREAM = "facts"


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One fact. Its id is derived from what it says, so that stating it again does not make a second one."""

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
