"""Counting what a task changed."""

from __future__ import annotations

from handrail.domain.journal.entry import FileTotals, lines_in_words, totals, totals_in_words

ADDED = {"path": "a", "change": "added", "lines_added": 12, "lines_removed": 0}
CHANGED = {"path": "b", "change": "modified", "lines_added": 3, "lines_removed": 4}
DELETED = {"path": "c", "change": "deleted", "lines_added": 0, "lines_removed": 30}
BINARY = {"path": "d", "change": "modified", "lines_added": None, "lines_removed": None, "binary": True}
LARGE = {"path": "e", "change": "added", "lines_added": None, "lines_removed": None, "binary": False}


def test_lines_are_summed_and_what_nobody_counted_is_named() -> None:
    assert totals([ADDED, CHANGED, DELETED, BINARY]) == FileTotals(4, 15, 34, 1)
    assert totals_in_words(totals([ADDED, CHANGED])) == "2 files, +15 −4"
    assert totals_in_words(totals([ADDED, BINARY])) == "2 files, +12 −0 (1 without line counts)"
    assert totals_in_words(totals([BINARY])) == "1 file (1 without line counts)"


def test_each_file_tells_its_lines_or_why_not() -> None:
    assert [lines_in_words(change) for change in (ADDED, CHANGED, DELETED, BINARY, LARGE)] == [
        "+12",
        "+3 −4",
        "−30",
        "binary",
        "lines not counted",
    ]
