"""Parses what a person types: words, "phrases", -without, begin*. There are no syntax errors.

All words must occur, unless no text has them all. Which index answers is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from handrail.domain.search.words import words_in
from handrail.kernel.errors import InvalidParams

_TYPED = re.compile(r"(?P<without>[-−]?)(?:[\"“”](?P<phrase>[^\"“”]*)(?:[\"“”](?P<begin>\*?)|$)|(?P<word>[^\s\"“”]+))")
_BEGINS = "*"


class Term(NamedTuple):
    """One thing to search for: word forms in sequence."""

    forms: tuple[str, ...]
    whole: str = ""
    """The same as a single form, if a name of several parts was typed."""
    begins: bool = False
    """Whether its last form may be just a prefix."""


class SearchTerms(NamedTuple):
    """What to search for, and what must not occur."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...] = ()


def understood(typed: str) -> SearchTerms:
    """The query in what was typed. Raises InvalidParams if it has no word to search for."""
    wanted: dict[Term, None] = {}
    unwanted: dict[Term, None] = {}
    for without, term in _terms(typed):
        (unwanted if without else wanted)[term] = None
    if not wanted:
        raise InvalidParams(
            "there is no word to look for" if not unwanted else "there are only words to leave out",
            hint='say at least one word, such as: handrail search queue "lost connection" -redis retr*',
        )
    return SearchTerms(tuple(wanted), tuple(unwanted))


def _terms(typed: str) -> Iterator[tuple[bool, Term]]:
    for found in _TYPED.finditer(typed):
        text = found["phrase"] if found["phrase"] is not None else found["word"]
        words = list(words_in(text))
        if not words:
            continue
        begins = bool(found["begin"]) or (found["word"] or "").endswith(_BEGINS)
        whole = words[0].whole if len(words) == 1 else None
        forms = tuple(part.form for word in words for part in word.parts)
        yield bool(found["without"]), Term(forms, whole.form if whole is not None else "", begins)
