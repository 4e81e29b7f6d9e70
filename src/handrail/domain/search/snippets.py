"""The piece of a text that shows why it was found, with the matches marked. Pure; how a mark looks is decided
elsewhere.

What is marked is what the index matches: both split texts with `words.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from handrail.domain.search.words import Term, WordPart, words_in

CUT = "…"
LEAD = 4
"""If text is left out before a match, about a quarter of the snippet comes before the match, for context."""


class SnippetPart(NamedTuple):
    """A part of a snippet: a match, or the text around it."""

    text: str
    found: bool


class _Span(NamedTuple):
    start: int
    end: int
    term: int


def snippet(text: str, terms: Sequence[Term], room: int, measure: Callable[[str], int] = len) -> list[SnippetPart]:
    """The part of one line of text that shows the most of these terms, in at most `room` columns. The beginning if it
    contains none."""
    spans = _spans(text, terms)
    start, end = _window(text, spans, room, measure)
    lead = CUT if start else ""
    tail = CUT if end < len(text) else ""
    return _merged([SnippetPart(lead, False), *_pieces(text, spans, start, end), SnippetPart(tail, False)])


def found_in(text: str, terms: Sequence[Term]) -> int:
    """How many of these terms a text contains."""
    return len({span.term for span in _spans(text, terms)})


def _spans(text: str, terms: Sequence[Term]) -> list[_Span]:
    """Where the terms occur, in order, without overlaps."""
    parts: list[WordPart] = []
    wholes: list[WordPart] = []
    for word in words_in(text):
        parts += word.parts
        if word.whole is not None:
            wholes.append(word.whole)
    found: list[_Span] = []
    for number, term in enumerate(terms):
        found += _occurrences(parts, term.forms, term.begins, number)
        for form in filter(None, (term.whole, term.forms[0] if len(term.forms) == 1 else "")):
            found += _occurrences(wholes if form != term.whole else [*wholes, *parts], (form,), term.begins, number)
    kept: list[_Span] = []
    for span in sorted(set(found), key=lambda one: (one.start, -one.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def _occurrences(parts: Sequence[WordPart], forms: tuple[str, ...], begins: bool, number: int) -> Iterator[_Span]:
    last = len(forms) - 1
    for at in range(len(parts) - last):
        if all(parts[at + place].form == forms[place] for place in range(last)):
            ending = parts[at + last].form
            if ending == forms[last] or (begins and ending.startswith(forms[last])):
                yield _Span(parts[at].start, parts[at + last].end, number)


def _window(text: str, spans: list[_Span], room: int, measure: Callable[[str], int]) -> tuple[int, int]:
    if measure(text) <= room:
        return 0, len(text)
    best, most = (0, _end_that_fits(text, 0, room - 1, measure)), 0
    starts = [span.start for span in spans]
    for span in spans[:200]:  # a text with more matches than that has good ones early
        start = _word_start(text, max(0, span.start - room // LEAD)) if span.start > room // 2 else 0
        if measure(text[start : span.end]) > room - 2:
            start = span.start
        end = _end_that_fits(text, start, room - 2, measure)
        inside = {one.term for one in spans[bisect_left(starts, start) :] if one.end <= end}
        if len(inside) > most:
            best, most = (start, end), len(inside)
    return best


def _word_start(text: str, at: int) -> int:
    """The next start of a word from here on, if one is near."""
    space = text.find(" ", at, at + 20)
    return space + 1 if at and space >= 0 else at


def _end_that_fits(text: str, start: int, room: int, measure: Callable[[str], int]) -> int:
    """How much of the text from here fits into `room` columns, up to the end of a word if one is near."""
    end = min(len(text), start + max(1, room))
    while end > start + 1 and measure(text[start:end]) > room:
        end -= max(1, (measure(text[start:end]) - room) // 2)
    if end < len(text) and (space := text.rfind(" ", max(start + 1, end - 20), end)) > start:
        return space
    return end


def _pieces(text: str, spans: list[_Span], start: int, end: int) -> Iterator[SnippetPart]:
    at = start
    for span in spans:
        if span.end <= start or span.start >= end:
            continue
        first, last = max(span.start, start), min(span.end, end)
        yield SnippetPart(text[at:first], False)
        yield SnippetPart(text[first:last], True)
        at = last
    yield SnippetPart(text[at:end], False)


def _merged(pieces: list[SnippetPart]) -> list[SnippetPart]:
    merged: list[SnippetPart] = []
    for piece in pieces:
        if not piece.text:
            continue
        if merged and merged[-1].found == piece.found:
            merged[-1] = SnippetPart(merged[-1].text + piece.text, piece.found)
        else:
            merged.append(piece)
    return merged
