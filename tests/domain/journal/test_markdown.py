"""Texts of agents in a Markdown page: they show, and never become part of its structure."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.journal.markdown import cell, code, inline, minute, quoted
from handrail.kernel.wording import printable_line

CODE = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)")


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
        ("\\`a`", "&#92;`a`"),
        ("`<b> &lt;`", "`<b> &lt;`"),
        ("&lt;b&gt; &#35; & &;", "&amp;lt;b&amp;gt; &amp;#35; & &;"),
        ("C:\\new \\* \\", "C:\\new &#92;* &#92;"),
        ("[x]", "[x&#93;"),
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
    assert inline("\\<script>") == "&#92;&lt;script>"
    assert "](" not in inline("[x\\](http://h)")


def test_a_quotation_keeps_its_lines_and_is_never_left() -> None:
    assert list(quoted("one\n\n# two\n")) == ["> one", ">", "> # two", ""]
    assert list(quoted("  \n ")) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("```sh\nls\n```\nend", ["```sh", "ls", "```", "end"]),
        ("```\n<b>\n  x\n```\n&lt;", ["", "`<b>`\\", "`  x`", "", "&amp;lt;"]),
        ("~~~\n]: x", ["", "`]: x`", ""]),
        ("- ```\n~~~\n<b>", ["- &#96;&#96;&#96;", "&#126;~~", "&lt;b>"]),
        ("one\n\n    <b>", ["one", "", "   `<b>`"]),
        ("half `\n`<b>`", ["half &#96;", "`<b>`"]),
    ],
)
def test_a_quotation_shows_code_as_typed(text: str, shown: list[str]) -> None:
    assert list(quoted(text)) == [*(f"> {line}".rstrip() for line in shown), ""]


def test_a_cell_is_never_left() -> None:
    assert cell("a | b") == "a &#124; b"
    assert cell("`a` `b|c`") == "`a` &#96;b&#124;c&#96;"
    assert "|" not in cell("`|` | \\| ||")


def test_code_is_shown_letter_by_letter() -> None:
    assert code("a b") == "`a b`"
    assert code("a`b") == "``a`b``"
    assert code("`") == "`` ` ``"
    assert code(" a ") == "`  a  `"
    assert code("a\nb") == "`a b`"


def test_times_are_told_in_utc() -> None:
    assert minute(1_768_471_500_000) == "2026-01-15 10:05 UTC"


ENTITY = re.compile(r"&#?\w+;")
"""What Markdown takes for an entity: never without its semicolon, as HTML does."""


def _meant(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


SIGNS = st.text() | st.text("`\\<>&;#[](): ~|-a1\n", max_size=30)


@given(SIGNS)
def test_nothing_of_a_text_is_markup(text: str) -> None:
    for line in (inline(text), cell(text), *quoted(text)):
        assert line.isprintable()
        outside = CODE.sub(" ", line)  # code keeps what stands before it apart from what stands behind
        assert not re.search(r"<[A-Za-z/!?]|\][(\[:]", outside)
        assert "`" not in outside or "```" in text
    assert not re.match(r"#|>|\||~~~|\d+[.)] |[-+*] ", inline(text))
    assert all(line.startswith(">") or not line for line in quoted(text))
    shown = code(text)
    fence = re.match("`+", shown)
    assert fence is not None
    assert shown.endswith(fence[0])
    assert "`" * len(fence[0]) not in shown[len(fence[0]) : -len(fence[0])]


@given(SIGNS)
def test_a_line_shows_every_character_that_was_typed(text: str) -> None:
    """Reads a line as a reader of Markdown does: code as it stands, elsewhere entities and escapes."""
    for line in (cell(text), inline(text)):
        parts = CODE.split(line)
        seen = "".join(
            part if place % 3 == 2 else ENTITY.sub(_meant, re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", part))
            for place, part in enumerate(parts)
            if place % 3 != 1
        )
        assert seen.replace("`", "") == printable_line(text).replace("`", "")


@given(st.text("`\\\\a<", max_size=12), st.text("`\\\\a<", max_size=12))
def test_no_text_opens_or_closes_what_its_neighbour_says(first: str, second: str) -> None:
    line = f"{inline(first)} {code('<img>')} {inline(second)}"
    spans = re.sub(r"(?<![`\\\\])(`+)(?!`).*?(?<!`)\1(?!`)", "", line)
    assert "<img>" not in spans, line
    assert "`" not in spans, line
