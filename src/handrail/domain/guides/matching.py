"""The port for what guides need and pure Python cannot do safely: patterns and JSON Schemas that strangers wrote.

Not an engine. `handrail.outside.matching` implements it with engines that work in linear time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Matcher(Protocol):
    """Patterns and schemas, checked before use and then applied. No method raises for what an author or agent wrote."""

    def pattern_problem(self, pattern: str, flags: str) -> str | None:
        """Why `pattern` cannot be used, with a way out; None when it can."""

    def matches(self, pattern: str, flags: str, text: str) -> bool:
        """Whether `pattern`, which has no problem, is found anywhere in `text`."""

    def schema_problem(self, schema: Mapping[str, Any]) -> str | None:
        """Why `schema` is no usable JSON Schema, with a way out; None when it is one."""

    def schema_errors(self, schema: Mapping[str, Any], value: Any) -> tuple[str, ...]:
        """What in `value` breaks `schema`, each as "path: reason", at most five; empty when it fits."""
