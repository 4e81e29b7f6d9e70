"""JSON values compared by JSON's rules where Python's differ. Values only; patches and conditions are the domain's."""

from __future__ import annotations

from typing import Any


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: true is not 1, 1 is 1.0, and the members of an object have no order."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
