"""Changes of a text that can be taken back exactly. An edit knows what it removed, so that the bytes of before come
back without a copy of the file: configurations hold secrets, and copies of secrets are a burden."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec


class NotUnderstood(Exception):  # noqa: N818 - an answer: the file is left alone
    """A text that cannot be changed safely. Says why."""


class Edit(msgspec.Struct, frozen=True):
    """At a place in a text, something taken out and something put in."""

    at: int
    removed: str
    inserted: str


def done(text: str, edits: Sequence[Edit]) -> str:
    """The text after the edits, one after the other."""
    for edit in edits:
        text = text[: edit.at] + edit.inserted + text[edit.at + len(edit.removed) :]
    return text


def undone(text: str, edits: Sequence[Edit]) -> str | None:
    """The text before the edits; None where they are not in it any more as they were made."""
    for edit in reversed(edits):
        end = edit.at + len(edit.inserted)
        if text[edit.at : end] != edit.inserted:
            return None
        text = text[: edit.at] + edit.removed + text[end:]
    return text


def fingerprint(text: str) -> str:
    """Tells one text from another."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def line_end(text: str) -> str:
    """How lines end in this text: as its first one does."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
