"""Texts fitted into a terminal's columns: cut, padded, wrapped, marked by state. Pure but for the terminal's width.

What agents wrote is never trusted with a terminal: nothing but printable characters gets through, so that no name can
move the cursor, change colours or turn a line around.
"""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Iterable, Iterator

import click

MOST_COLUMNS = 120
"""Longer lines are hard to read, however wide the terminal is."""

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
"""For each state its mark and colour. A state is always said in words too."""


def columns() -> int:
    """How wide a line may be: the terminal's width, 80 where there is none."""
    return min(shutil.get_terminal_size().columns, MOST_COLUMNS)


def one_line(text: str) -> str:
    """A text on one line, printable characters only."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def width(text: str) -> int:
    """Columns a text takes: two for wide letters, none for marks on letters."""
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
    """The columns that the widest of these takes on one line, and no more than `room`."""
    return min(max((width(one_line(text)) for text in texts), default=0), room)


def pad(text: str, room: int) -> str:
    """A text that fills `room` columns."""
    line = fit(text, room)
    return line + " " * (room - width(line))


def wrapped(text: str, room: int, indent: str = "") -> Iterator[str]:
    """A text in lines of at most `room` columns; its own line breaks are kept."""
    room -= width(indent)
    for given in text.strip().splitlines():
        line = ""
        for word in one_line(given).split(" "):
            rest = word
            if line and width(line) + 1 + width(rest) > room:
                yield indent + line
                line = ""
            while width(rest) > room and not line:
                taken = _beginning(rest, room)
                yield indent + taken
                rest = rest[len(taken) :]
            line = f"{line} {rest}" if line else rest
        yield (indent + line).rstrip()


def _beginning(word: str, room: int) -> str:
    end = min(len(word), max(1, room))
    while end > 1 and width(word[:end]) > room:
        end -= 1
    return word[:end]


def bar(done: int, total: int, size: int = 20) -> str:
    """How far something is. Only what is done whole shows as full."""
    filled = size * done // total if total else 0
    return f"[{'#' * filled}{'-' * (size - filled)}]"


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


def said(status: str) -> str:
    """A state in plain words."""
    return status.replace("_", " ")


def paint(text: str, status: str) -> str:
    """A text in its state's colour. Whether a terminal is there to see it is click's to find out."""
    colour = _LOOKS.get(status, ("", None))[1]
    return text if colour is None or _plain() else click.style(text, fg=colour)


def bold(text: str) -> str:
    return text if _plain() else click.style(text, bold=True)


def dim(text: str) -> str:
    return text if _plain() else click.style(text, dim=True)


def _plain() -> bool:
    return bool(os.environ.get("NO_COLOR"))
