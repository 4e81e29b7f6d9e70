"""Texts and values made shorter: within what they may cost, marked, and never inside what shows as one character."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.recovery.truncate import MARK, compact, cut, first_of, gist, json_weight, line
from tests.domain.recovery.samples import bugfix, migration

TEXTS = st.text(st.characters(codec="utf-8"), max_size=400)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=6),
    max_leaves=30,
)


@given(TEXTS, st.integers(3, 60))
def test_a_cut_text_costs_no_more_than_asked_and_says_that_it_is_cut(text: str, tokens: int) -> None:
    for shorten in (cut, line, gist):
        short = shorten(text, tokens)
        assert json_weight(short) <= tokens * 100
        assert MARK in short or " ".join(short.split()) == " ".join(text.split())


@given(TEXTS, st.integers(2, 60))
def test_a_cut_text_is_the_beginning_of_the_whole(text: str, tokens: int) -> None:
    short = cut(text, tokens)
    assert short == text or text.startswith(short.removesuffix(MARK))


def test_a_cut_goes_back_to_the_end_of_a_word() -> None:
    assert cut("The provider answers slowly and is charged twice", 6) == "The provider answers…"


@pytest.mark.parametrize("whole", ["👩‍💻", "👍🏽", "🇩🇪", "é", "❤️", "क्षि"])
@pytest.mark.parametrize("before", range(12))
def test_what_shows_as_one_character_is_not_cut_apart(whole: str, before: int) -> None:
    for tokens in range(2, 14):
        kept = cut("x" * before + whole * 8, tokens).removesuffix(MARK).removeprefix("x" * before)
        assert kept == whole * (len(kept) // len(whole))


def test_a_long_text_is_not_read_to_its_end() -> None:
    class Counted(str):
        __slots__ = ()

        def __getitem__(self, key: Any) -> str:
            assert not isinstance(key, slice) or (key.stop is not None and key.stop < 10_000)
            return super().__getitem__(key)

    assert cut(Counted("word " * 1_000_000), 10).startswith("word word")


@given(VALUES)
def test_a_compact_value_has_the_same_shape_and_short_texts(value: Any) -> None:
    short = compact(value, tokens=10, members=3, depth=3)
    assert type(short) is type(value)
    if isinstance(value, dict | list):
        assert len(short) <= 4
        assert (len(short) == 4) == (len(value) > 3) or isinstance(value, dict)


def test_a_deep_value_ends_where_it_is_too_deep() -> None:
    value: Any = "end"
    for _ in range(100):
        value = {"in": [value]}
    assert compact(value, tokens=10, members=3, depth=2) == {"in": ["{… 1 members}"]}


def test_a_list_tells_how_much_more_there_is() -> None:
    assert first_of(["a", "b", "c"], 3) == ["a", "b", "c"]
    assert first_of(["a", "b", "c", "d"], 2) == ["a", "b", "… 2 more"]


def test_the_gist_keeps_the_rules_wherever_they_stand() -> None:
    told = gist(bugfix.ISSUE, 160)
    assert told.startswith("Customers are charged twice when the payment provider answers slowly")
    assert "do not raise the timeout" in told
    assert "must not need a schema change" in told
    assert "12:04:21" not in told


def test_the_gist_keeps_the_order_of_the_text() -> None:
    told = gist(migration.REQUEST, 200).split(f" {MARK} ")
    places = [" ".join(migration.REQUEST.split()).find(part[:30]) for part in told]
    assert places == sorted(places)


def test_the_gist_of_a_language_it_does_not_know_is_its_beginning() -> None:
    sentences = [f"Satz Nummer {number} handelt von etwas ganz anderem als der davor." for number in range(40)]
    told = gist("\n\n".join(sentences), 60)
    assert told == f"{' '.join(sentences[: told.count('Satz')])} {MARK}"
