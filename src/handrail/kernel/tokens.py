"""How many tokens a text costs a model, estimated without a vocabulary.

One pass splits the text the way byte-pair tokenisers pre-split it; each piece is priced by kind and length, in
hundredths of a token. Tests measure the estimate against o200k on this project's own texts; models with other
vocabularies differ from o200k by more than this error.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

_PIECE = (
    r"[^\r\nA-Za-z0-9\x80-\U0010ffff]?(?:[A-Z]?[a-z\xaa-\u1fff]{1,40}|[A-Z]{1,40}(?![a-z]))"  # a word, a mark before it
    r"|[0-9]{1,3}"
    r"|[ ]?[\x80-\U0010ffff]"
    r"|[ ]?[^\sA-Za-z0-9\x80-\U0010ffff]{1,40}[\r\n]{0,40}"  # marks and the line breaks after them
    r"|\s{0,40}[\r\n]{1,40}"
    r"|\s{1,40}(?!\S)"
    r"|\s{1,40}"
)
"""Pieces are short whatever the text, so that their prices can be cached. Compiled on first use, to keep start-up
fast."""


@cache
def _pieces() -> re.Pattern[str]:
    return re.compile(_PIECE)


def estimate_tokens(text: str) -> int:
    """The estimate, rounded to the nearest whole token."""
    return (token_weight(text) + 50) // 100


def token_weight(text: str) -> int:
    """The estimate in hundredths of a token, for sums of many small texts."""
    return sum(map(_price, _pieces().findall(text)))


def length_within(text: str, tokens: int) -> int:
    """The length of the longest prefix that costs no more than `tokens`. Reads no further than it must."""
    room = tokens * 100
    for match in _pieces().finditer(text):
        room -= _price(match.group())
        if room < 0:
            return match.start()
    return len(text)


@lru_cache(maxsize=4096)
def _price(piece: str) -> int:
    """Prices fitted by least squares on prose, code and JSON: short words are one token, rare long ones two."""
    last, length = piece[-1], len(piece)
    if last >= "\x80":
        return _foreign_price(last, length)
    if last.isalpha():
        return _word_price(piece, length)
    if last.isdigit():
        return 125
    marks = len(piece.strip())
    if marks > 4:
        return 128 + (marks - 4) * (5 if len(set(piece)) <= 3 else 40)
    if marks:
        return 88 + 10 * marks
    return (78 if last in "\r\n" else 89) + length


def _word_price(piece: str, length: int) -> int:
    bare = piece[0].isalpha()
    letters = length if bare else length - 1
    mark = 0 if bare or piece[0] == " " else 15
    if not piece.isascii():
        return 30 * letters
    if letters > 1 and piece.isupper():
        return mark + 74 * ((letters + 3) // 4)
    return mark + (104 if letters <= 6 else 129 if letters <= 11 else 14 * letters)


def _foreign_price(last: str, length: int) -> int:
    """Beyond ASCII: words in other alphabets, single arrows and dashes, CJK, emoji."""
    if last < "\u2000":
        return max(60, 30 * length)
    if last < "\u2e80":
        return 80
    return 75 if last <= "\uffff" else 200
