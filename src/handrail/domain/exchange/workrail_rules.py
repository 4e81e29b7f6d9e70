"""Converts WorkRail's conditions and validation rules to ours. They are nearly the same; where they are not, the result
is None.

The output is plain data that `domain/guides/definition.py` accepts. The caller decides what to do with a rule that has
no equivalent here.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from handrail.domain.guides.conditions import describe
from handrail.domain.guides.definition import FLAGS_PATTERN, NESTING_MAX, RULE_FIELDS, Condition
from handrail.domain.guides.matcher import Matcher

_NUMBERS = ("gt", "gte", "lt", "lte")
_LEVELS_OF_A_VALUE = 24
"""Maximum depth of an `equals` value or a schema; a guide has room for 64 levels including the path to it."""


def condition(value: Any, depth: int = 1) -> dict[str, Any] | None:
    """The condition, or None if it cannot be expressed here."""
    if not isinstance(value, dict) or depth > NESTING_MAX - 1:  # a loop may wrap one more around it
        return None
    made: dict[str, Any] = {}
    for key, inner in value.items():
        kept: Any
        if key == "var":
            kept = inner if isinstance(inner, str) and inner else None
        elif key in ("equals", "not_equals"):
            if "var" not in value or _levels(inner) > _LEVELS_OF_A_VALUE:
                return None
            made[key] = inner
            continue
        elif key in _NUMBERS:
            kept = inner if _is_number(inner) and "var" in value else None
        elif key in ("and", "or"):
            kept = _all_conditions(inner, depth)
        else:
            kept = condition(inner, depth + 1) if key == "not" else None
        if kept is None:
            return None
        made[key] = kept
    return made


def _all_conditions(value: Any, depth: int) -> list[dict[str, Any]] | None:
    if not isinstance(value, list):
        return None
    found = [condition(entry, depth + 1) for entry in value]
    kept = [entry for entry in found if entry is not None]
    return kept if len(kept) == len(found) else None


def in_words(value: Any) -> str:
    """A condition in plain words, or as JSON if it cannot be expressed here."""
    made = condition(value)
    return json_text(value) if made is None else describe(msgspec.convert(made, Condition))


def joined(conditions: list[dict[str, Any]]) -> dict[str, Any] | None:
    """One condition that requires all of these; None if there is nothing to require."""
    needed = [entry for entry in conditions if entry]
    if len(needed) > 1:
        return {"and": needed}
    return needed[0] if needed else None


def criteria(value: Any, matcher: Matcher | None) -> tuple[list[dict[str, Any]] | dict[str, Any] | None, list[Any]]:
    """The criteria of a step, and those without an equivalent here. A composition is converted entirely or not at all:
    part of it would demand something else."""
    if isinstance(value, dict) and "type" not in value:
        made = _composition(value, matcher, 1)
        return made, [value] if made is None else []
    listed = value if isinstance(value, list) else [value]
    rules = [_rule(entry, matcher) for entry in listed]
    kept = [rule for rule in rules if rule is not None]
    return kept or None, [entry for entry, rule in zip(listed, rules, strict=True) if rule is None]


def _composition(value: dict[str, Any], matcher: Matcher | None, depth: int) -> dict[str, Any] | None:
    if len(value) != 1 or depth > NESTING_MAX:
        return None
    key, inner = next(iter(value.items()))
    if key == "not":
        branch = _branch(inner, matcher, depth)
        return None if branch is None else {"not": branch}
    if key not in ("and", "or") or not isinstance(inner, list) or not inner:
        return None
    branches = [_branch(entry, matcher, depth) for entry in inner]
    return None if None in branches else {key: branches}


def _branch(value: Any, matcher: Matcher | None, depth: int) -> dict[str, Any] | None:
    if isinstance(value, dict) and "type" not in value:
        return _composition(value, matcher, depth + 1)
    return _rule(value, matcher)


def _rule(value: Any, matcher: Matcher | None) -> dict[str, Any] | None:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str) or value["type"] not in RULE_FIELDS:
        return None
    fields = _RULES[value["type"]](value, matcher)
    if fields is None:
        return None
    message = value.get("message")
    said = message if isinstance(message, str) and message else f"The output breaks a rule of type {value['type']}."
    made = {"type": value["type"], "message": said, **fields}
    if value.get("condition") is not None:
        holds = condition(value["condition"])
        if holds is None:
            return None
        made |= {"condition": holds} if holds else {}
    return made


def _contains(value: dict[str, Any], _matcher: Matcher | None) -> dict[str, Any] | None:
    said = value.get("value")
    return {"value": said} if isinstance(said, str) and said else None


def _regex(value: dict[str, Any], matcher: Matcher | None) -> dict[str, Any] | None:
    pattern = value.get("pattern")
    if not isinstance(pattern, str) or not pattern:
        return None
    allowed = FLAGS_PATTERN.strip("^$[]*")
    flags = "".join(flag for flag in dict.fromkeys(str(value.get("flags") or "")) if flag in allowed)
    if matcher is not None and matcher.pattern_problem(pattern, flags) is not None:
        return None
    return {"pattern": pattern, "flags": flags} if flags else {"pattern": pattern}


def _length(value: dict[str, Any], _matcher: Matcher | None) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for key in ("min", "max"):
        number = value.get(key)
        if number is not None:
            if not _is_number(number) or number < 0 or number != int(number):
                return None
            found[key] = int(number)
    return found if found and found.get("min", 0) <= found.get("max", found.get("min", 0)) else None


def _schema(value: dict[str, Any], matcher: Matcher | None) -> dict[str, Any] | None:
    schema = value.get("schema")
    if not isinstance(schema, dict) or _levels(schema) > _LEVELS_OF_A_VALUE:
        return None
    if matcher is not None and matcher.schema_problem(schema) is not None:
        return None
    return {"schema": schema}


_RULES = {"contains": _contains, "regex": _regex, "length": _length, "schema": _schema}


def json_text(value: Any) -> str:
    """A value as it would appear in a file."""
    return json.dumps(value, ensure_ascii=False)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max((_levels(entry) for entry in inner), default=0)
