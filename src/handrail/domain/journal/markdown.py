"""Texts of agents inside a Markdown page: shown as they are, never as structure, markup or links of the page.

What they wrote may be hostile or just unlucky. What a page is about is not known here (`reporting.py`, `deciding.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\](?=[(\[:])")
_MARKER = re.compile(r"[#>|=~]|[-+*_](?=\s|$|[-+*_])")
_NUMBER = re.compile(r"(\d+)([.)])")
_TICKS = re.compile(r"\\?`+")


def inline(text: str) -> str:
    """A text on one line, as part of a paragraph, a heading or a list."""
    line = _paired(_harmless(" ".join(_printable(text).split())))
    if numbered := _NUMBER.match(line):
        return f"{numbered[1]}\\{line[numbered.end(1) :]}"
    return f"\\{line}" if _MARKER.match(line) else line


def quoted(text: str) -> Iterator[str]:
    """A text as a quotation, which it cannot leave; its own line breaks are kept. Nothing for an empty one."""
    lines = [_harmless(_printable(line)).rstrip() for line in text.strip().splitlines()]
    for line in lines:
        yield f"> {line}".rstrip()
    if lines:
        yield ""


def code(text: str) -> str:
    """A name or command, letter by letter."""
    line = _printable(text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    room = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{room}{line}{room}{fence}" if line.strip() else f"`{line or ' '}`"


def day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")


def minute(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _paired(line: str) -> str:
    """With no backtick that could pair with one outside this text, and so set free what stands between others."""
    runs = list(_TICKS.finditer(line))
    kept: set[int] = set()
    number = 0
    while number < len(runs):
        opening = runs[number][0]
        closing = next((later for later in range(number + 1, len(runs)) if runs[later][0] == opening), None)
        if opening.startswith("`") and closing is not None:
            kept |= {number, closing}
            number = closing
        number += 1
    found, end = "", 0
    for number, run in enumerate(runs):
        found += line[end : run.start()] + (run[0] if number in kept else run[0].replace("`", "&#96;"))
        end = run.end()
    return found + line[end:]


def _harmless(line: str) -> str:
    """Without tags, links, pictures and link targets. Entities, because a backslash may stand before them."""
    return _LINK.sub("&#93;", _TAG.sub("&lt;", line))
