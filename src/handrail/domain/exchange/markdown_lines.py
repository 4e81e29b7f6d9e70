"""Splits Markdown into lines, as far as check lists need it: headings, items with a box, plain items, and text.

Boxes within fenced code and comments are text. Code and comments that begin inside a list item end with it, closed or
not; anywhere else, those that are never closed are text. Text that would be read as something else is escaped with a
backslash; the same rule adds and removes it, so that whatever is written can be read back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

TAB = 4
DEEPER = 2
"""Minimum indentation of what is inside an item, in columns from where the item begins."""
_ITEM = re.compile(r"([ \t]*)([-*+]|[0-9]{1,9}[.)])([ \t]+)\[([ xX~/-])\](?:[ \t]+(.*))?$", re.DOTALL)
_LISTED = re.compile(r"[ \t]*([-*+]|[0-9]{1,9}[.)])([ \t]+|$)")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$", re.DOTALL)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)$", re.DOTALL)
_COMMENT = re.compile(r"[ \t]*<!--")
_ESCAPED = re.compile(r"([ \t]*)(\\*)(.*)$", re.DOTALL)


class MarkdownLine(NamedTuple):
    """A line and its kind: `heading`, `item`, `text`, `bullet`, which is text that begins a list item without a box, or
    `code`, which is text taken verbatim."""

    kind: str
    text: str
    indent: int = 0
    content: int = 0
    """Columns before an item's text."""
    mark: str = ""
    """The character in an item's box; for a heading, its `#` signs."""


def lines_of(text: str) -> Iterator[MarkdownLine]:
    """Every line of a text."""
    rows = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    places, items = _Places(rows), _OpenItems()
    number = 0
    while number < len(rows):
        block = places.block_at(number, items)
        if block is not None:
            for row in rows[number : block.end + 1]:
                yield MarkdownLine("code", row, indent_of(row))
            items.pass_block(rows[number])
            number = block.end + 1
            continue
        items.pass_line(rows[number])
        yield _line(rows[number])
        number += 1


def _line(row: str) -> MarkdownLine:
    item = _ITEM.match(row)
    if item is not None:
        before, sign, gap, mark, text = item.groups()
        indent = len(before.expandtabs(TAB))
        return MarkdownLine("item", (text or "").strip(), indent, indent + len(sign) + min(len(gap), 4), mark.lower())
    heading = _HEADING.match(row)
    if heading is not None:
        return MarkdownLine("heading", _without_closing((heading.group(2) or "").strip()), 0, 0, heading.group(1))
    return MarkdownLine("bullet" if _LISTED.match(row) else "text", row, indent_of(row))


def _without_closing(text: str) -> str:
    """The text of a heading without the `#` signs that may close it: `Title ##` says `Title`."""
    rest = text.rstrip("#")
    return rest.rstrip() if rest != text and (not rest or rest[-1] in " \t") else text


def as_heading(text: str) -> str:
    """A text as a heading of the first level, which is read as the same text."""
    return f"# {text}" if _without_closing(text) == text else f"# {text} #"


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


class _OpenItems:
    """The list items that the next line may be inside of, outermost first: for each where it begins, and where its text
    does."""

    def __init__(self, *first: tuple[int, int]) -> None:
        self._open = list(first)
        self._after_text = False

    def pass_line(self, row: str) -> None:
        """Takes note of a line that is neither code nor comment. Text right below text continues it, however little it
        is indented; anything else that is indented too little ends the items above."""
        if not row.strip():
            self._after_text = False
            return
        marker = _LISTED.match(row)
        if marker is not None or not self._after_text or _HEADING.match(row):
            self._end_at(indent_of(row))
        if marker is not None:
            begin = indent_of(row)
            self._open.append((begin, begin + len(marker[1]) + max(1, min(len(marker[2]), TAB))))
        self._after_text = True

    def pass_block(self, row: str) -> None:
        """Takes note of code or a comment that begins on this line, and is over."""
        self._end_at(indent_of(row))
        self._after_text = False

    def column_within(self, row: str) -> int:
        """The least indentation of lines in the same item as a block that begins on this line; 0 if it is in none."""
        indent = indent_of(row)
        around = bisect_right(self._open, indent - DEEPER, key=lambda item: item[0])
        return min(self._open[around - 1][1], indent) if around else 0

    def _end_at(self, indent: int) -> None:
        while self._open and indent < self._open[-1][0] + DEEPER:
            self._open.pop()


