"""TOML that may be hostile as plain data: bounded in size, depth and digits. Python's own parser takes quadratic time
and memory for long dotted keys, and fails in its own ways for deep nesting and long numbers."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from handrail.kernel.limits import TOML_BYTES, TOML_DEPTH

INTEGER_BITS = 63
"""The largest number that TOML promises to keep."""

_MARK = re.compile(r"""[\[\]{}.,=\n#'"]""")
_BASIC_END = re.compile(r'\\.|"|\n', re.DOTALL)
_LONG_BASIC_END = re.compile(r'\\.|"""', re.DOTALL)
_TOO_DEEP = f"it is nested more than {TOML_DEPTH} levels deep"
_TOO_LARGE = "a number in it is out of range"


def parse_toml(written: bytes | str) -> dict[str, Any]:
    """What a text says. Raises ValueError with the reason, which completes a sentence that begins with the file."""
    if len(written) > TOML_BYTES:
        raise ValueError(f"it is larger than {TOML_BYTES} bytes")
    text = written if isinstance(written, str) else _decoded(written)
    _check_shape(text)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ValueError(f"it is not valid TOML: {problem}") from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError:  # more digits than Python converts
        raise ValueError(_TOO_LARGE) from None
    _check_values(found)
    return found


def _decoded(written: bytes) -> str:
    try:
        return written.decode()
    except UnicodeDecodeError as problem:
        raise ValueError(f"it is not valid TOML: {problem}") from None


def _check_shape(text: str) -> None:
    """Refuses what would cost the parser too much: brackets in brackets, and keys of many parts. A mistake in the text
    may confuse this, but only behind the place where the parser stops."""
    if text.count("[") + text.count("{") + text.count(".") <= TOML_DEPTH:
        return
    depth = dots = place = 0
    while (mark := _MARK.search(text, place)) is not None:
        place = mark.end()
        said = mark.group()
        if said in "\"'":
            place = _string_end(text, mark.start())
        elif said == "#":
            place = text.find("\n", place)
            if place < 0:
                return
        elif said == ".":
            dots += 1
        else:
            dots = 0
            depth += (said in "[{") - (said in "]}")
        if depth > TOML_DEPTH or dots > TOML_DEPTH:
            raise ValueError(_TOO_DEEP)


def _string_end(text: str, start: int) -> int:
    """The place behind a string."""
    quote = text[start]
    if text.startswith(quote * 3, start):
        return _long_string_end(text, start + 3, quote)
    place = start + 1
    if quote == "'":
        ends = [end for end in (text.find(quote, place), text.find("\n", place)) if end >= 0]
        return min(ends) + 1 if ends else len(text)
    while (mark := _BASIC_END.search(text, place)) is not None:
        place = mark.end()
        if mark.group() in '"\n':
            return place
    return len(text)


def _long_string_end(text: str, place: int, quote: str) -> int:
    if quote == "'":
        end = text.find("'''", place)
        place = end + 3 if end >= 0 else len(text)
    else:
        while (mark := _LONG_BASIC_END.search(text, place)) is not None and mark.group() != '"""':
            place = mark.end()
        place = mark.end() if mark is not None else len(text)
    for _ in range(2):  # two more quotes may belong to the text
        place += text.startswith(quote, place)
    return place


def _check_values(found: dict[str, Any]) -> None:
    waiting: list[tuple[Any, int]] = [(found, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > TOML_DEPTH:
            raise ValueError(_TOO_DEEP)
        if isinstance(value, dict):
            waiting += [(one, depth + 1) for one in value.values()]
        elif isinstance(value, list):
            waiting += [(one, depth + 1) for one in value]
        elif isinstance(value, int) and value.bit_length() > INTEGER_BITS:
            raise ValueError(_TOO_LARGE)
