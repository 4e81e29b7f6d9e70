"""Texts shortened for quick reading: on one line, and no longer than fits. Lengths are in characters;
`domain/recovery/truncate.py` cuts by tokens.

The known name nearest to a mistyped one, for hints. No ranking beyond that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail.kernel.late import late_module

if TYPE_CHECKING:
    import difflib
else:
    difflib = late_module("difflib")


def shortened(text: str, most: int) -> str:
    """The text if it fits, else its beginning followed by an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def on_one_line(text: str) -> str:
    """The text with every run of whitespace, line breaks included, replaced by one space."""
    return " ".join(text.split())


def printable_line(text: str) -> str:
    """The text on one line, printable characters only: no terminal control sequences, no bidirectional overrides."""
    return on_one_line("".join(letter if letter.isprintable() else " " for letter in text))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, or else the only one that begins with it; None when nothing comes
    close."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    found = found or [folded for folded in by_folded if name and folded.startswith(name.casefold())]
    return by_folded[found[0]] if len(found) == 1 else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` to end a sentence with, or an empty text."""
    match = nearest(name, known)
    return f"; did you mean {match}?" if match else ""
