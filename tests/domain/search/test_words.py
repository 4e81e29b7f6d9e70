"""Texts as words: parts of names, scripts without spaces, accents, and places that fit the text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.domain.search.words import LONGEST, forms_in, words_in


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("retry_limit", ["retry", "limit"]),
        ("retryLimit", ["retry", "limit"]),
        ("src/retry/limit.py", ["src", "retry", "limit", "py"]),
        ("kebab-case --some-flag", ["kebab", "case", "some", "flag"]),
        ("HTTPServer", ["http", "server"]),
        ("parseHTTP2Frame", ["parse", "http2", "frame"]),
        ("MAX_RETRIES=3", ["max", "retries", "3"]),
        ("Zürich naïve CAFÉ", ["zurich", "naive", "cafe"]),
        ("cafe\u0301", ["cafe"]),
        ("Straße", ["strasse"]),
        ("ΕΛΛΆΣ ελλάς", ["ελλασ", "ελλασ"]),
        ("数据库 on disk", ["数", "据", "库", "on", "disk"]),
        ("数据库migration", ["数", "据", "库", "migration"]),
        ("データ", ["テ\u3099", "ー", "タ"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("", []),
        ("--- \0 ☃ \udc80", []),
    ],
)
def test_a_text_has_these_parts(text: str, parts: list[str]) -> None:
    assert forms_in(text)[0] == parts


def test_a_name_in_camel_case_counts_as_a_whole_too() -> None:
    assert forms_in("use OAuth, not retryLimit or plain words or LOUD_ONES")[1] == ["oauth", "retrylimit"]


def test_two_ways_to_write_a_letter_are_one_word() -> None:
    assert forms_in("für")[0] == forms_in("fu\u0308r")[0] == forms_in("FÜR")[0]
    assert forms_in("ﾃﾞｰﾀ")[0] != []


def test_what_is_no_word_is_cut() -> None:
    ((form,), _) = forms_in("a" * 10_000)
    assert len(form) == LONGEST


@given(st.text(max_size=60))
def test_every_part_stands_where_it_says_and_in_order(text: str) -> None:
    at = 0
    for word in words_in(text):
        for part in word.parts:
            assert at <= part.start < part.end <= len(text)
            assert part.form
            at = part.end
        if word.whole is not None:
            assert (word.whole.start, word.whole.end) == (word.parts[0].start, word.parts[-1].end)


@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_every_letter_of_a_plain_text_is_in_a_part(text: str) -> None:
    covered = {place for word in words_in(text) for part in word.parts for place in range(part.start, part.end)}
    assert covered == {place for place, letter in enumerate(text) if letter.isalnum()}


@example("A0a")
@given(st.text(st.characters(codec="ascii"), max_size=40) | st.text(st.sampled_from("aB1_ "), max_size=12))
def test_the_fast_way_gives_what_the_slow_way_gives(text: str) -> None:
    words = list(words_in(text))
    parts = [part.form for word in words for part in word.parts]
    assert forms_in(text) == (parts, [word.whole.form for word in words if word.whole is not None])
