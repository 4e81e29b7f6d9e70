"""What a person types: every way to say something, and nothing that is a mistake of form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.search.words import SearchTerms, Term, understood
from handrail.kernel.errors import InvalidParams


def word(*forms: str, whole: str = "", begins: bool = False) -> Term:
    return Term(forms, whole, begins)


@pytest.mark.parametrize(
    ("typed", "wanted", "unwanted"),
    [
        ("queue", (word("queue"),), ()),
        ("lost connection", (word("lost"), word("connection")), ()),
        ('"lost connection"', (word("lost", "connection"),), ()),
        ("“lost connection”", (word("lost", "connection"),), ()),
        ('"lost connection', (word("lost", "connection"),), ()),
        ("queue -redis", (word("queue"),), (word("redis"),)),
        ("queue −redis", (word("queue"),), (word("redis"),)),
        ('queue -"lost connection"', (word("queue"),), (word("lost", "connection"),)),
        ("retr*", (word("retr", begins=True),), ()),
        ('"lost conn"*', (word("lost", "conn", begins=True),), ()),
        ("retry_limit", (word("retry", "limit"),), ()),
        ("retryLim*", (word("retry", "lim", whole="retrylim", begins=True),), ()),
        ("src/queue.py", (word("src", "queue", "py"),), ()),
        ("re-try", (word("re", "try"),), ()),
        ("数据库", (word("数", "据", "库"),), ()),
        ("a a A", (word("a"),), ()),
        ("a AND (b OR NEAR", (word("a"), word("and"), word("b"), word("or"), word("near")), ()),
        ("title:x ^y", (word("title", "x"), word("y")), ()),
        ("queue - * && -", (word("queue"),), ()),
    ],
)
def test_what_is_typed_means_this(typed: str, wanted: tuple[Term, ...], unwanted: tuple[Term, ...]) -> None:
    assert understood(typed) == SearchTerms(wanted, unwanted)


@pytest.mark.parametrize("typed", ["", "   ", "***", '""', "-", "☃"])
def test_nothing_to_look_for_is_refused(typed: str) -> None:
    with pytest.raises(InvalidParams, match="no word to look for"):
        understood(typed)


def test_only_words_to_leave_out_are_refused() -> None:
    with pytest.raises(InvalidParams, match="only words to leave out") as refused:
        understood("-redis")
    assert "handrail search" in (refused.value.hint or "")


@given(st.text(max_size=40) | st.text(st.sampled_from('ab"*-−“ \t(:^'), max_size=12))
def test_whatever_is_typed_is_a_question_or_refused(typed: str) -> None:
    try:
        asked = understood(typed)
    except InvalidParams:
        return
    assert all(term.forms and all(term.forms) for term in (*asked.wanted, *asked.unwanted))
