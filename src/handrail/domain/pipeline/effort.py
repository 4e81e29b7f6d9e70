"""How large a piece of work is, and the evidence for that. Considered in this order: the person's own word, story
points, labels, words in the text. The first that applies decides, and is named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

SMALL_POINTS, MEDIUM_POINTS = 4, 12
"""The most story points of a small and of a medium change."""
LARGE_LABELS = frozenset({"epic", "large", "size/l", "size/xl", "architecture", "breaking-change", "rewrite"})
SMALL_LABELS = frozenset({"good first issue", "small", "size/s", "size/xs", "trivial", "typo", "documentation", "docs"})
WORDS: dict[str, int] = {
    "migrate": 3,
    "migration": 3,
    "rewrite": 3,
    "redesign": 3,
    "architecture": 3,
    "new service": 3,
    "new api": 2,
    "new endpoint": 2,
    "refactor": 2,
    "integrate": 2,
    "integration": 2,
    "queue": 1,
    "schema": 1,
    "rename": -2,
    "typo": -3,
    "label": -2,
    "wording": -3,
    "toggle": -2,
    "visibility": -2,
    "hide": -1,
    "message": -1,
    "validation": -1,
    "optional": -1,
    "required": -1,
}
"""Weights of words: positive ones suggest a large change."""
LARGE_SCORE, SMALL_SCORE = 3, -2


class Effort(NamedTuple):
    """The effort, and the evidence that decided it."""

    effort: str
    evidence: str


def detect(override: str | None, points: float | None, labels: Sequence[str], text: str) -> Effort:
    if override is not None:
        return Effort(override, f"you asked for {override}")
    if points is not None and points > 0:
        effort = "S" if points <= SMALL_POINTS else "M" if points <= MEDIUM_POINTS else "L"
        return Effort(effort, f"{points:g} story points")
    named = {label.strip().lower(): label.strip() for label in labels}
    for known, effort in ((LARGE_LABELS, "L"), (SMALL_LABELS, "S")):
        if found := sorted(known & named.keys()):
            return Effort(effort, f"the label {named[found[0]]}")
    return _by_words(text)


def _by_words(text: str) -> Effort:
    """Counts whole words only, each once."""
    lowered = text.lower()
    found = {word: weight for word, weight in WORDS.items() if re.search(rf"\b{re.escape(word)}\b", lowered)}
    score = sum(found.values())
    words = ", ".join(f"{word} ({weight:+d})" for word, weight in found.items())
    if score >= LARGE_SCORE:
        return Effort("L", f"the words {words}")
    if score <= SMALL_SCORE:
        return Effort("S", f"the words {words}")
    return Effort("M", f"the words {words} balance each other" if found else "nothing suggests more or less")
