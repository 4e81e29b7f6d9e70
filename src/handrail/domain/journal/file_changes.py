"""Counts the files a task changed, from the report in its journal entry. Pure; nothing is compared here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

LETTERS = {"added": "A", "modified": "M", "deleted": "D"}


class FileTotals(NamedTuple):
    """How many files changed, and how many lines."""

    files: int
    lines_added: int
    lines_removed: int
    uncounted: int
    """Files whose lines were not counted: binary ones, and those too large to keep."""


def totals(files: Iterable[Mapping[str, Any]]) -> FileTotals:
    """The totals of a report's changes."""
    count = added = removed = uncounted = 0
    for change in files:
        count += 1
        added += change.get("lines_added") or 0
        removed += change.get("lines_removed") or 0
        uncounted += change.get("lines_added") is None
    return FileTotals(count, added, removed, uncounted)


def moves_once(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The changes of a report, with each moved file listed once, as `renamed` from its `old_path`. The report itself
    lists it twice, as deleted and as added."""
    moved = {rename["to"]: rename["from"] for rename in report.get("renamed", ())}
    left = set(moved.values())
    there = {change["path"]: change for change in report.get("files", ())}
    shown = []
    for path, change in there.items():
        if path in left and change["change"] == "deleted":
            continue
        old = moved.get(path)
        if old is None or old not in there:
            shown.append(change)
            continue
        # All its lines are added here and removed there: only the patch knows which of them differ.
        shown.append({**change, "lines_added": 0, "lines_removed": 0, "change": "renamed", "old_path": old})
    return shown


def totals_in_words(found: FileTotals) -> str:
    """The totals in words: `3 files, +120 −4`."""
    words = f"{found.files} {'file' if found.files == 1 else 'files'}"
    if found.files > found.uncounted:
        words += f", +{found.lines_added} −{found.lines_removed}"
    return f"{words} ({found.uncounted} without line counts)" if found.uncounted else words


def lines_in_words(change: Mapping[str, Any]) -> str:
    """The lines of one change: `+12 −3`, or why there is no count."""
    if change.get("lines_added") is None:
        return "binary" if change.get("binary") else "lines not counted"
    added, removed = change["lines_added"], change.get("lines_removed") or 0
    if not removed:
        return f"+{added}"
    return f"+{added} −{removed}" if added else f"−{removed}"
