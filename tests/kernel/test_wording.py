"""Texts made shorter."""

from __future__ import annotations

from handrail.kernel.wording import on_one_line, printable_line, shortened


def test_what_is_too_long_ends_with_a_mark_and_is_no_longer_than_was_asked() -> None:
    assert shortened("abcde", 5) == "abcde"
    assert shortened("abcdef", 5) == "abcd…"


def test_a_text_on_one_line_has_single_spaces() -> None:
    assert on_one_line("  a\n\n b\tc ") == "a b c"


def test_nothing_that_commands_a_terminal_gets_through() -> None:
    assert printable_line("a\x1b[2J\n b") == "a [2J b"
