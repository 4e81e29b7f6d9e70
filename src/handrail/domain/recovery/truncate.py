"""Texts and JSON values shortened to a token cost, with a mark where something is missing.

Nothing here knows what a text is about; `packer.py` chooses which of several lengths is used.

The gist of a long request: its first sentence, then the sentences that set rules, as many as a budget allows.

A request says what it wants at the beginning; rules that must not be forgotten can be anywhere, and contain words such
as must, never, at most. In other languages than English every sentence weighs the same, and the first ones are kept.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import msgspec

from handrail.kernel.tokens import length_within, token_weight
from handrail.kernel.wording import on_one_line

MARK = "…"
_BACK = 24
"""How many characters a cut moves back to end on a word."""
_PLENTY = 40
"""The most characters examined per token of the limit."""
_JOINER = "\u200d"


def json_weight(value: Any) -> int:
    """What a value costs as JSON, in hundredths of a token."""
    return token_weight(msgspec.json.encode(value).decode())


def cut(text: str, tokens: int) -> str:
    """The text if it costs no more than `tokens`, else its beginning and a mark that together do. `tokens` is at least
    three."""
    if len(text) <= tokens * _PLENTY and json_weight(text) <= tokens * 100:
        return text
    room = tokens
    while room > 0 and text:
        end = good_end(text, min(length_within(text, room), len(text) - 1))
        shorter = text[:end].rstrip() + MARK
        if json_weight(shorter) <= tokens * 100:
            return shorter
        room = room * 3 // 4 if room > 4 else room - 1
    return MARK if text else text


def line(text: str, tokens: int) -> str:
    """The text on one line, cut."""
    far = tokens * _PLENTY
    seen = text if len(text) <= far else text[: good_end(text, far)] + MARK
    return cut(on_one_line(seen), tokens)


def compact(value: Any, *, tokens: int, members: int, depth: int) -> Any:
    """A JSON value with long texts cut, reduced to the first members of each list and object, down to a depth."""
    if isinstance(value, str):
        return cut(value, tokens)
    if isinstance(value, dict):
        if depth == 0 and value:
            return f"{{{MARK} {len(value)} members}}"
        shown = {
            cut(str(key), 12): compact(member, tokens=tokens, members=members, depth=depth - 1)
            for key, member in _first(value.items(), members)
        }
        return {**shown, MARK: f"{len(value) - members} more"} if len(value) > members else shown
    if isinstance(value, list | tuple):
        if depth == 0 and value:
            return f"[{MARK} {len(value)} items]"
        items = [compact(item, tokens=tokens, members=members, depth=depth - 1) for item in _first(value, members)]
        return [*items, f"{MARK} {len(value) - members} more"] if len(value) > members else items
    return value


def first_of(values: list[str], most: int) -> list[str]:
    """The first `most` of a list, followed by how many more there are."""
    return values if len(values) <= most else [*values[:most], f"{MARK} {len(values) - most} more"]


def _first(values: Iterable[Any], most: int) -> Iterable[Any]:
    return (value for _, value in zip(range(most), values, strict=False))


def good_end(text: str, end: int) -> int:
    """Where to cut at or before `end`: after a word if one ends nearby, never inside what displays as one character."""
    for back in range(end, max(end - _BACK, 0), -1):
        if text[back].isspace():
            return back
    while end > 0 and _continues(text, end):
        end -= 1
    return end


def _continues(text: str, place: int) -> bool:
    """True when the character at `place` belongs to the one before it."""
    here, before = text[place], text[place - 1] if place else ""
    if _JOINER in (here, before) or unicodedata.category(here).startswith("M"):
        return True
    if "\U0001f3fb" <= here <= "\U0001f3ff" or "\U000e0020" <= here <= "\U000e007f":
        return True
    if _is_flag_half(here) and before and _is_flag_half(before):
        halves = 0
        while halves < place and _is_flag_half(text[place - 1 - halves]):
            halves += 1
        return halves % 2 == 1
    return False


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


# Plain texts, not compiled here: that would slow every start.
_BREAK = r"\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)|(?<=[.!?:])\s+(?=[^\sa-z])"
_RULE = (
    r"(?i)\b(?:must|never|not|no|nobody|only|always|without|at most|at least|above|below|need(?:s|ed)?|required?|"
    r"expected|done means|out of scope|do not|don't|cannot|may not|should|before|until|same|every)\b"
)
_LOOKED_AT = 20_000
"""How many characters of a request are searched for rules."""
_GAP = 80
"""What the mark for a gap costs, in hundredths of a token."""
_HEADING = 30
"""A line of at most this many characters that does not end like a sentence is a heading."""
_SENTENCE = 48
"""The most tokens one sentence may take."""


def gist(text: str, tokens: int) -> str:
    """The text if it fits, else its most telling sentences in order, with a mark where others were left out."""
    whole = cut(text, tokens)
    if whole == text:
        return text
    seen = text if len(text) <= _LOOKED_AT else text[: good_end(text, _LOOKED_AT)]
    sentences = [on_one_line(found) for found in re.split(_BREAK, seen)]
    sentences = [line(found, min(_SENTENCE, tokens - 2)) for found in sentences if found]
    if not sentences:
        return whole
    chosen = [0]
    room = tokens * 100 - json_weight(sentences[0]) - _GAP
    for number in sorted(range(1, len(sentences)), key=lambda number: (-_rules(sentences[number]), number)):
        cost = json_weight(sentences[number]) + _GAP
        if cost <= room and _rules(sentences[number]) >= 0:
            chosen.append(number)
            room -= cost
    while len(chosen) > 1 and json_weight(told := _joined(sentences, sorted(chosen))) > tokens * 100:
        chosen.pop()
    return told if len(chosen) > 1 else whole


def _rules(sentence: str) -> int:
    """How strongly a sentence states rules, from 0 to 2; -1 for a heading."""
    if len(sentence) <= _HEADING and not sentence.endswith((".", "!", "?")):
        return -1
    return min(len(re.findall(_RULE, sentence)), 2)


def _joined(sentences: list[str], chosen: list[int]) -> str:
    told: list[str] = []
    for before, number in zip([-1, *chosen], chosen, strict=False):
        if number > before + 1:
            told.append(MARK)
        told.append(sentences[number])
    if chosen and chosen[-1] < len(sentences) - 1:
        told.append(MARK)
    return " ".join(told)
