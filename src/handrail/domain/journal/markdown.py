"""Agents' texts inside a Markdown page: shown as they were typed, never as structure, markup or links of the page.

What they wrote may be hostile or just unlucky. Code between backticks and emphasis keep their meaning. What a page is
about is not known here (`decision_log.py`, `surfaces/report/markdown.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from handrail.kernel.wording import printable_line

_MARKUP = re.compile(
    r"&(?=#?\w+;)"  # an entity
    r"|<(?=[A-Za-z/!?])"  # a tag, a comment, or an address in angle brackets
    r"|\](?=[(\[:]|$)"  # the end of a link's text or name; at the end of a text, a page may go on with a colon
    r"|\\(?=[!-/:-@\[-`{-~]|$)"  # a backslash that would vanish, and take the meaning of the next character with it
    r"|`"  # half of a pair
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", "]": "&#93;", "\\": "&#92;", "`": "&#96;"}
_MARKER = re.compile(r"[#>|=~]|[-+*_](?=\s|$|[-+*_])")
_NUMBER = re.compile(r"(\d+)([.)])")
_TICKS = re.compile(r"`+")
_FENCE = re.compile(r"(`{3,}|~{3,}) *([\w+#.-]*)")
_LIKE_A_FENCE = re.compile(r"[ >*+\-\d.)]*(`{3}|~{3})")
_INDENTED = " " * 4
"""What makes a line code without any mark."""


def inline(text: str) -> str:
    """A text on one line, as part of a paragraph, a heading or a list."""
    line = _shown(printable_line(text))
    if numbered := _NUMBER.match(line):
        return f"{numbered[1]}\\{line[numbered.end(1) :]}"
    return f"\\{line}" if _MARKER.match(line) else line


def cell(text: str) -> str:
    """A text on one line that stays in its cell of a table: a bar would begin the next one, even between backticks."""
    return _shown(printable_line(text), apart="|").replace("|", "&#124;")


def quoted(text: str) -> Iterator[str]:
    """A text as a quotation, which it cannot leave; its own line breaks are kept. Nothing for an empty one."""
    lines = [_printable(line).rstrip() for line in text.strip().splitlines()]
    for line in _quotable(lines):
        yield f"> {line}".rstrip()
    if lines:
        yield ""


def code(text: str) -> str:
    """A name or command, shown literally."""
    line = _printable(text)
    longest = max(map(len, _TICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    is_padded = line.startswith(" ") and line.endswith(" ")  # readers of Markdown take one off at each end
    room = " " if line.startswith("`") or line.endswith("`") or is_padded else ""
    return f"{fence}{room}{line}{room}{fence}" if line.strip() else f"`{line or ' '}`"


def day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")


def minute(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _shown(line: str, apart: str = "\n") -> str:
    """The line with its code letter by letter and all else as text. A backtick without a partner is text: it could pair
    with one outside, and set free what stands between others. So is code in which `apart` stands."""
    runs = list(_TICKS.finditer(line))
    found, end, number = "", 0, 0
    while number < len(runs):
        opening = runs[number]
        partner = next((later for later in range(number + 1, len(runs)) if runs[later][0] == opening[0]), None)
        number += 1
        if partner is not None and apart not in line[opening.end() : runs[partner].start()]:
            found += _text(line[end : opening.start()]) + line[opening.start() : runs[partner].end()]
            end = runs[partner].end()
            number = partner + 1
    return found + _text(line[end:])


def _text(part: str) -> str:
    """A part that holds no code: no tag, link, picture or entity in it. All become entities, which nothing undoes: a
    backslash before one would, and is one itself."""
    return _MARKUP.sub(lambda sign: _ENTITIES[sign[0]], part)


# -- quotations -------------------------------------------------------------------------------------------------------


def _quotable(lines: Sequence[str]) -> Iterator[str]:
    """Lines as they stand in a quotation. In a block of code an entity would show as such, and not every reader of
    Markdown knows such a block when it is quoted: so where code looks like markup, each line is marked by itself."""
    fences = [_FENCE.fullmatch(line) for line in lines]
    if any(_LIKE_A_FENCE.match(line) and not fence for line, fence in zip(lines, fences, strict=True)):
        # a fence that nobody reads the same
        yield from (_line_outside_fences(line).replace("~~~", "&#126;~~") for line in lines)
        return
    at = 0
    while at < len(lines):
        opening = fences[at]
        if opening is None:
            yield _line_outside_fences(lines[at])
            at += 1
            continue
        closing = next((later for later in range(at + 1, len(lines)) if _closes(fences[later], opening)), len(lines))
        yield from _block(lines[at : closing + 1], is_closed=closing < len(lines))
        at = closing + 1


def _line_outside_fences(line: str) -> str:
    """A line outside of fences."""
    shown = _shown(line)
    return f"   {code(line.strip())}" if line.startswith(_INDENTED) and shown != line else shown


def _closes(fence: re.Match[str] | None, opening: re.Match[str]) -> bool:
    return fence is not None and not fence[2] and fence[1].startswith(opening[1])


def _block(lines: Sequence[str], *, is_closed: bool) -> Iterator[str]:
    """A block of code with its fences."""
    inner = lines[1:-1] if is_closed else lines[1:]
    if all(_text(line) == line for line in inner):
        yield from lines
        return
    yield ""
    yield from (f"{code(line)}\\" if line else "\\" for line in inner[:-1])
    yield from (code(line) for line in inner[-1:])
    yield ""
