"""JSON Pointer (RFC 6901): parsing and building texts that name one place in a JSON value. Does not touch values."""

from __future__ import annotations

from collections.abc import Iterable

from handrail.kernel.errors import PatchFailed

LONGEST = 4000
"""The most characters in a pointer."""


def parts_of(pointer: str) -> list[str]:
    """The names on the path from the whole value to the place; empty for the whole value itself."""
    if pointer and not pointer.startswith("/"):
        raise PatchFailed(
            f"{_shown(pointer)} does not begin with /", hint='"" is the whole value, "/a/b" a place in it'
        )
    if len(pointer) > LONGEST:
        raise PatchFailed(f"a pointer of {len(pointer)} characters", hint=f"{LONGEST} is the most")
    return [_unescaped(part) for part in pointer.split("/")[1:]]


def pointer_to(parts: Iterable[str]) -> str:
    """The pointer made of these names."""
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)


def _unescaped(part: str) -> str:
    rest = part.replace("~0", "").replace("~1", "")
    if "~" in rest:
        raise PatchFailed(f"{_shown(part)} has a ~ that stands for nothing", hint="~0 stands for ~, and ~1 for /")
    return part.replace("~1", "/").replace("~0", "~")


def _shown(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}…"
