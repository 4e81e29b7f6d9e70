"""The comparison: every source that a cell names is listed, and every figure is one that was measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
KEY = re.compile(r"\b[tbgawrslcdm]\d{1,2}\b")
FIGURE = re.compile(r"(?<![\w.,-])\d[\d.,]*\d(?![\w.,-]|\.\d)|(?<![\w.,-])\d+\.\d+x")


def section(name: str) -> str:
    return PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def figures(text: str) -> set[str]:
    """The numbers in the rows of tables, headings and versions left out."""
    cells = [cell for line in text.splitlines() if line.startswith("|") for cell in line.strip("|").split("|")[1:]]
    return {figure for cell in cells for figure in FIGURE.findall(cell)}


def test_every_source_that_is_named_is_listed_with_its_place() -> None:
    before, _, listed = PAGE.partition("\n## Sources\n")
    places = "".join(line.split("|")[3] for line in listed.splitlines() if line.startswith("| "))
    named = set(KEY.findall(before))
    assert len(named) > 30
    assert named - set(KEY.findall(places)) == set()


def test_every_row_of_capabilities_has_a_cell_for_everyone() -> None:
    rows = [line for line in section("Capabilities").splitlines() if line.startswith("|")]
    assert len(rows) > 20
    assert {row.count("|") for row in rows} == {12}
    marks = [cell.strip()[:1] for row in rows[2:] for cell in row.strip("|").split("|")[1:]]
    assert set(marks) <= set("+o–?")


@pytest.mark.parametrize("figure", sorted(figures(section("Measured here"))))
def test_every_figure_was_measured(figure: str) -> None:
    assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?!\d|[.,]\d)", MEASURED)


def test_a_figure_that_nobody_measured_would_be_noticed() -> None:
    assert figures("| a 1.2.3 | 12,345 | 0.21x of b |") == {"12,345", "0.21x"}
    assert len(figures(section("Measured here"))) > 20
