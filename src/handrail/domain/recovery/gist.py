"""The gist of a long request: its first sentence, then the sentences that set rules, as many as a budget allows.

A request says what it wants at the beginning; rules that must not be forgotten can be anywhere, and contain words such
as must, never, at most. In other languages than English every sentence weighs the same, and the first ones are kept.
"""

from __future__ import annotations

import re

from handrail.domain.recovery.truncate import MARK, cut, good_end, json_weight, line
from handrail.kernel.shorten import on_one_line

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
