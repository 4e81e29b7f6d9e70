"""Texts of agents in a Markdown page: they show, and never become part of its structure."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.journal.markdown import code, inline, minute, quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words", "plain words"),
        ("two\nlines", "two lines"),
        ("# no heading", "\\# no heading"),
        ("- no item", "\\- no item"),
        ("-5 degrees", "-5 degrees"),
        ("1. no item", "1\\. no item"),
        ("12) no item", "12\\) no item"),
        ("2026 was good", "2026 was good"),
        ("*emphasis* stays", "*emphasis* stays"),
        ("***", "\\***"),
        ("| a | b |", "\\| a | b |"),
        ("```sh", "&#96;&#96;&#96;sh"),
        ("`a` or ``b``", "`a` or ``b``"),
        ("`a` or ``b`", "`a` or &#96;&#96;b&#96;"),
        ("\\`a`", "\\&#96;a&#96;"),
        ("<script>", "&lt;script>"),
        ("<!-- the rest", "&lt;!-- the rest"),
        ("a < b", "a < b"),
        ("![x](http://h/p)", "![x&#93;(http://h/p)"),
        ("[x]: http://h", "[x&#93;: http://h"),
        ("\x1b[31mred\u202e", "[31mred"),
    ],
)
def test_a_line_shows_what_was_written(text: str, shown: str) -> None:
    assert inline(text) == shown


def test_a_backslash_before_a_tag_does_not_set_it_free() -> None:
    assert inline("\\<script>") == "\\&lt;script>"
    assert "](" not in inline("[x\\](http://h)")


def test_a_quotation_keeps_its_lines_and_is_never_left() -> None:
    assert list(quoted("one\n\n# two\n")) == ["> one", ">", "> # two", ""]
    assert list(quoted("  \n ")) == []


def test_code_is_shown_letter_by_letter() -> None:
    assert code("a b") == "`a b`"
    assert code("a`b") == "``a`b``"
    assert code("`") == "`` ` ``"
    assert code("a\nb") == "`a b`"


def test_times_are_told_in_utc() -> None:
    assert minute(1_768_471_500_000) == "2026-01-15 10:05 UTC"


@given(st.text())
def test_nothing_of_a_text_is_markup(text: str) -> None:
    for line in (inline(text), *quoted(text)):
        assert line.isprintable()
        assert not re.search(r"<[A-Za-z/!?]|\][(\[:]", line)
    assert not re.match(r"#|>|\||~~~|\d+[.)] |[-+*] ", inline(text))
    assert all(line.startswith(">") or not line for line in quoted(text))
    shown = code(text)
    fence = re.match("`+", shown)
    assert fence is not None
    assert shown.endswith(fence[0])
    assert "`" * len(fence[0]) not in shown[len(fence[0]) : -len(fence[0])]


@given(st.text("`\\\\a<", max_size=12), st.text("`\\\\a<", max_size=12))
def test_no_text_opens_or_closes_what_its_neighbour_says(first: str, second: str) -> None:
    line = f"{inline(first)} {code('<img>')} {inline(second)}"
    spans = re.sub(r"(?<![`\\\\])(`+)(?!`).*?(?<!`)\1(?!`)", "", line)
    assert "<img>" not in spans, line
    assert "`" not in spans, line
