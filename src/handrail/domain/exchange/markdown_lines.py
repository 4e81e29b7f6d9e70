"""Splits Markdown into lines, as far as check lists need it: headings, items with a box, and text.

Boxes within fenced code and comments are text. Text that would be read as something else is escaped with a backslash;
the same rule adds and removes it, so that whatever is written can be read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

TAB = 4
_ITEM = re.compile(r"([ \t]*)([-*+]|[0-9]{1,9}[.)])([ \t]+)\[([ xX~/-])\](?:[ \t]+(.*))?$", re.DOTALL)
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$", re.DOTALL)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)$", re.DOTALL)
_COMMENT = re.compile(r"[ \t]*<!--")
_ESCAPED = re.compile(r"([ \t]*)(\\*)(.*)$", re.DOTALL)


class Line(NamedTuple):
    """A line and its kind: `heading`, `item`, `text`, or `code`, which is text taken verbatim."""

    kind: str
    text: str
    indent: int = 0
    content: int = 0
    """Columns before an item's text."""
    mark: str = ""
    """The character in an item's box; for a heading, its `#` signs."""


def lines_of(text: str) -> Iterator[Line]:
    """Every line of a text."""
    rows = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    places = _Places(rows)
    number = 0
    while number < len(rows):
        end = places.end_of_block(number)
        if end is not None:
            for row in rows[number : end + 1]:
                yield Line("code", row, indent_of(row))
            number = end + 1
            continue
        yield _line(rows[number])
        number += 1


def _line(row: str) -> Line:
    item = _ITEM.match(row)
    if item is not None:
        before, sign, gap, mark, text = item.groups()
        indent = len(before.expandtabs(TAB))
        return Line("item", (text or "").strip(), indent, indent + len(sign) + min(len(gap), 4), mark.lower())
    heading = _HEADING.match(row)
    if heading is not None:
        return Line("heading", (heading.group(2) or "").strip(), 0, 0, heading.group(1))
    return Line("text", row, indent_of(row))


def indent_of(row: str) -> int:
    """Columns of whitespace at the start of a line."""
    blanks = row[: len(row) - len(row.lstrip(" \t"))]
    return len(blanks.expandtabs(TAB))


def without_indent(row: str, columns: int) -> str:
    """A line with at most this many columns of leading whitespace removed."""
    at = column = 0
    while at < len(row) and column < columns and row[at] in " \t":
        width = 1 if row[at] == " " else TAB - column % TAB
        if column + width > columns:
            return " " * (column + width - columns) + row[at + 1 :]
        column += width
        at += 1
    return row[at:]


class _Places:
    """Where comments end and fences can be closed, last first. Those already passed are dropped, so that finding all of
    them takes no longer than reading the text."""

    def __init__(self, rows: Sequence[str]) -> None:
        self._rows = rows
        self._comments: list[int] = []
        self._closing: dict[str, list[tuple[int, int, int]]] = {"`": [], "~": []}
        """For each fence character: the line, the length of its fence, and the longest from there on."""
        for number in range(len(rows) - 1, -1, -1):
            if "-->" in rows[number]:
                self._comments.append(number)
            fence = _FENCE.match(rows[number])
            if fence is not None and not fence.group(2).strip():
                places, length = self._closing[fence.group(1)[0]], len(fence.group(1))
                places.append((number, length, max(length, places[-1][2] if places else 0)))

    def end_of_block(self, number: int) -> int | None:
        """The last line of the fenced code or comment that begins here; None if none begins, or it is never closed."""
        row = self._rows[number]
        fence = _FENCE.match(row)
        if fence is not None and not (fence.group(1)[0] == "`" and "`" in fence.group(2)):
            return self._closing_line(number, fence.group(1))
        if not _COMMENT.match(row):
            return None
        if "-->" in row:
            return number
        while self._comments and self._comments[-1] <= number:
            self._comments.pop()
        return self._comments[-1] if self._comments else None

    def _closing_line(self, number: int, fence: str) -> int | None:
        places = self._closing[fence[0]]
        while places and places[-1][0] <= number:
            places.pop()
        if not places or places[-1][2] < len(fence):
            return None
        return next(place for place, length, _ in reversed(places) if length >= len(fence))


# -- text that must stay text -----------------------------------------------------------------------------------------


def _is_special(text: str) -> bool:
    """Whether a line would be read as something other than text."""
    return any(form.match(text) for form in (_ITEM, _HEADING, _FENCE, _COMMENT))


def shielded(text: str) -> Iterator[str]:
    """The lines of a text as written into a check list: those that would be read as items, headings or the start of
    code get a backslash. Code that is closed within the text stays as it is."""
    rows = text.split("\n")
    places = _Places(rows)
    number = 0
    while number < len(rows):
        end = places.end_of_block(number)
        if end is not None:
            yield from rows[number : end + 1]
            number = end + 1
            continue
        before, slashes, rest = _parts(rows[number])
        yield f"{before}\\{slashes}{rest}" if _is_special(before + rest) else rows[number]
        number += 1


def unshielded(row: str) -> str:
    """A line of text without its escaping backslash."""
    before, slashes, rest = _parts(row)
    return f"{before}{slashes[1:]}{rest}" if slashes and _is_special(before + rest) else row


def _parts(row: str) -> tuple[str, str, str]:
    found = _ESCAPED.match(row)
    assert found is not None, "every line fits"
    return found[1], found[2], found[3]
