"""Fits text into a terminal's columns: cut, padded, wrapped, set in tables, marked by state. Pure except for the
terminal's width and whether colour is wanted.

Agents' text is never trusted with a terminal: only printable characters get through, so that no name can move the
cursor, change colours or reverse a line.
"""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from handrail.kernel.clock import spoken_time
from handrail.kernel.wording import printable_line
from handrail.surfaces.cli.terminal import styled

MOST_COLUMNS = 120
"""Longer lines are hard to read, however wide the terminal is."""

LONG_AGO_MS = 48 * 3_600_000
"""Beyond this, a date says more than a number of days."""
LEAST_TOLD = 24
"""The least width of a table's last column beside the others; with less it goes below them."""
LEAST_NAME = 16
"""The least width of a name beside an id; with less the id goes below it."""
_GAP = "  "
_BELOW = "    "
_NUMBER = re.compile(r"[-+−]?[\d,.]+( (bytes|[kMGT]B|%))?")
_LOOKS_CODE = re.compile(r"\x1b\[[0-9;]*m")

_LOOKS: dict[str, tuple[str, str | None]] = {
    "completed": ("✓", "green"),
    "skipped": ("–", None),
    "failed": ("✗", "red"),
    "abandoned": ("–", None),
    "in_progress": ("▶", "cyan"),
    "planning": ("▷", "cyan"),
    "paused": ("‖", "yellow"),
    "ready": ("○", "bright_blue"),
    "pending": ("·", None),
    "blocked": ("·", None),
}
"""Each state's mark and colour. A state is always given in words too."""


def columns() -> int:
    """How wide a line may be: the terminal's width, or 80 if there is none."""
    return min(shutil.get_terminal_size().columns, MOST_COLUMNS)


def one_line(text: str) -> str:
    """A text on one line, printable characters only."""
    return printable_line(text)


def width(text: str) -> int:
    """The columns a text takes: two for wide characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def fit(text: str, room: int) -> str:
    """A text on one line in no more than `room` columns, with `…` where it was cut."""
    line = one_line(text)
    if width(line) <= room:
        return line
    while line and width(line) > room - 1:
        line = line[: -max(1, (width(line) - room) // 2)]
    return f"{line}…" if room > 0 else ""


def widest(texts: Iterable[str], room: int) -> int:
    """The width of the widest of these on one line, at most `room`."""
    return min(max((width(one_line(text)) for text in texts), default=0), room)


def pad(text: str, room: int) -> str:
    """A text that fills `room` columns."""
    line = fit(text, room)
    return line + " " * (room - width(line))


def fits_beside(name: int, beside: int, room: int) -> bool:
    """Whether enough of a name, or all of it, remains visible with `beside` columns taken beside it."""
    return room - beside - len(_GAP) >= min(name, LEAST_NAME)


def headline(name: str, about: Sequence[str], room: int) -> Iterator[str]:
    """A name in bold with what belongs to it, such as its id: beside it, or below it if a narrow terminal would leave
    nothing of the name. What belongs to it may be coloured and is never cut."""
    beside = _GAP.join(about)
    if fits_beside(width(one_line(name)), _visible_width(beside), room):
        yield f"{bold(fit(name, room - _visible_width(beside) - len(_GAP)))}{_GAP}{beside}"
        return
    yield from (bold(line) for line in wrapped(name, room))
    yield from packed(about, room, _GAP)


def packed(parts: Sequence[str], room: int, indent: str = "") -> Iterator[str]:
    """Parts side by side, as many per line as fit; none is broken. They may be coloured."""
    line = ""
    for part in parts:
        if line and len(indent) + _visible_width(line) + len(_GAP) + _visible_width(part) > room:
            yield indent + line
            line = part
        else:
            line = f"{line}{_GAP}{part}" if line else part
    if line:
        yield indent + line


def _visible_width(text: str) -> int:
    """The width of a text that may contain colours."""
    return width(_LOOKS_CODE.sub("", text))


def wrapped(text: str, room: int, indent: str = "") -> Iterator[str]:
    """A text in lines of at most `room` columns; its own line breaks are kept."""
    room -= width(indent)
    for given in text.strip().splitlines():
        line = ""
        for word in one_line(given).split(" "):
            rest = word
            if line and width(line) + 1 + width(rest) > room:
                if width(rest) > room and (free := room - width(line) - 1) >= LEAST_TOLD:
                    taken = _beginning(rest, free)  # it is broken anyway, as text without spaces is
                    line, rest = f"{line} {taken}", rest[len(taken) :]
                yield indent + line
                line = ""
            while width(rest) > room and not line:
                taken = _beginning(rest, room)
                yield indent + taken
                rest = rest[len(taken) :]
            line = f"{line} {rest}" if line else rest
        yield (indent + line).rstrip()


def hanging(begin: str, text: str, room: int, indent: str = "") -> Iterator[str]:
    """A text after a beginning, with further lines indented more."""
    inner = indent + " " * min(4, width(begin))
    for number, line in enumerate(wrapped(f"{begin}{one_line(text)}", room, inner)):
        yield f"{indent}{line.lstrip()}" if number == 0 else line


def kept_in_shape(text: str, room: int, indent: str = "") -> Iterator[str]:
    """A document in lines that fit, with its indentation kept. Nothing unprintable gets through."""
    for given in text.splitlines():
        plain = given.expandtabs(4)
        inner = indent + " " * min(width(plain) - width(plain.lstrip(" ")), room // 3)
        yield from list(wrapped(plain, room, inner)) or [""]


def _beginning(word: str, room: int) -> str:
    end = min(len(word), max(1, room))
    while end > 1 and width(word[:end]) > room:
        end -= 1
    return word[:end]


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]], room: int | None) -> Iterator[str]:
    """Rows in columns as wide as their widest cell, below a header. A cell that does not fit goes below its row, and
    only prose is wrapped: an id stays whole. Numbers are right-aligned. Without `room` the last column is unlimited."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(width(row[column]) for row in (list(header), *cells)) for column in range(len(header))]
    numbers = {column for column in range(len(header)) if _are_numbers([row[column] for row in cells])}
    beside = len(widths)
    if room is not None and not _has_room(widths, room):
        while beside > 1 and sum(widths[:beside]) + len(_GAP) * (beside - 1) > room:
            beside -= 1
    yield bold(_in_columns(header[:beside], widths, numbers))
    for row in cells:
        *fixed, last = row[:beside]
        before = "".join(_cell(cell, widths[at], at in numbers) + _GAP for at, cell in enumerate(fixed))
        if beside - 1 in numbers:
            before += " " * (widths[beside - 1] - width(last))
        lines = list(wrapped(last, room - width(before))) if room is not None and last else [last]
        yield (before + lines[0]).rstrip()
        yield from (" " * width(before) + line for line in lines[1:])
        below = _GAP.join(cell for cell in row[beside:] if cell)
        yield from wrapped(below, room or MOST_COLUMNS, _BELOW)


