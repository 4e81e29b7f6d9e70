"""The `Matcher` of guides over engines that run in linear time: RE2 for patterns, jsonschema-rs for schemas.

A hostile pattern cannot hang either of them, and no schema causes anything to be fetched. Both are imported on first
use: most calls need neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.domain.guides.definition import path_text
from handrail.kernel.late import late_module
from handrail.kernel.limits import PATTERN_MEMORY_BYTES
from handrail.kernel.wording import did_you_mean

if TYPE_CHECKING:
    import jsonschema_rs
    import re2
else:
    jsonschema_rs = late_module("jsonschema_rs")
    re2 = late_module("re2")

COMPILED_MAX = 32
"""How many patterns and how many schemas are kept compiled. Times PATTERN_MEMORY_BYTES, this bounds their memory."""
ERRORS_MAX = 5
REASON_MAX = 200
"""The longest reason, in characters: an engine's message quotes the value, however long it is."""
LISTED_VALUES_MAX = 2000
"""Outputs with more values get only their first error: the engine can stop early only after the first."""

_NO_BACKTRACKING = "patterns run in linear time (RE2), so there is no look-around and there are no back-references"
_WAY_OUT = 'use several rules combined with "and" and "not" instead'
_SCHEMA_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")


class LinearMatcher:
    """Implements `handrail.domain.guides.definition.Matcher`."""

    def pattern_problem(self, pattern: str, flags: str) -> str | None:
        try:
            _compiled_pattern(pattern, flags)
        except re2.error as error:
            return _pattern_reason(error)
        return None

    def matches(self, pattern: str, flags: str, text: str) -> bool:
        return _compiled_pattern(pattern, flags).search(text.encode("utf-8", "replace")) is not None

    def schema_problem(self, schema: Mapping[str, Any]) -> str | None:
        try:
            _compiled_schema(msgspec.json.encode(schema))
        except jsonschema_rs.ValidationError as error:
            return _schema_reason(error.message, tuple(error.instance_path), error.instance)
        except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as error:
            return _schema_reason(str(error), (), None)
        return None

    def schema_errors(self, schema: Mapping[str, Any], value: Any) -> tuple[str, ...]:
        validator = _compiled_schema(msgspec.json.encode(schema))
        try:
            if _has_more_values_than(LISTED_VALUES_MAX, value):
                validator.validate(value)
                return ()
            errors = list(validator.iter_errors(value))[:ERRORS_MAX]
        except jsonschema_rs.ValidationError as error:
            errors = [error]
        except ValueError as error:
            return (f"top level: {_short(str(error))}",)
        return tuple(f"{path_text(tuple(one.instance_path)) or 'top level'}: {_short(one.message)}" for one in errors)


@lru_cache(maxsize=COMPILED_MAX)
def _compiled_pattern(pattern: str, flags: str) -> Any:
    options = re2.Options()
    options.max_mem = PATTERN_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    acting = "".join(flag for flag in "ims" if flag in flags)
    compiled = re2.compile((f"(?{acting})" if acting else "").encode() + pattern.encode("utf-8", "replace"), options)
    re2.purge()  # its own cache would hold four times as many
    return compiled


@lru_cache(maxsize=COMPILED_MAX)
def _compiled_schema(schema: bytes) -> Any:
    linear = jsonschema_rs.RegexOptions(size_limit=PATTERN_MEMORY_BYTES, dfa_size_limit=PATTERN_MEMORY_BYTES)
    return jsonschema_rs.validator_for(schema.decode(), pattern_options=linear, offline=True)


def _pattern_reason(error: Exception) -> str:
    said = error.args[0]
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    kind, _, detail = text.partition(": ")
    if kind == "invalid perl operator":
        return f'"{detail}" cannot be used: {_NO_BACKTRACKING}; {_WAY_OUT}'
    if kind == "invalid escape sequence":
        if detail[1:].isdigit() or detail == "\\k":
            return f'"{detail}" cannot be used: {_NO_BACKTRACKING}; {_WAY_OUT}'
        other = {"\\Z": "; write \\z for the end", "\\u": "; write \\x{20AC} for a character by its number"}.get(
            detail, ""
        )
        return f'"{detail}" means nothing in a pattern (RE2 syntax){other}'
    if kind == "invalid repetition size":
        return f'"{detail}" cannot be used: a part may be repeated at most 1000 times, all repeats around it counted'
    if "too large" in text:
        return "the pattern is too large when compiled; make it shorter or repeat less"
    return f"the pattern does not compile: {_short(text)}"


def _schema_reason(message: str, path: tuple[str | int, ...], value: Any) -> str:
    place = f" at {path_text(path)}" if path else ""
    if "Retrieval is disabled" in message or "not present in a registry" in message:
        resource = message.split("'")[1] if message.count("'") > 1 else "a reference"
        return f'"{resource}" is outside this schema and nothing is fetched: copy it under $defs and refer to that'
    if message.endswith('is not a "regex"'):
        return f"the pattern{place} cannot be used: {_short(message)}; {_NO_BACKTRACKING}"
    if path[-1:] == ("type",) and isinstance(value, str):
        known = f"{', '.join(_SCHEMA_TYPES)}{did_you_mean(value, _SCHEMA_TYPES)}"
        return f'this is not a JSON Schema{place}: there is no type "{value}"; types: {known}'
    return f"this is not a JSON Schema{place}: {_short(message)}"


def _has_more_values_than(most: int, value: Any) -> bool:
    pending, seen = [value], 0
    while pending and seen <= most:
        one = pending.pop()
        seen += 1
        if isinstance(one, dict):
            pending.extend(one.values())
        elif isinstance(one, list):
            pending.extend(one)
    return seen > most


def _short(text: str) -> str:
    return text if len(text) <= REASON_MAX else f"{text[:REASON_MAX]}…"
