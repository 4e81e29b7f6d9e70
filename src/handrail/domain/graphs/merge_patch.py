"""JSON Merge Patch (RFC 7386): a patch has the shape of what it changes, and null removes a member. Pure."""

from __future__ import annotations

from typing import Any


def merged(value: Any, patch: Any) -> Any:
    """The value with the patch applied. Neither is modified."""
    if not isinstance(patch, dict):
        return patch
    kept = value if isinstance(value, dict) else {}
    result = {key: member for key, member in kept.items() if key not in patch}
    laid = {key: merged(kept.get(key), member) for key, member in patch.items() if member is not None}
    # Existing members keep their order; new ones come last.
    return {key: (laid[key] if key in laid else result[key]) for key in kept if key in laid or key in result} | laid
