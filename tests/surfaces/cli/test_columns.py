"""Texts in columns: nothing is wider than it may be, nothing an agent wrote reaches the terminal as a command."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.surfaces.cli.columns import (
    as_words,
    bar,
    bold,
    columns,
    counted,
    fit,
    headline,
    kept_in_shape,
    mark,
    moment,
    one_line,
    packed,
    pad,
    paint,
    table_lines,
    width,
    wrapped,
)
from handrail.surfaces.cli.terminal import colour_wanted


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
    assert as_words("in_progress") == "in progress"
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


def test_a_table_lines_up_whatever_letters_are_in_it() -> None:
    rows = [("ab", "new", "first"), ("日本語", "old", "second")]
    head, first, second = table_lines(("n", "state", "what"), rows, 80)
    assert click.unstyle(head) == "n       state  what"
    assert first == "ab      new    first"
    assert second == "日本語  old    second"


def test_numbers_stand_to_the_right_of_their_column() -> None:
    rows = [("events", "1,200", "385.0 kB"), ("keys", "7", "8.2 kB"), ("free", "", "0 bytes")]
    head, *lines = table_lines(("what", "rows", "room"), rows, 80)
    assert click.unstyle(head) == "what     rows      room"
    assert lines == ["events  1,200  385.0 kB", "keys        7    8.2 kB", "free            0 bytes"]


def test_a_column_with_a_word_among_its_numbers_is_a_column_of_words() -> None:
    _, first, second = table_lines(("n", "value"), [("a", "4096"), ("b", "all")], 80)
    assert (first, second) == ("a  4096", "b  all")


# -- headings ---------------------------------------------------------------------------------------------------------

KEY = "task_01m7je5rqk0z0hybe027nhww2x"


def test_an_id_stands_beside_its_name_and_below_it_where_the_terminal_is_narrow() -> None:
    about = [KEY, "in progress"]
    assert plain(headline("Retry imports", about, 80)) == [f"Retry imports  {KEY}  in progress"]
    assert plain(headline("Retry imports", about, 40)) == ["Retry imports", f"  {KEY}", "  in progress"]
    assert plain(headline("Retry imports", about, 50)) == ["Retry imports", f"  {KEY}  in progress"]


def test_a_long_name_is_cut_beside_its_id_and_whole_above_it() -> None:
    name = "a name that goes on for quite a while"
    assert plain(headline(name, [KEY], 60)) == [f"a name that goes on for qu…  {KEY}"]
    assert plain(headline(name, [KEY], 40)) == [name, f"  {KEY}"]


def test_colour_takes_no_columns() -> None:
    coloured = [click.style("abc", fg="red"), click.style("def", dim=True)]
    assert plain(packed(coloured, 8)) == ["abc  def"]
    assert plain(packed(coloured, 7)) == ["abc", "def"]


def test_text_without_spaces_fills_the_line_it_begins_on() -> None:
    assert list(wrapped("see " + "語" * 30, 40)) == ["see " + "語" * 18, "語" * 12]
    assert list(wrapped("see 語語", 7)) == ["see", "語語"]


def plain(lines: Iterable[str]) -> list[str]:
    return [click.unstyle(line) for line in lines]


def test_the_last_column_of_a_table_goes_on_below_itself() -> None:
    lines = list(table_lines(("id", "what"), [("x1", "words that go on and on and on")], 30))
    assert lines[1:] == ["x1  words that go on and on", "    and on"]


def test_what_has_no_room_beside_goes_below_and_an_id_stays_whole() -> None:
    key = "task_01m7je5rqk0z0hybe027nhww2x"
    lines = list(table_lines(("id", "state", "what"), [(key, "in progress", "some words")], 40))
    assert [click.unstyle(line) for line in lines] == ["id", key, "    in progress some words"]
    assert all(width(line) <= 40 for line in lines[1:])


def test_a_table_in_a_pipe_has_a_line_for_each_row() -> None:
    rows = [("x", "words " * 40)]
    assert len(list(table_lines(("id", "what"), rows, None))) == 2


def test_a_table_takes_no_commands_from_its_cells() -> None:
    assert "\x1b" not in "".join(list(table_lines(("a", "b"), [("\x1b[2J", "\x1b]0;x\x07")], 40))[1:])


def test_counts_have_their_plurals() -> None:
    assert [counted(count, "file") for count in (0, 1, 1200)] == ["0 files", "1 file", "1,200 files"]
    assert counted(2, "entry", "entries") == "2 entries"


def test_moments_are_said_as_people_say_them() -> None:
    now = 1_700_000_000_000
    assert moment(now, now) == "a moment ago"
    assert moment(now - 180_000, now) == "3 minutes ago"
    assert moment(now - 3 * 86_400_000, now) == "2023-11-11 22:13 UTC"
    assert moment(now - 7_200_000, now, long_ago_ms=3_600_000) == "2023-11-14 20:13 UTC"


def test_a_document_keeps_its_shape() -> None:
    text = "def x():\n\treturn 1\n\nend \x1b[2J"
    assert list(kept_in_shape(text, 40, "  ")) == ["  def x():", "      return 1", "", "  end [2J"]


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, None),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, None),
        ({"TERM": "dumb"}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, None),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_is_had_where_it_is_wanted(environ: dict[str, str], wanted: bool | None) -> None:
    assert colour_wanted(environ) is wanted
