"""Texts shortened for quick reading: on one line, and no longer than fits. Lengths are in characters;
`domain/recovery/truncate.py` cuts by tokens.
"""

from __future__ import annotations


def shortened(text: str, most: int) -> str:
    """The text if it fits, else its beginning followed by an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def on_one_line(text: str) -> str:
    """The text with every run of whitespace, line breaks included, replaced by one space."""
    return " ".join(text.split())


def printable_line(text: str) -> str:
    """The text on one line, printable characters only: no terminal control sequences, no bidirectional overrides."""
    return on_one_line("".join(letter if letter.isprintable() else " " for letter in text))
