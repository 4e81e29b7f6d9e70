"""Texts in columns: nothing is wider than it may be, nothing an agent wrote reaches the terminal as a command."""

from __future__ import annotations

import unicodedata

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.surfaces.cli.columns import bar, bold, columns, fit, mark, one_line, pad, paint, said, width, wrapped


@given(st.text(), st.integers(1, 60))
def test_a_fitted_text_is_one_printable_line_of_no_more_than_its_room(text: str, room: int) -> None:
    line = fit(text, room)
    assert width(line) <= room
    assert line.isprintable()
    assert line == one_line(text) or line.endswith("…")


@given(st.text(), st.integers(1, 60))
def test_a_padded_text_fills_its_room(text: str, room: int) -> None:
    assert width(pad(text, room)) == room


@given(st.text(), st.integers(6, 60))
def test_wrapping_loses_nothing_and_keeps_the_room(text: str, room: int) -> None:
    lines = list(wrapped(text, room, "  "))
    assert all(width(line) <= room for line in lines)
    assert all(line.isprintable() for line in lines)
    assert "".join("".join(lines).split()) == "".join(one_line(text).split())


def test_paragraphs_stay_apart() -> None:
    assert list(wrapped("one\n\ntwo three", 8)) == ["one", "", "two", "three"]


def test_no_escape_sequence_and_no_turned_line_gets_through() -> None:
    hostile = "a\x1b[2J\x07b\u202ec\r\nd\x9b31m"
    assert not [letter for letter in one_line(hostile) if unicodedata.category(letter).startswith("C")]


@pytest.mark.parametrize(("text", "takes"), [("plain", 5), ("日本語", 6), ("e\u0301", 1), ("", 0)])
def test_width_counts_columns_not_characters(text: str, takes: int) -> None:
    assert width(text) == takes


@pytest.mark.parametrize(
    ("done", "total", "shows"),
    [(0, 0, "[----]"), (0, 4, "[----]"), (3, 4, "[###-]"), (999, 1000, "[###-]"), (4, 4, "[####]")],
)
def test_only_what_is_done_whole_fills_the_bar(done: int, total: int, shows: str) -> None:
    assert bar(done, total, 4) == shows


def test_states_have_marks_words_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert said("in_progress") == "in progress"
    assert click.unstyle(mark("completed")) == "✓"
    assert paint("x", "failed") != "x"
    assert paint("x", "blocked") == "x"
    assert mark("unheard of") == " "


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert (paint("x", "failed"), bold("x")) == ("x", "x")


def test_a_line_is_never_longer_than_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert columns() == 120
    monkeypatch.setenv("COLUMNS", "64")
    assert columns() == 64
