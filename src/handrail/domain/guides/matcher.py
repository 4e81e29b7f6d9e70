"""The port for what guides need and pure Python cannot do safely: patterns and JSON Schemas written by strangers.

Not an engine. `handrail.outside.linear_matcher` implements it with engines that run in linear time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Matcher(Protocol):
    """Patterns and schemas, checked before use. No method raises because of what an author or agent wrote."""

    def pattern_problem(self, pattern: str, flags: str) -> str | None:
        """Why `pattern` cannot be used, and what to do instead; None if it can be used."""

    def matches(self, pattern: str, flags: str, text: str) -> bool:
        """Whether `pattern`, already checked, occurs anywhere in `text`."""

    def schema_problem(self, schema: Mapping[str, Any]) -> str | None:
        """Why `schema` is not a usable JSON Schema, and what to do instead; None if it is one."""

    def schema_errors(self, schema: Mapping[str, Any], value: Any) -> tuple[str, ...]:
        """What in `value` violates `schema`, each as "path: reason", at most five; empty if it conforms."""
