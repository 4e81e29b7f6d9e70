"""The gist of a long request: its first sentence, then the sentences that set rules, as many as a budget allows.

What is asked stands at the beginning; what must not be forgotten stands anywhere, and says must, never, at most. In a
language this does not know, every sentence weighs the same and the first ones are kept.
"""

from __future__ import annotations

import re

from handrail.domain.recovery.cutting import MARK, cut, good_end, json_weight, line

# Plain texts, not compiled here: every start would pay.
_BREAK = r"\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)|(?<=[.!?:])\s+(?=[^\sa-z])"
_RULE = (
    r"(?i)\b(?:must|never|not|no|nobody|only|always|without|at most|at least|above|below|need(?:s|ed)?|required?|"
    r"expected|done means|out of scope|do not|don't|cannot|may not|should|before|until|same|every)\b"
)
_LOOKED_AT = 20_000
"""Characters of a request that are read for rules."""
_GAP = 80
"""What the mark of a gap costs, in hundredths of a token."""
_HEADING = 30
"""Characters up to which a line that does not end as a sentence is a heading."""
_SENTENCE = 48
"""Tokens of one sentence, at most."""


def gist(text: str, tokens: int) -> str:
    """The text, or its most telling sentences in their order, with a mark where others stood between them."""
    whole = cut(text, tokens)
    if whole == text:
        return text
    seen = text if len(text) <= _LOOKED_AT else text[: good_end(text, _LOOKED_AT)]
    sentences = [" ".join(found.split()) for found in re.split(_BREAK, seen)]
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
    """How much a sentence rules; less than nothing for a heading."""
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
