"""Changes to a text that can be undone exactly. An edit knows what it removed, so the original bytes can be restored
without keeping a copy of the file: configurations hold secrets, and copies of secrets are a liability."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec


class NotUnderstood(Exception):  # noqa: N818 - an answer: the file is left alone
    """A text cannot be changed safely; the message says why."""


class Edit(msgspec.Struct, frozen=True):
    """At a position in a text, what was removed and what was inserted."""

    at: int
    removed: str
    inserted: str


def done(text: str, edits: Sequence[Edit]) -> str:
    """The text after the edits, applied in order."""
    for edit in edits:
        text = text[: edit.at] + edit.inserted + text[edit.at + len(edit.removed) :]
    return text


def undone(text: str, edits: Sequence[Edit]) -> str | None:
    """The text before the edits; None if they are no longer in it as they were made."""
    for edit in reversed(edits):
        end = edit.at + len(edit.inserted)
        if text[edit.at : end] != edit.inserted:
            return None
        text = text[: edit.at] + edit.removed + text[end:]
    return text


def value_at(whole: Any, path: Sequence[str]) -> Any:
    """The value at a path of names in parsed data; None if there is none."""
    for name in path:
        if not isinstance(whole, dict) or name not in whole:
            return None
        whole = whole[name]
    return whole


def fingerprint(text: str) -> str:
    """A hash that identifies a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def line_end(text: str) -> str:
    """The line ending of this text: that of its first line."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