class _Block(NamedTuple):
    """Fenced code or a comment: its last line, and whether that closes it."""

    end: int
    is_closed: bool


class _Places:
    """Where comments and fences can be closed, last first, and where items end. Places already passed are dropped, so
    that finding all of them takes no longer than reading the text."""

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

    def block_at(self, number: int, items: _OpenItems) -> _Block | None:
        """The fenced code or comment that begins here; None if none does, or if it is in no item and never closed."""
        row = self._rows[number]
        fence = _FENCE.match(row)
        if fence is not None and not (fence.group(1)[0] == "`" and "`" in fence.group(2)):
            closing = self._closing_line(number, fence.group(1))
        elif _COMMENT.match(row):
            closing = number if "-->" in row else self._end_of_comment(number)
        else:
            return None
        column = items.column_within(row)
        outside = self._first_outside(number, column) if column else len(self._rows)
        if closing is not None and closing < outside:
            return _Block(closing, is_closed=True)
        return _Block(outside - 1, is_closed=False) if column else None

    def _closing_line(self, number: int, fence: str) -> int | None:
        places = self._closing[fence[0]]
        while places and places[-1][0] <= number:
            places.pop()
        if not places or places[-1][2] < len(fence):
            return None
        return next(place for place, length, _ in reversed(places) if length >= len(fence))

    def _end_of_comment(self, number: int) -> int | None:
        while self._comments and self._comments[-1] <= number:
            self._comments.pop()
        return self._comments[-1] if self._comments else None

    def _first_outside(self, number: int, column: int) -> int:
        """The first line below with text in front of this column. Each step goes to a line that is indented less, so
        there are no more steps than blanks before the text of the first line."""
        at = self._shallower[number]
        while at < len(self._rows) and indent_of(self._rows[at]) >= column:
            at = self._shallower[at]
        return at

    @cached_property
    def _shallower(self) -> list[int]:
        """For each line with text, the next one that is indented less; the number of lines if there is none."""
        found = [len(self._rows)] * len(self._rows)
        below: list[tuple[int, int]] = []
        for number in range(len(self._rows) - 1, -1, -1):
            if self._rows[number].strip():
                indent = indent_of(self._rows[number])
                while below and below[-1][0] >= indent:
                    below.pop()
                found[number] = below[-1][1] if below else len(self._rows)
                below.append((indent, number))
        return found


# -- text that must stay text -----------------------------------------------------------------------------------------


def _is_special(text: str) -> bool:
    """Whether a line would be read as something other than text."""
    return any(form.match(text) for form in (_ITEM, _HEADING, _FENCE, _COMMENT))


def shielded(text: str, before: str) -> Iterator[str]:
    """The lines of a text as written into a check list, each after `before`, the indentation of the item it is in.
    Those that would be read as items, headings or the start of code get a backslash. Code that is closed within the
    text stays as it is."""
    said = text.split("\n")
    rows = [before + row if row else "" for row in said]
    places = _Places(rows)
    items = _OpenItems((len(before) - DEEPER, len(before))) if before else _OpenItems()
    number = 0
    while number < len(rows):
        block = places.block_at(number, items)
        if block is not None and block.is_closed:
            yield from rows[number : block.end + 1]
            items.pass_block(rows[number])
            number = block.end + 1
            continue
        blanks, slashes, rest = _parts(said[number])
        row = f"{before}{blanks}\\{slashes}{rest}" if _is_special(blanks + rest) else rows[number]
        items.pass_line(row)
        yield row
        number += 1


def unshielded(row: str) -> str:
    """A line of text without its escaping backslash."""
    before, slashes, rest = _parts(row)
    return f"{before}{slashes[1:]}{rest}" if slashes and _is_special(before + rest) else row


def _parts(row: str) -> tuple[str, str, str]:
    found = _ESCAPED.match(row)
    assert found is not None, "every line fits"
    return found[1], found[2], found[3]
