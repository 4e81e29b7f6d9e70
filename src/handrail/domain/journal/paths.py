"""File names as JSON-safe text, and back, without loss. Not for display: nothing is shortened or prettified.

A name is bytes. Almost all are UTF-8 and are used as they are, spaces, newlines and all: JSON can carry them. A name
that is not UTF-8, or that begins with a double quote, is put in double quotes with backslash escapes, the way git
prints such names: `"caf\\351.txt"`.
"""

from __future__ import annotations

import re

_ESCAPED = re.compile(rb"\\([0-7]{3}|[\\\"])")


def path_text(name: bytes) -> str:
    """The text that represents a name."""
    text = name.decode("utf-8", "surrogateescape")
    if not text.startswith('"') and text.isascii():
        return text
    is_utf8 = not any("\udc80" <= letter <= "\udcff" for letter in text)
    if is_utf8 and not text.startswith('"'):
        return text
    return '"' + "".join(_quoted(letter) for letter in text) + '"'


def path_bytes(text: str) -> bytes:
    """The name that a text represents."""
    if len(text) < 2 or not text.startswith('"') or not text.endswith('"'):
        return text.encode("utf-8", "surrogateescape")
    return _ESCAPED.sub(_unquoted, text[1:-1].encode("utf-8", "surrogateescape"))


def _quoted(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if "\udc80" <= letter <= "\udcff":
        return f"\\{ord(letter) - 0xDC00:03o}"
    return letter


def _unquoted(match: re.Match[bytes]) -> bytes:
    escaped = match.group(1)
    return bytes([int(escaped, 8)]) if len(escaped) == 3 else escaped
