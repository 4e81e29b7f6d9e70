"""Texts as words: where each is, and the form in which it is compared. Pure.

Both what is searched and what a person types go through here, so they always agree. A name in code counts by its parts
(`retry_limit`, `retryLimit` and `src/retry/limit.py` all contain `retry` and `limit`), and one in camelCase also as a
whole. Scripts without spaces between words count character by character: several in a row are found as a phrase. Case
and accents make no difference.

Parses what a person types: words, "phrases", -without, begin*. There are no syntax errors.

All words must occur, unless no text has them all. Which index answers is not known here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from handrail.kernel.errors import InvalidParams

LONGEST = 64
"""How many characters of a word count. Anything longer is not a word but a key, a hash, an encoded file."""
_PLAIN = re.compile(r"[A-Za-z0-9]+")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+|[0-9]+|[A-Z]")
_SEVERAL = re.compile(r"[A-Z](?:(?<=[a-z0-9][A-Z])|[A-Z][a-z]|[0-9]+[a-z])")
"""Matches in every text that contains a camelCase name, and in a few others."""
_ACCENTS = re.compile("[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u064b-\u065f]")
_MARKED = range(0x300, 0x3100)
"""The range searched for combining marks, which belong to the word they are in."""
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)


class WordPart(NamedTuple):
    """A word, or a part of one, in the form in which it is compared, and where it is in the text."""

    form: str
    start: int
    end: int


class Word(NamedTuple):
    """A word with its parts; most have one."""

    parts: tuple[WordPart, ...]
    whole: WordPart | None
    """The word as a whole, if it is a name of several parts written together."""


def words_in(text: str) -> Iterator[Word]:
    """The words of a text, in order."""
    if text.isascii():
        for found in _PLAIN.finditer(text):
            yield _plain_word(found.group(), found.start())
        return
    for found in _any_word().finditer(text):
        if found.group().isascii():
            yield _plain_word(found.group(), found.start())
        else:
            yield _other_word(found.group(), found.start())


def forms_in(text: str) -> tuple[list[str], list[str]]:
    """The parts of every word in a text, and, as wholes, the words that have several parts."""
    if text.isascii() and _SEVERAL.search(text) is None:  # true of most texts, and ten times as fast
        return [word[:LONGEST] for word in _PLAIN.findall(text.lower())], []
    parts: list[str] = []
    wholes: list[str] = []
    for word in words_in(text):
        parts += [part.form for part in word.parts]
        if word.whole is not None:
            wholes.append(word.whole.form)
    return parts, wholes


def _plain_word(word: str, start: int) -> Word:
    end = start + len(word)
    if word.islower() or word.isupper() or word.isdigit():
        return Word((WordPart(word[:LONGEST].lower(), start, end),), None)
    parts = tuple(
        WordPart(hump.group()[:LONGEST].lower(), start + hump.start(), start + hump.end())
        for hump in _HUMPS.finditer(word)
    )
    return Word(parts, WordPart(word[:LONGEST].lower(), start, end) if len(parts) > 1 else None)


def _other_word(word: str, start: int) -> Word:
    pieces = tuple(
        WordPart(_form(piece.group()), start + piece.start(), start + piece.end()) for piece in _pieces().finditer(word)
    )
    return Word(pieces, None)


def _form(word: str) -> str:
    """The form that all spellings of a word share. A word of nothing but accents keeps them."""
    spread = unicodedata.normalize("NFKD", word[:LONGEST].casefold())
    return _ACCENTS.sub("", spread) or spread


@cache
def _marks() -> str:
    return "".join(chr(code) for code in _MARKED if unicodedata.category(chr(code)).startswith("M"))


@cache
def _any_word() -> re.Pattern[str]:
    return re.compile(f"(?:[^\\W_][{_marks()}]*)+")


@cache
def _pieces() -> re.Pattern[str]:
    """Matches one character of a script without spaces, or a run of others."""
    return re.compile(f"[{_SPACELESS}][{_marks()}]*|[^{_SPACELESS}]+")


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