def _has_room(widths: Sequence[int], room: int) -> bool:
    """Whether all columns fit side by side, the last one perhaps wrapped."""
    return sum(widths[:-1]) + len(_GAP) * (len(widths) - 1) + min(widths[-1], LEAST_TOLD) <= room


def _are_numbers(cells: Sequence[str]) -> bool:
    return any(cells) and all(_NUMBER.fullmatch(cell) for cell in cells if cell)


def _cell(text: str, size: int, is_number: bool) -> str:
    return fit(text, size).rjust(size) if is_number else pad(text, size)


def _in_columns(row: Sequence[str], widths: Sequence[int], numbers: set[int]) -> str:
    return _GAP.join(_cell(cell, widths[at], at in numbers) for at, cell in enumerate(row)).rstrip()


def bar(done: int, total: int, size: int = 20) -> str:
    """A progress bar. Only what is completely done shows as full."""
    filled = size * done // total if total else 0
    return f"[{'#' * filled}{'-' * (size - filled)}]"


def counted(count: int, one: str, many: str = "") -> str:
    """`1 run`, `1,200 runs`, `2 entries`."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def moment(at_ms: int, now_ms: int, *, long_ago_ms: int = LONG_AGO_MS) -> str:
    """When something happened, as people say it: `3 minutes ago`; if long ago, its date and time in UTC."""
    if now_ms - at_ms < long_ago_ms:
        return f"{spoken_time(now_ms - at_ms)} ago"
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def spoken_bytes(count: int) -> str:
    """A size for people: `1.5 MB`."""
    size, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def mark(status: str) -> str:
    return paint(_LOOKS.get(status, (" ", None))[0], status)


def as_words(status: str) -> str:
    """A state in plain words."""
    return status.replace("_", " ")


def paint(text: str, status: str) -> str:
    """A text in its state's colour. Click finds out whether there is a terminal to show it."""
    colour = _LOOKS.get(status, ("", None))[1]
    return text if colour is None else styled(text, fg=colour)


def bold(text: str) -> str:
    return styled(text, bold=True)


def dim(text: str) -> str:
    return styled(text, dim=True)
